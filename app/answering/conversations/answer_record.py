"""How an answer was produced, as it is stored with its turn; records of earlier versions are brought up to date."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from app.answering.answers.answer import AbstentionReport, Answer, SourceReport, WindowUse, Words
from app.answering.answers.parts import (
    AnyPart,
    CitedConflict,
    ClarifyPart,
    JsonPart,
    LeadPart,
    NoteCode,
    NotePart,
    ProsePart,
    QuotePart,
    Reason,
    RefusedPart,
    ReplyPart,
    cited,
)
from app.answering.languages.which_document import asks_which_document
from app.answering.metering.token_usage import Purpose, TokenUsage
from app.types import KeptTurn
from retrieval.types import Span


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The fields of an `Answer` other than its text and footnotes, with their values at its end.

    Its bill is the one the client was sent; after a correction of prices the ledger's may differ.
    """

    model: str
    reason: Reason | None
    finish_reason: str
    abstention: AbstentionReport
    sources: SourceReport
    usage: TokenUsage
    budget: WindowUse
    timings_ms: Mapping[str, float | None]
    parts: tuple[Annotated[AnyPart, Field(discriminator="kind")], ...]
    probability: Annotated[float | None, Field(alias="answers")] = None  # none in answers from before it was estimated
    conflicts: tuple[CitedConflict, ...] = ()

    @property
    def words(self) -> Words:
        """What became of a language model's words."""
        return Words.of(self.usage, self.abstention, self.reason)

    @classmethod
    def of(cls, answer: Answer) -> "AnswerRecord":
        """The record of `answer`."""
        return cls(**{field.name: getattr(answer, field.name) for field in fields(cls)})

    @classmethod
    def of_turn(cls, turn: KeptTurn) -> "AnswerRecord | None":
        """The record that was stored with a turn, brought up to date; None for a turn from before there were any."""
        if turn.making is None:
            return None
        return _KEPT.validate_python(_with_parts(_with_calls(turn.making), turn))

    def as_json(self) -> dict[str, object]:
        """The record in JSON types."""
        made: dict[str, object] = _KEPT.dump_python(self, mode="json", by_alias=True)
        return made


_KEPT = TypeAdapter(AnswerRecord)

_HELPERS = {
    "rewrite_tokens": Purpose.REWRITE,
    "embedding_tokens": Purpose.EMBED_QUERY,
    "rerank_tokens": Purpose.RERANK,
    "summary_tokens": Purpose.SUMMARISE,
    "locate_tokens": Purpose.LOCATE,
    "extract_tokens": Purpose.EXTRACT,
    "verify_tokens": Purpose.VERIFY,
}
"""The fields of usage in earlier records that counted a purpose's tokens, read and written together."""


def _with_calls(kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record whose usage lists its calls. Earlier ones counted tokens by purpose, without the helpers' models."""
    usage = kept["usage"]
    if "calls" in usage:
        return kept
    calls = [
        {"purpose": purpose, "model": "", "prompt_tokens": usage[field]}
        for field, purpose in _HELPERS.items()
        if usage.get(field)
    ]
    read, written = sum(usage["components"].values()), usage["completion_tokens"]
    if read + written:
        answering = {"prompt_tokens": read, "cached_tokens": usage["cached_tokens"], "completion_tokens": written}
        calls.append({"purpose": Purpose.ANSWER, "model": kept["model"], **answering})
    return {**kept, "model": kept["model"] if read + written else "", "usage": {**usage, "calls": calls}}


def _with_parts(kept: Mapping[str, Any], turn: KeptTurn) -> Mapping[str, Any]:
    """A record with the parts of its answer. Earlier ones had quoted and uncited characters, and those of the lead."""
    if "parts" in kept:
        return kept
    earlier = {name: kept[name] for name in kept if name not in {"quoted", "uncited", "lead"}}
    return {**earlier, "parts": _KEPT_PARTS.dump_python(earlier_parts(kept, turn), mode="json")}


def earlier_parts(kept: Mapping[str, Any], turn: KeptTurn) -> tuple[AnyPart, ...]:
    """The parts of an answer whose record has none: its lead, its quotes, and what is before them as one part."""
    citations: Sequence[Mapping[str, Any]] = turn.citations
    markers = [Span(one["answer_start"], one["answer_end"]) for one in citations if "answer_start" in one]

    def behind(end: int) -> int:
        """Where the marker ends that follows `end` with nothing but signs between."""
        first = min((one for one in markers if one.start_char >= end), key=lambda one: one.start_char, default=None)
        if first is not None and _SIGNS.fullmatch(turn.answer[end : first.start_char]):
            return first.end_char
        return end

    parts: list[AnyPart] = []
    start = 0
    if (lead := kept.get("lead")) is not None:
        words = Span(lead["start_char"], lead["end_char"])
        start = behind(words.end_char)
        parts.append(LeadPart(start_char=0, end_char=start, words=words))
    quotes: list[AnyPart] = []
    for quote in sorted(kept.get("quoted", ()), key=lambda one: int(one["start_char"])):
        quoted = Span(quote["start_char"], quote["end_char"])
        marks = tuple(Span(one["start_char"], one["end_char"]) for one in quote.get("highlights", ()))
        end = behind(quoted.end_char)
        answers = quote.get("answers")
        begins = quoted.start_char - turn.answer.startswith("“", max(0, quoted.start_char - 1))
        quotes.append(QuotePart(start_char=begins, end_char=end, quoted=quoted, answers=answers, highlights=marks))
    end = quotes[0].start_char if quotes else len(turn.answer)
    own = turn.answer[start:end].rstrip("> \n")
    if own.strip():
        parts.append(_own_part(kept, own, start + len(own) - len(own.lstrip()), start + len(own), cites=bool(markers)))
    return cited([*parts, *quotes], markers)


def _own_part(kept: Mapping[str, Any], text: str, start: int, end: int, *, cites: bool) -> AnyPart:
    """What is no quote of an answer whose record has no parts: a text from `start` to `end` of it."""
    reason = None if kept["reason"] is None else Reason(kept["reason"])
    if asks_which_document(text):
        return ClarifyPart(start_char=start, end_char=end)
    if _is_json(text):
        return JsonPart(start_char=start, end_char=end)
    if reason is Reason.UNSURE:
        return NotePart(start_char=start, end_char=end, code=NoteCode.NEAREST_PASSAGES)
    if reason is not None and reason.refuses:
        return RefusedPart(start_char=start, end_char=end, reason=reason)
    if not cites and not kept["usage"]["calls"]:
        return ReplyPart(start_char=start, end_char=end)
    uncited = tuple(Span(one["start_char"], one["end_char"]) for one in kept.get("uncited", ()))
    return ProsePart(start_char=start, end_char=end, uncited=uncited)


def _is_json(text: str) -> bool:
    try:
        return text.startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):  # no JSON, or nested without end
        return False


_KEPT_PARTS = TypeAdapter(tuple[AnyPart, ...])
_SIGNS = re.compile(r"[>\s”*]*")
