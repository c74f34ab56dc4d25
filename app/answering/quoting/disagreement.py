"""Finds a second passage that gives another value for what is asked: another number, another date, another name.

Two passages disagree where the span reader finds words of one kind in both that answer, their values cannot both be
meant (`app.answering.quoting.values`), and their sentences are about the same thing: they share most of their other
words, and neither is of another year, or says the other's value, too. No model is called.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from app.answering.answers.parts import What
from app.answering.languages.question_kind import kind_asked
from app.answering.languages.statement import parse_statement
from app.answering.quoting.values import contradict, value_in, years_in
from retrieval.words import folded, terms

LIKELY = 0.3, 0.5
"""Least probability of the second passage, as a share of the first one's, and least share of the shorter sentence's
content words, without the values, that the other sentence has (`python -m tests.bench.service.conflicts`)."""

ALIKE = 0.05, 0.75
"""The same of a passage that is less likely: its sentence must be more alike."""

_EQUAL = 0.6  # share of the words of two sentences that are equal, in order
_MOST_WORDS = 120  # of a sentence that is compared word by word, which takes quadratic time
_WORD = re.compile(r"\w+(?:[.,:'’]\w+)*|[^\w\s]")
_TELLS = re.compile(r"[A-Z\d]")


@dataclass(frozen=True, slots=True)
class PassageClaim:
    """What a passage answers: its `words` in its `sentence`.

    Attributes:
        above: Its document's title and its headings.
        probability: How likely the sentence answers, in (0, 1).
    """

    words: str
    sentence: str
    above: str = ""
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The place of the claim that says otherwise, what it says otherwise, and the words of its sentence that do."""

    place: int
    what: What
    words: str


def disagreement(question: str, first: PassageClaim, others: Sequence[PassageClaim]) -> Disagreement | None:
    """The likeliest of the others that gives another value than the first; None where all may be right.

    >>> fee = "The fee for a day is {} euros."
    >>> one, other = (PassageClaim(amount, fee.format(amount)) for amount in ("4.80", "5.20"))
    >>> disagreement("What is the fee?", one, [other])
    Disagreement(place=0, what='number', words='5.20')
    """
    asked = kind_asked(question)
    value = value_in(first.sentence, first.words, asked)
    if value is None:
        return None
    order = sorted(range(len(others)), key=lambda place: -others[place].probability)
    for place in order:
        other = others[place]
        alike = shared(first, other) >= LIKELY[1]  # else its own words and those exchanged are of something else
        for words in dict.fromkeys((other.words, counterpart(first, other.sentence))) if alike else ():
            said = value_in(other.sentence, words, asked) if words else None
            if (
                said is not None
                and contradict(value, said)
                and about_the_same(question, first, replace(other, words=words), exchanged=words != other.words)
            ):
                return Disagreement(place, value.what, words)
    return None


def counterpart(one: PassageClaim, sentence: str) -> str:
    """What a nearly equal sentence says in the place of a claim's words; "" where it says nothing else there.

    Where anything else is exchanged that tells things apart, a name or a number, it is about something else.

    >>> counterpart(PassageClaim("63 days", "It went on for 63 days."), "It went on for 43 days.")
    '43 days'
    """
    start = one.sentence.find(one.words)
    here, there = list(_WORD.finditer(one.sentence)), list(_WORD.finditer(sentence))
    if start < 0 or max(len(here), len(there)) > _MOST_WORDS:
        return ""
    end = start + len(one.words)
    inside = [at for at, word in enumerate(here) if word.start() < end and start < word.end()]
    matcher = SequenceMatcher(None, [word.group() for word in here], [word.group() for word in there], autojunk=False)
    if matcher.ratio() < _EQUAL:
        return ""
    found: list[int] = []
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        meets = [at for at in inside if first <= at < last]
        if tag == "equal":
            found += [other_first + at - first for at in meets]
        elif tag == "replace":
            if meets:
                found += range(other_first, other_last)
            elif _tells(here[first:last]) and _tells(there[other_first:other_last]):
                return ""
    if not found:
        return ""
    return sentence[there[min(found)].start() : there[max(found)].end()]


def _tells(words: "Sequence[re.Match[str]]") -> bool:
    return any(_TELLS.match(word.group()) for word in words)


def about_the_same(question: str, one: PassageClaim, other: PassageClaim, *, exchanged: bool = False) -> bool:
    """Whether the sentence of another claim is about the same thing, is likely, and neither says the other's value.

    Words that are `exchanged` in nearly equal sentences are no less about it where the reader finds others likelier.
    """
    if "|" in one.sentence or "|" in other.sentence:  # rows are of different things
        return False
    if _says(one.sentence, other) or _says(other.sentence, one):
        return False
    here, there = (years_in(f"{each.sentence}\n{each.above}") - years_in(each.words) for each in (one, other))
    asked = years_in(question)
    if here - asked and there - asked and not (here & there):
        return False
    near, alike = other.probability / one.probability, shared(one, other)
    if exchanged:
        return alike >= ALIKE[1]
    return any(near >= least and alike >= share for least, share in (LIKELY, ALIKE))


def shared(one: PassageClaim, other: PassageClaim) -> float:
    """The share of the shorter sentence's content words that the other one has, without both values."""
    values = terms(one.words) | terms(other.words)
    here, there = terms(one.sentence) - values, terms(other.sentence) - values
    return len(here & there) / max(1, min(len(here), len(there)))


def _says(sentence: str, claim: PassageClaim) -> bool:
    """Whether a sentence says the value of a claim as often as the claim's own sentence does."""
    here = _times(sentence, claim.words)
    return here > 0 and here >= _times(claim.sentence, claim.words)


def _times(sentence: str, words: str) -> int:
    """How often a sentence says the numbers of a value, or its words where it has none."""
    numbers = {number.value for number in parse_statement(words, fragment=True).numbers if not number.loose}
    if not numbers:
        return int(folded(words) <= folded(sentence))
    said = [number.value for number in parse_statement(sentence).numbers]
    return min(said.count(number) for number in numbers)
