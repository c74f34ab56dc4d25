"""Special cases in one request each: refusals, options, failures of the engine, and what a request cannot ask for."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generation.types import FinishReason
from tests.golden.application import Application
from tests.golden.ledger import settled_rows
from tests.golden.masking import Masks
from tests.golden.questions import QUESTIONS
from tests.golden.recording import Kept
from tests.golden.script import Script

QUESTION = "How many ships did the harbour master log in May?"
_UNSURE = "How deep is the harbour of Morven?"
_OFF = "Which enzyme splits milk sugar?"
_SCHEMA = {"type": "object", "properties": {"ships": {"type": "integer"}}, "required": ["ships"]}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "ships", "schema": _SCHEMA}}
_LONG = "why " * 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """One request with its own fields; the field `document` asks of one document alone.

    Attributes:
        name: The first part of the case's name.
        modes: The answer modes it is asked in.
        fields: The fields of the body besides the question.
        question: What is asked.
        ways: `whole`, `stream`, `chat`, `chat-stream`.
        script: What the engine does.
        times: How often it is asked; the last answer is kept.
        conversation: Whether it is asked in a conversation, after the same question.
        failed: Whether a record of its failure is waited for.
    """

    name: str
    modes: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    question: str = QUESTION
    ways: tuple[str, ...] = ("whole", "stream")
    script: Mapping[str, Any] = field(default_factory=dict)
    times: int = 1
    conversation: bool = False
    failed: bool = False


_ALL = ("quotes", "default", "generated", "strict")
_WORDS = ("default", "generated")
_EVERY_WAY = ("whole", "stream", "chat", "chat-stream")
_ERROR: Mapping[str, Any] = {"ends": FinishReason.ERROR}

SPECIALS: tuple[Special, ...] = (
    # What quotes cannot answer: refused without a language model, generated with one
    Special(name="without-evidence", modes=_ALL, question=_OFF, fields={"on_no_evidence": "answer"}),
    Special(name="own-schema", modes=_ALL, fields={"format": "json", "json_schema": _SCHEMA}),
    Special(name="own-schema-off", modes=_WORDS, question=_OFF, fields={"format": "json", "json_schema": _SCHEMA}),
    Special(
        name="own-schema-hello", modes=_WORDS, question="Hello!", fields={"format": "json", "json_schema": _SCHEMA}
    ),
    Special(name="schema-in-prose", modes=("default",), fields={"json_schema": _SCHEMA}),
    Special(name="chat-schema", modes=_ALL, fields={"response_format": _FORMAT}, ways=("chat", "chat-stream")),
    Special(name="chat-logprobs", modes=_ALL, fields={"logprobs": True}, ways=("chat", "chat-stream")),
    Special(name="chat-system", modes=_WORDS, fields={"temperature": 1.0, "seed": 7, "n": 2}, ways=("chat",)),
    # Refused and unsure
    Special(name="nothing-is-sure", modes=_ALL, fields={"abstention_threshold": 1e-12}),
    Special(name="everything-is-sure", modes=_ALL, question=_UNSURE, fields={"abstention_threshold": 1.0}),
    Special(name="unsure-json", modes=_ALL, question=_UNSURE, fields={"format": "json"}),
    Special(name="refused", modes=_ALL, question=_OFF, ways=_EVERY_WAY),
    Special(name="refused-json", modes=_ALL, question=_OFF, fields={"format": "json"}),
    # Options
    Special(
        name="strict", modes=("quotes", *_WORDS), question="Who is the captain of the ferry?", fields={"strict": True}
    ),
    Special(name="strict-json", modes=("strict",), fields={"format": "json"}),
    Special(name="not-strict", modes=("strict",), question="When did the bakery open?", fields={"strict": False}),
    Special(name="lexical", modes=_ALL, fields={"mode": "lexical"}),
    Special(name="lexical-twice", modes=("quotes",), fields={"mode": "lexical"}, times=2),
    Special(name="dense", modes=_ALL, fields={"mode": "dense"}),
    Special(name="asked-twice", modes=_ALL, times=2),
    Special(name="reranked", modes=("models",), fields={"rerank": True}),
    Special(name="not-reranked", modes=("models",), fields={"rerank": False}),
    Special(name="no-reranker", modes=("default",), fields={"rerank": True}),
    Special(name="one-source", modes=_ALL, fields={"top_k": 1}),
    Special(name="little-room", modes=(*_ALL, "models"), fields={"max_context_tokens": 250}),
    Special(name="short-answer", modes=_WORDS, fields={"max_output_tokens": 12}),
    Special(name="short-json", modes=_WORDS, fields={"max_output_tokens": 12, "format": "json"}),
    Special(
        name="outline-of-one", modes=_ALL, question="What is this document about?", fields={"document": "ferry.md"}
    ),
    Special(name="fact-in-one", modes=_ALL, fields={"document": "harbour.txt"}),
    Special(name="too-long", modes=_ALL, question=_LONG, ways=_EVERY_WAY),
    Special(name="unknown-conversation", modes=("default",), fields={"conversation_id": "conv_unknown"}),
    Special(name="standalone", modes=_ALL, fields={"standalone": True}, conversation=True),
    Special(name="streamed-turn", modes=_ALL, question="And in June?", fields={}, conversation=True, ways=("stream",)),
    Special(name="dry-turn", modes=_ALL, fields={"dry_run": True}, conversation=True),
    Special(name="dry-json", modes=_ALL, fields={"dry_run": True, "format": "json"}),
    # Failures of the engine
    Special(name="engine-broke", modes=("generated",), script=_ERROR, ways=_EVERY_WAY),
    Special(name="engine-broke-in-turn", modes=("generated",), script=_ERROR, conversation=True),
    Special(name="late", modes=("generated", "strict"), script={"late_at": 1}, ways=_EVERY_WAY),
    Special(name="late-of-two", modes=("generated",), script={"late_at": 1}, fields={"n": 2}, ways=("chat",)),
    Special(name="engine-full", modes=_WORDS, script={"full": True}, ways=_EVERY_WAY, failed=True),
    Special(name="engine-refuses", modes=("generated",), script={"refuses_after": 0}, ways=_EVERY_WAY, failed=True),
    Special(
        name="engine-refuses-second",
        modes=("generated",),
        script={"refuses_after": 1},
        fields={"n": 3},
        ways=("chat",),
        failed=True,
    ),
    Special(name="rewriting-refused", modes=("models",), script={"refuses_after": 0}, conversation=True, failed=True),
)

_NAMES = {asked.text for asked in QUESTIONS}
assert {QUESTION, _UNSURE, _OFF} <= _NAMES, "the reader knows these questions"


def specials_of(mode: str) -> Iterator[tuple[Special, str, str]]:
    """The special cases of a mode: each with its way and its name."""
    for special in SPECIALS:
        if mode in special.modes:
            for way in special.ways:
                yield special, way, f"special-{special.name}/{mode}/{way}"


def kept_special(application: Application, special: Special, way: str, name: str) -> Kept:
    """What the application answers now."""
    application.start(Script(**special.script))
    fields = dict(special.fields)
    if (document := fields.pop("document", None)) is not None:
        fields["document_ids"] = [_id_of(application, document)]
    conversation = application.http.post("/v1/conversations", json={}).json()["id"] if special.conversation else None
    if conversation is not None:
        fields["conversation_id"] = conversation
        application.models.engine.start(Script())
        first = {"question": QUESTION, "conversation_id": conversation}
        assert application.http.post("/v1/ask", json=first).is_success, "the first question is answered"
        application.models.engine.start(Script(**special.script))
    for _ in range(special.times):
        path, asked = asked_as(special.question, way, fields)
        response = application.http.post(path, json=asked)
    masks, turns = Masks(), ""
    if conversation is not None:
        kept_turns = application.http.get(f"/v1/conversations/{conversation}").json()["data"]
        turns = f"\n{json.dumps(kept_turns[1:], ensure_ascii=False)}"
    body = masks.text(response.text + turns)
    rows = settled_rows(
        application.state.database,
        response.headers["x-request-id"],
        outcome=special.failed or (response.is_success and not fields.get("dry_run")),
    )
    return Kept(name, response.status_code, body, tuple(masks.row(*row) for row in rows))


def asked_as(question: str, way: str, fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path and the body that ask a question in a way."""
    if way in {"whole", "stream"}:
        return "/v1/ask", {"question": question, "stream": way == "stream", **fields}
    streams = {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    body = {"model": "footnote", "messages": messages, **fields}
    return "/v1/chat/completions", {**body, **(streams if way == "chat-stream" else {})}


def _id_of(application: Application, filename: str) -> str:
    """The id of the document with a name."""
    found = application.http.get("/v1/documents").json()["data"]
    (document,) = [one["id"] for one in found if one["filename"] == filename]
    return str(document)
