"""Plants a second source that disagrees: a document that rewords the sentence with the answer and says another value.

A number gets other digits, a date another year or month, a name is another name that answers a question of the set. The
rewording is a closed list of exchanges of words and of openings. The planted document has the sentence with the answer
and one beside it, or both, so that it is a note about the same thing and not the same page.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.answering.languages.question_kind import asks_for_words, kind_asked
from app.evaluation.types import GoldSpan, QuestionSet, SetDocument, SetQuestion
from retrieval.sentences import sentence_spans

What = Literal["number", "date", "name"]

_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"[A-Z][\w'’.-]+(?: (?:of|the|de|von|van|[A-Z][\w'’.-]+))*")
_WORDS = re.compile("two three four five six seven eight nine ten eleven twelve twenty thirty".replace(" ", "|"))
_EXCHANGED = {
    "was founded": "was established", "were founded": "were established", "began": "started", "about": "roughly",
    "approximately": "around", "located": "situated", "large": "big", "also": "likewise", "however": "yet",
    "received": "got", "because": "since", "although": "though", "many": "numerous", "people": "persons",
    "became": "came to be", "was built": "was erected", "was created": "was made", "died": "passed away",
    "bought": "acquired", "ended": "finished", "used": "employed", "known": "called", "often": "frequently",
    "several": "a number of", "important": "significant", "begins": "starts", "needs": "requires", "during": "in",
}  # fmt: skip
_OPENINGS = ("According to one account, ", "Records show that ", "It is said that ", "By this account, ", "")


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted document, the question it answers otherwise, and both values."""

    question: SetQuestion
    document: SetDocument
    source: str
    what: What
    value: str
    planted: str


def planted_in(question_set: QuestionSet, *, most: int, seed: int) -> list[Planted]:
    """At most `most` planted documents, as many of each kind as there are, each of another document of the set."""
    drawn = random.Random(seed)
    names = sorted(
        {
            (_asks(one.text), answer)
            for one in question_set.questions.values()
            for answer in one.answers
            if _is_name(answer)
        }
    )
    questions = list(question_set.questions.values())
    drawn.shuffle(questions)
    found: dict[What, list[Planted]] = {"number": [], "date": [], "name": []}
    used: set[str] = set()
    for question in questions:
        spans = question_set.spans.get(question.id, ())
        gold = next((span for span in spans if span.document_id not in used), None)
        if gold is None or not asks_for_words(question.text):
            continue
        what = _what(question.text, gold.text)
        if what is None or len(found[what]) * 3 >= most + 2:
            continue
        other = _other(gold.text, what, [name for asks, name in names if asks == _asks(question.text)], drawn)
        document = question_set.documents.get(gold.document_id)
        if document is None or other is None or other.casefold() in document.text.casefold():
            continue
        text = _reworded(document.text, gold, other, drawn)
        if text is None:
            continue
        used.add(gold.document_id)
        made = SetDocument(f"planted-{question.id}", document.title, text)
        found[what].append(Planted(question, made, gold.document_id, what, gold.text, other))
    return [one for of_kind in found.values() for one in of_kind][:most]


def _what(question: str, answer: str) -> What | None:
    asked = kind_asked(question)
    if asked == "time" and (_YEAR.search(answer) or any(month in answer for month in _MONTHS)):
        return "date"
    if asked == "number" and (_NUMBER.search(answer) or _WORDS.search(answer)) and len(answer) <= 40:
        return "number"
    if asked == "name" and _is_name(answer):
        return "name"
    return None


def _asks(question: str) -> str:
    """Whether a question asks where, which town or who: names that answer one of them are exchanged for each other."""
    match = re.search(r"\b(?:where|city|country|state|team)\b", question, re.IGNORECASE)
    return match.group().casefold() if match else "who"


def _is_name(answer: str) -> bool:
    return len(answer) <= 40 and _NAME.fullmatch(answer) is not None


def _other(value: str, what: What, names: Sequence[str], drawn: random.Random) -> str | None:
    if what == "name":
        held = set(value.casefold().split())
        alike = [
            one for one in names if len(one.split()) == len(value.split()) and not held & set(one.casefold().split())
        ]
        return drawn.choice(alike) if alike else None
    if what == "date":
        if _YEAR.search(value):
            if re.search(r"\d[-–/]\d", value):  # a period has an end, too, and part of it stays right
                return None
            by = drawn.choice((-12, -7, -4, -3, -2, 2, 3, 5, 8))
            return _YEAR.sub(lambda year: str(int(year.group()) + by), value)
        month = next(one for one in _MONTHS if one in value)
        return value.replace(month, drawn.choice([one for one in _MONTHS if one != month]))
    number = _NUMBER.search(value)
    if number is None:
        word = _WORDS.search(value)
        if word is None:
            return None
        others = [one for one in "two three four five six seven eight nine ten eleven twelve".split() if one != word[0]]  # noqa: SIM905
        return value[: word.start()] + drawn.choice(others) + value[word.end() :]
    digits = number.group()
    first = str((int(digits[0]) + drawn.randint(1, 7)) % 9 + 1)
    other = first + digits[1:]
    return None if other == digits else value[: number.start()] + other + value[number.end() :]


def _reworded(text: str, gold: GoldSpan, other: str, drawn: random.Random) -> str | None:
    """The sentence with the answer and one beside it, in other words and with the other value."""
    spans = list(sentence_spans(text))
    at = next((place for place, (start, end) in enumerate(spans) if start <= gold.start and gold.end <= end), None)
    if at is None:
        return None
    kept = [at, *([at + 1] if at + 1 < len(spans) else [])] if drawn.random() < 0.5 else [*([at - 1] if at else []), at]
    written = []
    for place in kept:
        sentence = text[slice(*spans[place])].strip()
        if place == at:
            opening = drawn.choice(_OPENINGS)
            sentence = "".join(_exchanged(sentence))
            if opening and sentence[:4] in {"The ", "In t", "It w"}:
                sentence = opening + sentence[0].lower() + sentence[1:]
            elif opening:
                sentence = opening + sentence
        written.append(sentence.replace(gold.text, other))
    return " ".join(written) if other in " ".join(written) else None


def _exchanged(sentence: str) -> Iterator[str]:
    pattern = re.compile(rf"\b(?:{'|'.join(_EXCHANGED)})\b")
    yield pattern.sub(lambda match: _EXCHANGED[match.group()], sentence)
