"""A conversation as Markdown to take along: questions, answers, and an appendix with the passages they cite.

Footnotes are numbered through the whole conversation. The appendix has each footnote's document, place and exact words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from app.answering.answers.parts import QuotePart, of_kind
from app.answering.conversations.answer_record import AnswerRecord
from app.types import Conversation, KeptTurn

_ACCEPTED = frozenset(("*/*", "text/*", "text/markdown"))
_SIGNS = re.compile(r"[\\`*_\[\]<>|~#$!]")
_LIST_SIGN = re.compile(r"^([-+=]|[0-9]{1,9}[.)])", re.MULTILINE)
_LOADING = re.compile(r"!\[|<(?=[A-Za-z/!?])")


def accepts_markdown(accept: str) -> bool:
    """Whether an `Accept` header allows `text/markdown`; an empty one allows everything."""
    ranges = {part.partition(";")[0].strip().lower() for part in accept.split(",")} - {""}
    return not ranges or bool(ranges & _ACCEPTED)


def conversation_markdown(conversation: Conversation, turns: Sequence[KeptTurn]) -> str:
    """The conversation as a Markdown text.

    What documents and models say can load nothing and looks like nothing else where it is put: HTML and images are
    escaped in answers, all of Markdown in questions and quoted words.
    """
    title = conversation.title or "Conversation"
    parts = [f"# {_line(title)}", f"{_day(conversation.created_at)}, {conversation.user_id}"]
    passages: list[str] = []
    for turn in turns:
        parts += [f"## {_line(turn.question)}", _answer(turn, first=len(passages) + 1)]
        passages += [_passage(citation, confirmed) for citation, confirmed in _cited(turn)]
    if passages:
        parts.append("## Passages")
        parts += [f"[^{number}]: {passage}" for number, passage in enumerate(passages, start=1)]
    return "\n\n".join(parts) + "\n"


def _cited(turn: KeptTurn) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The turn's citations in the order of their marks, and whether their passages say what the answer says."""
    record = AnswerRecord.of_turn(turn)
    quotes = [] if record is None else of_kind(record.parts, QuotePart)
    for citation in _placed(turn):
        at = int(citation["answer_start"])
        own_words = any(quote.quoted.end_char <= at < quote.end_char for quote in quotes)
        yield citation, bool(citation.get("verified")) or own_words


def _placed(turn: KeptTurn) -> list[Mapping[str, Any]]:
    """The citations that have a place in the answer, in its order and apart from each other."""
    placed: list[Mapping[str, Any]] = []
    last = 0
    citations: list[Mapping[str, Any]] = [citation for citation in turn.citations if "answer_start" in citation]
    for citation in sorted(citations, key=lambda one: int(one["answer_start"])):
        start, end = int(citation["answer_start"]), int(citation["answer_end"])
        if last <= start < end <= len(turn.answer):
            placed.append(citation)
            last = end
    return placed


def _answer(turn: KeptTurn, *, first: int) -> str:
    """The answer with Markdown's footnotes for its marks, numbered from `first`."""
    pieces: list[str] = []
    last = 0
    for number, citation in enumerate(_placed(turn), start=first):
        pieces += [_inert(turn.answer[last : int(citation["answer_start"])]), f"[^{number}]"]
        last = int(citation["answer_end"])
    return "".join([*pieces, _inert(turn.answer[last:])]).strip()


def _passage(citation: Mapping[str, Any], confirmed: bool) -> str:
    facts = [f"**{_line(str(citation['filename']))}**"]
    first, last, sheet, cell = (citation.get(name) for name in ("page_start", "page_end", "sheet", "cell"))
    if sheet is not None:
        facts.append(f"sheet {_line(str(sheet))}" + (f", {cell}" if cell is not None else ""))
    elif first is not None:
        facts.append(f"page {first}" if last in {None, first} else f"pages {first}–{last}")
    facts.append(f"version {citation['version']}, characters {citation['start_char']}–{citation['end_char']}")
    if not confirmed:
        facts.append("not confirmed")
    lines = _LIST_SIGN.sub(r"\\\1", _SIGNS.sub(r"\\\g<0>", str(citation["cited_text"]))).splitlines()
    quote = "\n".join(f"    > {line}".rstrip() for line in lines)
    return f"{', '.join(facts)}:\n\n{quote}"


def _inert(text: str) -> str:
    return _LOADING.sub(lambda found: "!\\[" if found[0] == "![" else "\\<", text)


def _line(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()
