"""Judges one response of `POST /v1/ask`: is the first thing it shows right, are three, and does a mark confirm them?

A passage is right if the question's pattern occurs in it and one of its footnotes cites a document with the answer. The
first thing shown is the lead, if there is one, and the first quote. An answer without quotes is judged by its text up
to the first footnote, and as a whole.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.bench.service.plain_questions.questions import Question

Outcome = Literal["answered", "unsure", "refused", "failed"]

QUOTES = 3
"""So many quotes may be shown, the likeliest first."""

_REFUSALS = {"no_evidence", "not_in_sources", "not_verified"}


@dataclass(frozen=True, slots=True)
class Passage:
    """Text that is shown, and the names of the files that its footnotes cite."""

    text: str
    files: frozenset[str]

    def answers(self, question: Question) -> bool:
        """Whether it holds the answer, from a document that has it."""
        if question.pattern is None:
            return False
        return bool(self.files & question.filenames and re.search(question.pattern, _plain(self.text), re.IGNORECASE))


@dataclass(frozen=True, slots=True)
class Shown:
    """What a response shows: its lead, if any, and the passages below it, the likeliest first."""

    lead: Passage | None
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one response was judged.

    `first` and `three` are about what was shown, also if the outcome is "unsure"; `lead` is None without a lead.
    `marked` says that at least one footnote is verified, also if the outcome is "unsure".
    """

    outcome: Outcome
    first: bool
    three: bool
    lead: bool | None
    marked: bool


def judge(question: Question, body: Mapping[str, Any]) -> Verdict:
    """The verdict on a response's body."""
    shown, outcome = shown_by(body), _outcome(body)
    if outcome in {"refused", "failed"}:
        return Verdict(outcome, first=False, three=False, lead=None, marked=False)
    lead = shown.lead.answers(question) if shown.lead is not None else None
    right = [passage.answers(question) for passage in shown.passages[:QUOTES]]
    return Verdict(
        outcome,
        first=bool(lead) or any(right[:1]),
        three=bool(lead) or any(right),
        lead=lead,
        marked=any(citation["verified"] for citation in body["citations"]),
    )


def shown_by(body: Mapping[str, Any]) -> Shown:
    """What a response shows, cut into passages at its quoted spans and their markers."""
    answer: str = body["answer"]
    citations: Sequence[Mapping[str, Any]] = sorted(body["citations"], key=lambda one: one["answer_start"])
    spans: Sequence[Mapping[str, Any]] = body.get("quoted_spans") or ()
    if not spans:
        parts = _parts(answer, 0, len(answer), citations)
        every = Passage(answer, frozenset(citation["filename"] for citation in citations))
        return Shown(None, (*parts[:1], every))
    starts = sorted(span["start"] for span in spans)
    passages: list[Passage] = []
    for span in spans:
        limit = next((start for start in starts if start > span["start"]), len(answer))
        own = [citation for citation in citations if span["start"] <= citation["answer_start"] < limit]
        passages += _parts(answer, span["start"], span["end"], own)
    return Shown(_lead(body, citations, starts[0], passages), tuple(passages))


def _lead(
    body: Mapping[str, Any], citations: Sequence[Mapping[str, Any]], quotes_start: int, passages: Sequence[Passage]
) -> Passage | None:
    """The lead, or else the text above the first quote; without a footnote of its own it has the first quote's."""
    answer, span = body["answer"], body.get("lead")
    start, end = (span["start"], span["end"]) if span else (0, quotes_start)
    if not _says(answer[start:end]):
        return None
    limit = max(end, quotes_start)
    files = frozenset(one["filename"] for one in citations if start <= one["answer_start"] < limit)
    return Passage(answer[start:end], files or (passages[0].files if passages else frozenset()))


def _parts(answer: str, start: int, end: int, citations: Sequence[Mapping[str, Any]]) -> list[Passage]:
    """The text from `start` to `end`, cut behind its markers; the text behind the last one is a part without files."""
    found: list[Passage] = []
    for citation in citations:
        text = answer[start : min(citation["answer_start"], end)]
        if _says(text):
            found.append(Passage(text, frozenset({citation["filename"]})))
        elif found:
            found[-1] = Passage(found[-1].text, found[-1].files | {citation["filename"]})
        start = citation["answer_end"]
    if _says(answer[start:end]):
        found.append(Passage(answer[start:end], frozenset()))
    return found


def _outcome(body: Mapping[str, Any]) -> Outcome:
    if body["answered"]:
        return "answered"
    if body["reason"] == "unsure":
        return "unsure"
    return "refused" if body["reason"] in _REFUSALS else "failed"


def _says(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _plain(text: str) -> str:
    """Compatibility characters replaced (Unicode's NFKC), Markdown's marks and escapes removed, one space each."""
    text = unicodedata.normalize("NFKC", text)
    return " ".join(re.sub(r"\\(?=[^\w\s])|\*\*|(?m:^\s*>\s?)", "", text).split())
