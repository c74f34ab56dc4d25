"""Chooses which candidates are quoted: the likeliest few, or all that match where several things are asked for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answering.languages.question_kind import asks_for_several, compared
from app.answering.question import AnswerLength
from app.answering.quoting.candidates import Candidate
from app.answering.quoting.headings import behind_heading, headings_of
from retrieval.words import terms

CLEAR = 0.8
"""From this probability of the best quote on, others are shown only where they are nearly as likely."""

_HALF = 0.5
_MARKS = re.compile(r"[\W_]*\Z")


@dataclass(frozen=True, slots=True)
class Breadth:
    """How many candidates are quoted, and which.

    Attributes:
        most: The most quotes.
        nearly: Share of the best probability that another quote needs, where the best is clear.
        at_all: The same where it is not.
        embedded: The most candidates that are embedded.
        judged: The most of these that the judge compares.
        joined: The most characters of neighbouring candidates that are joined into one quote; 0 joins none. Where they
            are joined, quotes are grouped by document and in reading order, else the likeliest is first.
        sides: What is compared; each has a quote, where a candidate is about it.
    """

    most: int = 3
    nearly: float = 0.4
    at_all: float = 0.1
    embedded: int = 12
    judged: int = 8
    joined: int = 0
    sides: tuple[str, ...] = ()


ONE = Breadth()
"""For a question with one answer: the likeliest candidate, and others nearly as likely."""

SEVERAL = Breadth(most=6, nearly=0.2, embedded=24, judged=16, joined=600)
"""For a question with several answers: every candidate that matches."""


_FEWER = 1, 3  # quotes of a short answer, to a question with one answer and with several
_MORE = 6, 12  # those of a long one


def breadth_of(question: str, length: AnswerLength = "normal") -> Breadth:
    """The breadth for the answer to a question."""
    several = asks_for_several(question)
    breadth = replace(SEVERAL, sides=compared(question) or ()) if several else ONE
    if length == "short":
        return replace(breadth, most=_FEWER[several])
    if length == "long":
        return replace(breadth, most=_MORE[several], nearly=SEVERAL.nearly, embedded=SEVERAL.embedded)
    return breadth


def chosen(
    candidates: Sequence[Candidate], scores: Sequence[float], breadth: Breadth, *, first: int, least: float = 0.0
) -> list[list[int]]:
    """Places of the candidates to quote, those of one quote together; no text twice and none inside another.

    Args:
        candidates: At least one, in reading order.
        scores: The probability of each.
        breadth: How many, and which.
        first: The place of the likeliest; others may have an equal probability.
        least: The least probability of a quote that only one of the sides needs.
    """
    ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place != first, place))
    best = scores[first]
    needed = best * (breadth.nearly if best >= CLEAR else breadth.at_all)
    kept: list[int] = []
    for place in ranked:
        if len(kept) == breadth.most or scores[place] < needed:
            break
        kept = _with(place, kept, candidates, whole=bool(breadth.joined))
    kept = _with_sides(kept, [place for place in ranked if scores[place] >= least], candidates, breadth)
    return _joined(kept, candidates, most=breadth.joined) if breadth.joined else [[place] for place in kept]


def _with(place: int, kept: list[int], candidates: Sequence[Candidate], *, whole: bool) -> list[int]:
    """`kept` with one more place, unless its text is there; with `whole` a list takes the place of its items."""
    candidate = candidates[place]
    if any(_folded(candidates[one]) == _folded(candidate) for one in kept):
        return kept
    over = [one for one in kept if _overlap(candidates[one], candidate)]
    if not over:
        return [*kept, place]
    if not whole or any(not _inside(candidates[one], candidate) for one in over):
        return kept
    rest = [one for one in kept if one not in over[1:]]
    return [place if one == over[0] else one for one in rest]


def _with_sides(kept: list[int], ranked: Sequence[int], candidates: Sequence[Candidate], breadth: Breadth) -> list[int]:
    """`kept` with the likeliest candidate of each side that has none, in the last places where there is no room."""
    needed: list[int] = []
    for at, side in enumerate(breadth.sides):
        others = frozenset[str]().union(*(terms(other) for one, other in enumerate(breadth.sides) if one != at))
        words = terms(side) - others
        about = [place for place in ranked if words and _share(words, candidates[place]) > _HALF]
        if not about or any(place in about for place in (*kept, *needed)):
            continue
        apart = [place for place in about if not any(_overlap(candidates[place], candidates[one]) for one in kept)]
        needed += apart[:1]
    return [*kept[: max(1, breadth.most - len(needed))], *needed] if needed else kept


def _share(words: frozenset[str], candidate: Candidate) -> float:
    """The share of `words` that a candidate or the heading above it holds."""
    path = candidate.source.hit.chunk.heading_path
    return len(words & terms(f"{path[-1] if path else ''}\n{candidate.text}")) / len(words)


def _joined(kept: Sequence[int], candidates: Sequence[Candidate], *, most: int) -> list[list[int]]:
    """The places by document, the likeliest's first, in reading order, with neighbours in one group."""
    documents = list(dict.fromkeys(candidates[place].source.hit.chunk.document_id for place in kept))

    def reading(place: int) -> tuple[int, int]:
        candidate = candidates[place]
        return documents.index(candidate.source.hit.chunk.document_id), candidate.span.start_char

    groups: list[list[int]] = []
    for place in sorted(kept, key=reading):
        if groups and _continues(candidates[groups[-1][0]], candidates[groups[-1][-1]], candidates[place], most=most):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _continues(first: Candidate, last: Candidate, following: Candidate, *, most: int) -> bool:
    """Whether nothing but marks lies between two candidates of one source, and all of them are short together."""
    if last.source.number != following.source.number or following.span.end_char - first.span.start_char > most:
        return False
    start, end = last.span.end_char, following.span.start_char
    chunk = last.source.hit.chunk
    shown = any(one.start_char <= last.span.start_char and end < one.end_char for one in last.source.spans)
    return shown and bool(_MARKS.match(chunk.text[start - chunk.start_char : end - chunk.start_char]))


def _folded(candidate: Candidate) -> str:
    """The words of a candidate as they are compared: without the heading above them, which is not quoted."""
    text = candidate.text
    return " ".join(text[behind_heading(text, headings_of([candidate.source.hit.chunk])) :].casefold().split())


def _overlap(one: Candidate, other: Candidate) -> bool:
    return (
        one.source.number == other.source.number
        and one.span.start_char < other.span.end_char
        and other.span.start_char < one.span.end_char
    )


def _inside(one: Candidate, other: Candidate) -> bool:
    return other.span.start_char <= one.span.start_char and one.span.end_char <= other.span.end_char
