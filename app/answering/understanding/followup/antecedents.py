"""Finds the antecedents of references in earlier exchanges: things, people, places, years.

The latest candidate of a fitting form is chosen. Hobbs (1978, "Resolving pronoun references", Lingua 44) measured the
accuracy of recency and form without understanding.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from app.answering.languages.noun_phrases import (
    FUNCTION_WORDS,
    TIMES,
    head,
    names,
    plural,
    topic,
    words,
)
from app.answering.understanding.followup.people import role, with_name
from retrieval.footnote_numbers import without_markers

Kind: TypeAlias = Literal["thing", "person", "several", "place"]

_LOOK_BACK = 4  # exchanges
_BRIEF = 12  # most words of an answer that is hardly more than a name
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_ARTICLE = re.compile(r"\b(?:the|a|an)\s+$", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:in|at|to|from|near)\s+(?:the\s+)?$")
_PEOPLE = r"person|man|woman|author|artist|player|leader|scientist|singer|writer|president|king|queen"
_WHO = re.compile(rf"\W*(?:who|whose|whom|(?:which|what)\s+(?:{_PEOPLE})s?)\b", re.IGNORECASE)
# A verb has its object behind it: "What caused the fire?" asks for no name.
_WHICH = re.compile(
    r"\W*(?:(?:in|at|from)\s+)?(?:which|what)\s+(?!is\b|are\b|was\b|were\b|did\b|does\b|do\b)"
    r"[a-z]+\b(?!\s+(?:to|the|an?|this|that|his|her|its|their)\b)",
    re.I,
)
_WHAT_IS = re.compile(r"\W*what(?:'s|\s+is|\s+was)\s+the\s++[a-z]++\b", re.IGNORECASE)
_COUNTED = re.compile(r"\W*(?:which|what|how many)\s+((?:[a-z-]+\s+){0,2}?[a-z-]+)\s+(?=[a-z])", re.IGNORECASE)
_OWNER = re.compile(r"(?:.*\bof (?:the )?|)(?P<name>[^a-z].*?)(?:['’]s .+|)$")
# Words and names have limits, so that the time does not grow with the square of a text's length.
_NAME = r"[A-ZÀ-ÞŁŚŻ][\w-]{1,60}(?: [A-ZÀ-ÞŁŚŻ][\w-]{1,60}){0,7}"
_PHRASE_ENDS = r"(?= (?:is|are|was|were|did|has|have|had|rose|fell|in|of|by|to)\b|[.,?!]|$)"
_NAMED = (
    re.compile(rf"\b[Tt]he (?:[a-z-]+ ){{1,3}}(?:of|in|at|from|near) (?:the )?{_NAME}"),
    re.compile(rf"\b{_NAME}['’]s [a-z-]+{_PHRASE_ENDS}"),
    re.compile(rf"\b[Tt]he {_NAME} [a-z-]+{_PHRASE_ENDS}"),
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, rewritten to stand alone, its answer, and the passages that the answer cites, "" where unknown."""

    question: str
    answer: str
    cited: str = ""


def antecedent(kind: Kind, before: Sequence[Exchange]) -> str | None:
    """The text that replaces a pronoun of this kind; None if no exchange has an antecedent."""
    finders = {"person": _person, "several": _several, "place": _place, "thing": _thing}
    return finders[kind](before)


def owner(kind: Kind, before: Sequence[Exchange]) -> str | None:
    """The text that replaces a possessive: `France` for "its", after `the population of France`."""
    found = antecedent(kind, before)
    match = _OWNER.fullmatch(found) if kind == "thing" and found is not None else None
    return match["name"] if match is not None else found


def named(noun: str, before: Sequence[Exchange]) -> str | None:
    """The latest noun phrase with this noun and a name in it: `the plant in Oslo` for `plant`."""
    wanted = {noun, noun.removesuffix("s")}
    for exchange in _latest(before):
        texts = exchange.question, _answer_text(exchange), exchange.cited
        for phrase in (topic(exchange.question), *(phrase for text in texts for phrase in _named_in(text))):
            if phrase is not None and head(phrase) in wanted and any(word.capital for word in words(phrase)):
                return phrase
    return None


def name(before: Sequence[Exchange], *, of_person: bool) -> str | None:
    """The latest name that an exchange is about."""
    if of_person:
        return _person(before)
    for exchange in _latest(before):
        focus = None if _WHO.match(exchange.question) else _focus(exchange)
        found = focus or next(iter(names(exchange.question)), None)
        if found is not None:
            return found
    return None


def year(before: Sequence[Exchange]) -> str | None:
    """The latest year; within one exchange the year of the answer, of the question, of the cited passages."""
    for exchange in _latest(before):
        for text in (_answer_text(exchange), exchange.question, exchange.cited):
            if found := _YEAR.search(text):
                return found.group()
    return None


def _latest(before: Sequence[Exchange]) -> list[Exchange]:
    return list(reversed(before[-_LOOK_BACK:]))


def _named_in(text: str) -> list[str]:
    found = [match.group() for pattern in _NAMED for match in pattern.finditer(text)]
    return [f"the{phrase[3:]}" if phrase.startswith("The ") else phrase for phrase in found]


def _focus(exchange: Exchange) -> str | None:
    """The name that the question asked for: a name that only the answer contains."""
    answer = _answer_text(exchange)
    asked = exchange.question.casefold()
    new = [found for found in names(answer) if found.casefold() not in asked]
    if not new or answer.casefold().startswith("according to"):
        return None
    if _WHO.match(exchange.question) or _WHICH.match(exchange.question):
        return new[0]
    brief = len(words(answer)) <= _BRIEF and not any(letter.isdigit() for letter in answer)
    return new[0] if brief and _WHAT_IS.match(exchange.question) else None


def _thing(before: Sequence[Exchange]) -> str | None:
    for exchange in _latest(before):
        focus = None if _WHO.match(exchange.question) else _focus(exchange)
        phrase = topic(exchange.question)
        if phrase is not None and words(phrase)[0].low in TIMES:
            phrase = None
        if phrase is not None and role(phrase) == phrase:  # "it" is no person, but what the person was asked about
            counted = _COUNTED.match(exchange.question)
            phrase = f"{phrase}'s {counted[1]}" if counted is not None else None
        found = focus or phrase or next(chain(names(exchange.question), _answer_names(exchange)), None)
        if found is not None:
            return found
    return None


def _person(before: Sequence[Exchange]) -> str | None:
    """The latest person: a name in the question, a role in it, then what the answer and its passages name."""
    for exchange in _latest(before):
        focus = _focus(exchange) if _WHO.match(exchange.question) else None
        asked = role(exchange.question)
        people = [found for found in names(exchange.question) if _may_be_person(exchange.question, found)]
        people = [found for found in people if asked is None or found not in asked]
        found = focus or _full(people) or next(iter(people), None)
        if found is not None or asked is not None:
            return found or with_name(asked or "", f"{_answer_text(exchange)} {exchange.cited}")
        for text in (_answer_text(exchange), exchange.cited):
            # One capitalised word of an answer is as likely a thing's name.
            found = _full([name for name in names(text) if _may_be_person(text, name)]) or role(text)
            if found is not None:
                return found
    return None


def _full(people: Sequence[str]) -> str | None:
    """The first name of several words."""
    return next((name for name in people if " " in name), None)


def _several(before: Sequence[Exchange]) -> str | None:
    for exchange in _latest(before):
        counted = _COUNTED.match(exchange.question)
        if counted and plural(counted[1]) and not set(counted[1].lower().split()) & FUNCTION_WORDS:
            return f"the {counted[1]}"
        phrase = topic(exchange.question)
        if phrase is not None and (plural(phrase) or role(phrase) == phrase):
            return phrase
        focus = _focus(exchange) if _WHO.match(exchange.question) else None
        if focus is not None:
            both = " and ".join(_answer_names(exchange)[:2])
            return both if both in exchange.answer else focus
    return _thing(before)


def _place(before: Sequence[Exchange]) -> str | None:
    for exchange in _latest(before):
        places = [
            found
            for text in (_answer_text(exchange), exchange.question, exchange.cited)
            for found in names(text)
            if _is_place(text, found)
        ]
        focus = None if _WHO.match(exchange.question) else _focus(exchange)
        found = focus or next(iter(places), None) or next(iter(names(exchange.question)), None)
        if found is not None:
            return found
    return None


def _may_be_person(text: str, found: str) -> bool:
    return not _is_place(text, found) and not _ARTICLE.search(text[: text.find(found)])


def _is_place(text: str, found: str) -> bool:
    return bool(_PLACE.search(text[: text.find(found)]))


def _answer_names(exchange: Exchange) -> list[str]:
    return names(_answer_text(exchange))


def _answer_text(exchange: Exchange) -> str:
    """The earlier answer without its footnote markers."""
    return without_markers(exchange.answer).strip()
