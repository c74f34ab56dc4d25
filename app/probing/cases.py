"""The forty questions that a language model is classed by, and whether a reply answers one (`cases.toml`)."""

import hashlib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from app.answering.languages.refusals import refuses
from retrieval.footnote_numbers import header_of, number_at, without_markers
from retrieval.types import Chunk, Context, Hit, Scores, Source, Span

_FILE = Path(__file__).with_name("cases.toml")
_LINE = re.compile(r"^ {0,8}(?:[-*+•]|\d{1,2}[.)]|\|) ?\S", re.MULTILINE)
_RULE = re.compile(r"^ {0,8}\|[ :|-]{3,200}$", re.MULTILINE)


class Needs(StrEnum):
    """What a question needs.

    Attributes:
        FACT: One source says it.
        JOINS: Two sources say it together.
        FORM: A list or a table of what the sources say.
        NONE: No source says it.
    """

    FACT = "fact"
    JOINS = "joins"
    FORM = "form"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCase:
    """A question about invented documents, with its answer.

    Attributes:
        kind: What it needs.
        question: Its text.
        sources: Name and text of each source, in the order in which they are read.
        answer: Groups of spellings; one spelling of each group is in an answer.
        wrong: Spellings of what a model says that reads the wrong place.
        lines: The least number of list items, or of rows of a table below its head.
    """

    kind: Needs
    question: str
    sources: tuple[tuple[str, str], ...]
    answer: tuple[tuple[str, ...], ...] = ()
    wrong: tuple[str, ...] = ()
    lines: int = 0

    def answered_by(self, reply: str) -> bool:
        """Whether a reply has the whole answer, before anything wrong, and in the form that is asked for.

        A question that the sources do not answer is answered by none.
        """
        text = without_markers(reply).casefold()
        firsts = [min((_place(text, one) for one in group), default=len(text)) for group in self.answer]
        if not firsts or max(firsts) == len(text):
            return False
        rows = len(_LINE.findall(reply)) - 2 * len(_RULE.findall(reply))  # a rule has a head above it
        return rows >= self.lines and all(_place(text, one) > max(firsts) for one in self.wrong)

    def declined_by(self, reply: str) -> bool:
        """Whether a reply says that the sources hold no answer."""
        return refuses(reply, cited=False)

    def context(self, count_tokens: Callable[[str], int]) -> Context:
        """Its sources as they stand in a prompt."""
        sources = tuple(_source(place, *one, count_tokens) for place, one in enumerate(self.sources))
        return Context(sources=sources, dropped=(), tokens=sum(source.tokens for source in sources))


@cache
def cases() -> tuple[ProbeCase, ...]:
    """All cases; those of the same sources follow each other, so that an engine need not read the sources again."""
    return tuple(_case(one, found["sources"]) for found in _sets() for one in found["question"])


@cache
def cases_digest() -> str:
    """SHA-256 of the file of cases: results of other cases cannot be compared with theirs."""
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()


def _sets() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["set"]
    return found


def _case(found: dict[str, Any], sources: list[list[str]]) -> ProbeCase:
    return ProbeCase(
        kind=Needs(found["kind"]),
        question=found["text"],
        sources=tuple((name, text.strip()) for name, text in sources),
        answer=tuple(map(tuple, found.get("answer", ()))),
        wrong=tuple(found.get("wrong", ())),
        lines=found.get("lines", 0),
    )


def _place(text: str, spelling: str) -> int:
    """Where a spelling stands in a case-folded text by itself, not within a word or number; its end where nowhere."""
    alone = re.compile(rf"(?<!\w)(?<!\d[.,:]){re.escape(spelling.casefold())}(?!\w|[.,:]\d)")
    found = alone.search(text)
    return len(text) if found is None else found.start()


def _source(place: int, name: str, text: str, count_tokens: Callable[[str], int]) -> Source:
    chunk = Chunk.of_text(text, key=place, filename=name)
    header = header_of(number_at(place), chunk)
    return Source(
        number=number_at(place),
        hit=Hit(chunk, Scores(fused=1.0)),
        spans=(Span(0, len(text)),),
        header=header,
        body=text,
        tokens=count_tokens(header) + count_tokens(text),
        compressed=False,
    )
