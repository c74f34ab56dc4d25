"""A conversation as Markdown to take along: questions, answers, and an appendix with the passages they cite.

Footnotes are numbered through the whole conversation. The appendix has each footnote's document, place and exact words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from app.answering.answers.parts import QuotePart, of_kind
from app.answering.conversations.answer_record import AnswerRecord
from app.api.schemas.kept_citations import Places, holds, kept_citation
from app.types import Conversation, KeptTurn

_ACCEPTED = frozenset(("*/*", "text/*", "text/markdown"))
_SIGNS = re.compile(r"[\\`*_\[\]<>|~#$!]")
_LIST_SIGN = re.compile(r"^([-+=]|[0-9]{1,9}[.)])", re.MULTILINE)
_SINCE = {
    "moved": "unchanged in {now}",
    "altered": "altered since",
    "gone": "no longer in the document",
}
_LOADING = re.compile(r"!\[|<(?=[A-Za-z/!?])")


def accepts_markdown(accept: str) -> bool:
    """Whether an `Accept` header allows `text/markdown`; an empty one allows everything."""
    ranges = {part.partition(";")[0].strip().lower() for part in accept.split(",")} - {""}
    return not ranges or bool(ranges & _ACCEPTED)


def conversation_markdown(conversation: Conversation, turns: Sequence[KeptTurn], places: Places) -> str:
    """The conversation as a Markdown text; `places` are those of the passages that its turns cite.

    What documents and models say can load nothing and looks like nothing else where it is put: HTML and images are
    escaped in answers, all of Markdown in questions and quoted words.
    """
    title = conversation.title or "Conversation"
    parts = [f"# {_line(title)}", f"{_day(conversation.created_at)}, {conversation.user_id}"]
    passages: list[str] = []
    for turn in turns:
        parts += [f"## {_line(turn.question)}", _answer(turn, first=len(passages) + 1)]
        passages += [_passage(kept_citation(one, places), sure and holds(one, places)) for one, sure in _cited(turn)]
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
    state = citation["state"]
    now = f"version {citation['current_version']}{_page_now(citation)}"
    if state in _SINCE:
        facts.append(_SINCE[state].format(now=now))
    elif state is None and citation["current_version"] is not None:
        facts.append(f"{now} not compared yet")
    if not confirmed:
        facts.append("not confirmed")
    head = f"{', '.join(facts)}:"
    if state != "altered":
        return f"{head}\n\n{_quoted(_escaped(str(citation['cited_text'])))}"
    runs = citation["changes"]
    before, after = _marked(runs, "removed", "~~"), _marked(runs, "added", "**")
    return f"{head}\n\n{_quoted(before)}\n\n    Now, in {now}:\n\n{_quoted(after)}"


def _page_now(citation: Mapping[str, Any]) -> str:
    first, last = citation["current_page_start"], citation["current_page_end"]
    if first is None:
        return ""
    return f", page {first}" if last in {None, first} else f", pages {first}–{last}"


def _marked(runs: Sequence[Mapping[str, str]], kind: str, sign: str) -> str:
    """One of two wordings, with a sign around the words that only it has."""
    pieces = []
    for run in runs:
        text = _escaped(run["text"])
        if run["kind"] == kind and text.strip():
            bare = text.strip()
            text = text.replace(bare, f"{sign}{bare}{sign}", 1)
        if run["kind"] in {"equal", kind}:
            pieces.append(text)
    return "".join(pieces)


def _escaped(text: str) -> str:
    return _LIST_SIGN.sub(r"\\\1", _SIGNS.sub(r"\\\g<0>", text))


def _quoted(text: str) -> str:
    return "\n".join(f"    > {line}".rstrip() for line in text.splitlines())


def _inert(text: str) -> str:
    return _LOADING.sub(lambda found: "!\\[" if found[0] == "![" else "\\<", text)


def _line(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()
