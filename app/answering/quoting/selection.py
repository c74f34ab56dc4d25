"""Selects the candidates that answer a question, and decides whether they do, by what models have read of them.

What was read is one probability for each (`app.answering.quoting.score`); `passage_reader` has the models read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.answering.languages.question_kind import asks_for_words, kind_asked
from app.answering.quoting.antecedents import with_antecedents
from app.answering.quoting.breadth import CLEAR, ONE, Breadth, chosen
from app.answering.quoting.candidates import Candidate
from app.answering.quoting.disagreement import Disagreement, PassageClaim, disagreement
from app.answering.quoting.features import Read
from app.answering.quoting.headings import behind_heading, headings_of
from app.answering.quoting.pointing import marked_in
from app.answering.quoting.score import UNREAD, ScoreWeights, certainty, logit, probability
from app.answering.quoting.subject import names_subject
from app.answering.states.reading import Decision, Extract, QuoteConflict, Selection
from retrieval.types import Span
from retrieval.words import says_new

NEAREST = 0.07
"""Least probability of the best quote with which quotes are shown at all; below it the question is refused."""

LEADS = 0.5
"""Least probability of the best quote with which marked words of the kind that is asked for lead the answer."""

TOLD = 0.7
"""Least probability of a cell of a row with which it is told from the others by the names of their columns."""

UNCONFIRMED = 0.9
"""Most probability of a quote that does not name what is asked about, or says nothing else: it is not confirmed."""


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates that were embedded, in reading order.

    Attributes:
        candidates: The candidates.
        values: For each the values by which it is scored (`app.answering.quoting.score`).
        reads: For each what the span reader found in it; empty where it has not read.
        weights: The weights for what has been read of them.
    """

    candidates: tuple[Candidate, ...]
    values: tuple[Mapping[str, float], ...]
    reads: tuple[Read, ...]
    weights: ScoreWeights = UNREAD

    @property
    def read(self) -> bool:
        """Whether the span reader has read them."""
        return self.weights is not UNREAD

    @property
    def highlights(self) -> list[Span | None]:
        """For each candidate the words that the span reader takes for the answer, None without any."""
        return [one.words for one in self.reads] or [None] * len(self.candidates)


def selection_of(
    question: str, found: ScoredCandidates, *, answered: float, nearest: float, breadth: Breadth = ONE
) -> Selection:
    """The selection among what the models have read: quotes, and whether they answer.

    Args:
        question: Its text.
        found: The candidates with the values by which they are scored.
        answered: The probability from which on the question is answered.
        nearest: The probability from which on quotes are shown.
        breadth: How many candidates are quoted, and which.
    """
    if not found.candidates:
        return Selection((), 0.0, "refused", threshold=answered)
    logits = [logit(found.weights.of_candidate, of_candidate) for of_candidate in found.values]
    best = certainty(found.weights.of_best, logits, found.values)
    first = logits.index(max(logits))
    about = [
        not candidate.heading and says_new(question, candidate.core_text) and names_subject(question, candidate)
        for candidate in found.candidates
    ]
    best = best if about[first] else min(best, UNCONFIRMED)
    scores = [
        best if place == first else min(best, probability(one), 1.0 if about[place] else UNCONFIRMED)
        for place, one in enumerate(logits)
    ]
    outcome: Decision = "answered" if best >= answered else "unsure" if best >= nearest else "refused"
    groups = [] if outcome == "refused" else chosen(found.candidates, scores, breadth, first=first, least=nearest)
    told = None
    if outcome == "answered" and found.read and not breadth.joined:
        told = _disagreement(question, found, scores, first)
    if told is not None and [told.place] not in groups:
        groups = _with_other(groups, told.place, found.candidates)
    quotes = [_quote(question, found, scores, about, group) for group in groups]
    conflict = None
    if told is not None:
        conflict = QuoteConflict(told.what, 0, groups.index([told.place]))
        quotes[conflict.other] = _marking(quotes[conflict.other], told.words)
    return Selection(
        with_antecedents(quotes),
        best,
        outcome,
        decides=found.read,
        threshold=answered,
        probabilities=tuple(
            (candidate.source.number, candidate.span, score)
            for candidate, score in zip(found.candidates, scores, strict=True)
        ),
        conflict=conflict,
    )


def leads(question: str, selection: Selection) -> bool:
    """Whether the marked words of the likeliest quote lead the answer to a question.

    They do where they are likely, and the question asks for a number, a time or a name, or they are very likely, or
    they are the cell of a table that the names of its columns tell. They do not where the quote does not name what the
    question asks about, or where the question says the words itself.
    """
    if selection.outcome != "answered" or not asks_for_words(question):
        return False
    likeliest = selection.quotes[0]
    if not likeliest.about or not says_new(question, likeliest.words):
        return False
    told = likeliest.cell is not None and likeliest.cell.sure >= TOLD
    return selection.score >= (LEADS if told or kind_asked(question) is not None else CLEAR)


def _disagreement(question: str, found: ScoredCandidates, scores: Sequence[float], first: int) -> Disagreement | None:
    """What another candidate says otherwise than the first one, with its place among the candidates."""
    claims = {
        place: claim for place in range(len(scores)) if (claim := _claim(question, found, scores, place)) is not None
    }
    apart = [
        place for place in claims if place != first and not _meet(found.candidates[place], found.candidates[first])
    ]
    if first not in claims or not apart:
        return None
    told = disagreement(question, claims[first], [claims[place] for place in apart])
    return None if told is None else replace(told, place=apart[told.place])


def _with_other(groups: Sequence[list[int]], place: int, candidates: Sequence[Candidate]) -> list[list[int]]:
    """The groups with one more candidate, in the last place if there is no room."""
    beside = [one for one in groups[1:] if not _meet(candidates[one[0]], candidates[place])]
    return [groups[0], *beside[: max(0, len(groups) - 2)], [place]]


def _marking(quote: Extract, words: str) -> Extract:
    """The quote with these words highlighted."""
    at = quote.text.find(words)
    if words == quote.words or at < 0:
        return quote
    start = quote.span.start_char + at
    return replace(quote, highlight=Span(start, start + len(words)), cell=None)


def _claim(question: str, found: ScoredCandidates, scores: Sequence[float], place: int) -> PassageClaim | None:
    candidate = found.candidates[place]
    marked, _ = marked_in(question, candidate, found.reads[place])
    if marked is None:
        return None
    chunk = candidate.source.chunk_at(candidate.core)
    words = candidate.source.hit.chunk.text_at(marked)
    return PassageClaim(words, candidate.core_text, "\n".join((chunk.title, *chunk.heading_path)), scores[place])


def _meet(one: Candidate, other: Candidate) -> bool:
    return (
        one.source.number == other.source.number
        and one.span.start_char < other.span.end_char
        and other.span.start_char < one.span.end_char
    )


def _quote(
    question: str, found: ScoredCandidates, scores: Sequence[float], about: Sequence[bool], group: Sequence[int]
) -> Extract:
    """The quote of a group of places, which follow each other in one source; a heading above them is no part of it."""
    best = max(group, key=lambda place: scores[place])
    source = found.candidates[best].source
    span = Span(found.candidates[group[0]].span.start_char, found.candidates[group[-1]].span.end_char)
    chunk = source.hit.chunk
    text = chunk.text_at(span)
    marked, cell = marked_in(question, found.candidates[best], found.reads[best]) if found.reads else (None, None)
    start = behind_heading(text, headings_of([chunk]))
    if marked is None or span.start_char + start <= marked.start_char:
        span, text = Span(span.start_char + start, span.end_char), text[start:]
    return Extract(source, span, text, scores[best], marked, about[best], cell)
