"""Drafts questions from the sentences of an English document by rule: "X was founded in 1912" -> "When was X founded?".

Each rule turns one form of sentence into a question and says where its answer stands. Whether the document answers a
draft is not decided here, but by asking it (`app.suggestions.checking`).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.suggestions.subjects import Spelling, Subject, subject_of
from retrieval.types import Span

Form = Literal["time", "place", "number", "person", "meaning", "value", "content"]
"""The kind of thing a draft asks for; suggestions differ in it where they can."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question, and the characters of its sentence that answer it. `form` is what it asks for."""

    question: str
    answer: Span
    form: Form


MOST_CHARS = 350
"""The longest sentence that is turned into a question; a longer one is no answer that one reads at a glance."""

Written: TypeAlias = "str | tuple[str, Form] | None"
Write = Callable[["re.Match[str]", Subject], Written]


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of sentence: a pattern with the groups `subject` and `answer`, and the question it is turned into.

    `write` gets the match and its subject, and returns the question, with a form of its own where that differs; None
    where the sentence is something else.
    """

    pattern: "re.Pattern[str]"
    form: Form
    write: Write

    def drafts(self, sentence: str, spelling: Spelling) -> Iterator[Draft]:
        """The questions that a sentence of this form answers, none for every other.

        Where the clause says more behind the answer (the group `tail`), the first question has it too: it is surer.
        """
        if len(sentence) > MOST_CHARS:
            return
        match = self.pattern.match(sentence)
        if match is None or (subject := subject_of(match["subject"], spelling)) is None:
            return
        written = self.write(match, subject)
        if written is None:
            return
        question, form = written if isinstance(written, tuple) else (written, self.form)
        answer = Span(*match.span("answer"))
        if tail := match.groupdict().get("tail"):
            yield Draft(f"{question.removesuffix('?')}{tail}?", answer, form)
        yield Draft(question, answer, form)


def any_of(words: "dict[str, str]") -> str:
    """A regular expression that matches one of the keys, the longest first."""
    return "(?:" + "|".join(re.escape(one) for one in sorted(words, key=len, reverse=True)) + ")"


MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"  # as they are written
)
DATE = (
    rf"(?:\d{{1,2}} {MONTH}(?:,? \d{{4}})?|{MONTH} \d{{1,2}}(?:, \d{{4}})?|{MONTH} \d{{4}}"
    r"|the (?:early |late )?\d{4}s|(?:1[5-9]|20)\d\d)(?![\w,.]?\d|-)"
)
"""A day, a month of a year, a year or a decade."""
_ABOUT = r"(?:(?:about|approximately|around|nearly|almost|over|more than|less than|up to|at least|only) )?"
_MILLIONS = r"(?: (?:thousand|million|billion|trillion))?"
NUMBER = (
    rf"{_ABOUT}(?:(?:US)?[$€£] ?\d[\d,.]*{_MILLIONS}|\d[\d,.]*{_MILLIONS}(?: ?%| percent| per cent)?)"
    r"(?<![,.])(?![\w-])"
)
"""An amount, in money, per cent or plain."""
COUNT = (
    rf"{_ABOUT}(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,4}}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen"
    rf"|twenty|thirty|forty|fifty){_MILLIONS}"
)
"""A number of things."""
THINGS = (
    r"(?P<things>(?!more\b|other\b|additional\b|of\b)(?:[a-z-]+ ){0,2}?(?:[a-z-]+s|people|staff|children|women|men))"
    r"(?=[,.;:]|$| (?:and|in|on|at|for|of|from|with|to|who|that|which|between|across|per|each|every|as|were|are"
    r"|during|by|over|within|after|before|since|into)\b)"
)
"""A plural noun, with an adjective or two."""
TAIL = (
    r"(?P<tail> (?:in|on|at|as|by|for|from|across|during|to|between|with|after|near|under)"
    r" (?:(?! and | which | who | that | but | this | these )[^,.;:()\d]){3,70}(?<! [A-Za-z])(?=[,.;]| \(|$))?"
)
"""The words behind an answer that say where, for what or by whom, up to the end of the clause."""
