"""The most expensive questions of a range, each with the reason in words and figures and the settings that lower it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from app.db.answer_citations import ANSWERING
from app.db.tables.documents import conversation_turn, document, document_version
from app.db.tables.ledger import answer_outcome, api_request, usage_event, usage_event_document
from app.types import Operation
from app.usage.overview.overview import OverviewQuery, end_of
from app.usage.reports.documents_report import DELETED
from app.usage.rollups.sums import decimal

MOST_QUESTIONS = 100
"""The maximum number of questions on the list."""

_MICRO = 1_000_000
_MOST_PARTS = 6  # documents named in words
_KINDS = {
    Operation.CHAT: "writing the answer",
    Operation.REWRITE: "rewriting the question and summarising sources",
    Operation.EMBED_QUERY: "embedding the question",
    Operation.RERANK: "ranking passages",
    Operation.JUDGE: "finding and checking the answer in the sources",
}

_event, _share = usage_event.c, usage_event_document.c


@dataclass(slots=True)
class _Part:
    """The calls of one operation and model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_pico: int | None = None


@dataclass(slots=True)
class _Asked:
    """The use of one request. `chunks` and `tokens` of documents are those of the prompt that held the most of them."""

    parts: dict[tuple[str, str], _Part] = field(default_factory=dict)
    context: int = 0
    history: int = 0
    written: int = 0
    documents: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def read(self) -> int:
        return sum(part.input_tokens for part in self.parts.values())

    @property
    def output(self) -> int:
        return sum(part.output_tokens for part in self.parts.values())


def expensive_questions(
    connection: sa.Connection, query: OverviewQuery, *, limit: int, as_of: int, currency: str
) -> dict[str, object]:
    """The `limit` most expensive questions that were settled in the range, as a body of the API.

    They are ordered by cost, and by tokens where nothing has a price. It reads every call of the range.

    Raises:
        InvalidRequest: The range is not valid; `param` names it.
    """
    end = end_of(query, as_of)
    ranked = _ranked(connection, query.tenant_id, query.start * _MICRO, end * _MICRO, limit)
    ids = [row.request_id for row in ranked]
    asked = _used(connection, ids)
    names = _names(connection, {one for used in asked.values() for one in used.documents}, query.tenant_id)
    texts = _texts(connection, ids)
    outcomes = {
        row.request_id: row
        for row in connection.execute(sa.select(answer_outcome).where(answer_outcome.c.request_id.in_(ids)))
    }
    return {
        "object": "list",
        "data": [
            _result(row, asked[row.request_id], names, texts, outcomes.get(row.request_id), currency) for row in ranked
        ],
        "start_time": query.start,
        "end_time": end,
        "as_of": as_of,
    }


def _ranked(connection: sa.Connection, tenant_id: str, start: int, end: int, limit: int) -> list[Any]:
    cost = sa.func.sum(_event.cost_pico)
    tokens = sa.func.sum(_event.input_tokens + _event.output_tokens)
    query = (
        sa.select(
            _event.request_id,
            api_request.c.user_id,
            api_request.c.accepted_at,
            cost.label("cost"),
            tokens.label("tokens"),
        )
        .join(api_request, api_request.c.request_id == _event.request_id)
        .where(
            _event.tenant_id == tenant_id,
            _event.settled_at >= start,
            _event.settled_at < end,
            api_request.c.endpoint.in_(ANSWERING),
        )
        .group_by(_event.request_id, api_request.c.user_id, api_request.c.accepted_at)
        .order_by(sa.func.coalesce(cost, 0).desc(), tokens.desc(), _event.request_id)
        .limit(limit)
    )
    return list(connection.execute(query))


def _used(connection: sa.Connection, request_ids: Sequence[str]) -> dict[str, _Asked]:
    found: dict[str, _Asked] = {request_id: _Asked() for request_id in request_ids}
    calls = sa.select(usage_event).where(_event.request_id.in_(request_ids), _event.settled_at.is_not(None))
    largest: dict[str, tuple[int, str]] = {}
    for row in connection.execute(calls.order_by(_event.accepted_at, _event.event_id)):
        asked = found[row.request_id]
        part = asked.parts.setdefault((row.operation, row.model_id), _Part())
        part.calls += 1
        part.input_tokens += row.input_tokens
        part.output_tokens += row.output_tokens
        if row.cost_pico is not None:
            part.cost_pico = (part.cost_pico or 0) + row.cost_pico
        asked.context += row.tok_context
        asked.history += row.tok_history
        if row.operation == Operation.CHAT:
            asked.written += row.output_tokens
        if (row.tok_context, "") > largest.get(row.request_id, (0, "")):
            largest[row.request_id] = row.tok_context, row.event_id
    events = {event_id: request_id for request_id, (_, event_id) in largest.items()}
    for row in connection.execute(sa.select(usage_event_document).where(_share.event_id.in_([*events]))):
        found[events[row.event_id]].documents[row.document_id] = row.chunks, row.tokens
    return found


def _names(connection: sa.Connection, document_ids: set[str], tenant_id: str) -> dict[str, str]:
    version = sa.func.coalesce(document.c.live_version, document.c.version)
    query = (
        sa.select(document.c.id, document_version.c.filename)
        .join(
            document_version,
            sa.and_(document_version.c.document_id == document.c.id, document_version.c.version == version),
        )
        .where(document.c.tenant_id == tenant_id, document.c.id.in_(document_ids))
    )
    return {row.id: row.filename for row in connection.execute(query)}


def _texts(connection: sa.Connection, request_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """By request, the conversation and the question as it was asked; only of those kept in a conversation."""
    turn = conversation_turn.c
    query = sa.select(turn.request_id, turn.conversation_id, turn.question).where(turn.request_id.in_(request_ids))
    return {row.request_id: (row.conversation_id, row.question) for row in connection.execute(query)}


def _result(
    row: sa.Row[Any],
    asked: _Asked,
    names: Mapping[str, str],
    texts: Mapping[str, tuple[str, str]],
    outcome: sa.Row[Any] | None,
    currency: str,
) -> dict[str, object]:
    conversation_id, question = texts.get(row.request_id, (None, None))
    documents = sorted(asked.documents.items(), key=lambda item: (-item[1][1], item[0]))
    shown = [
        {"document_id": one, "name": names.get(one, DELETED), "num_chunks": chunks, "tokens": tokens}
        for one, (chunks, tokens) in documents
    ]
    return {
        "object": "overview.expensive_question",
        "request_id": row.request_id,
        "conversation_id": conversation_id,
        "question": question,
        "user_id": row.user_id,
        "asked_at": row.accepted_at // _MICRO,
        "result": None if outcome is None else outcome.result,
        "cost": _money(None if row.cost is None else int(row.cost), currency),
        "input_tokens": asked.read,
        "context_tokens": asked.context,
        "history_tokens": asked.history,
        "output_tokens": asked.output,
        "num_model_requests": sum(part.calls for part in asked.parts.values()),
        "parts": [
            {
                "operation": operation,
                "model": model,
                "num_model_requests": part.calls,
                "input_tokens": part.input_tokens,
                "output_tokens": part.output_tokens,
                "cost": _money(part.cost_pico, currency),
            }
            for (operation, model), part in asked.parts.items()
        ],
        "documents": shown,
        "why": _why(asked, shown),
        "how_to_lower": _how_to_lower(asked, shown),
    }


def _money(pico: int | None, currency: str) -> dict[str, object]:
    return {"value": None if pico is None else decimal(pico), "currency": currency}


def _why(asked: _Asked, documents: Sequence[Mapping[str, object]]) -> str:
    """The reason for the cost, in sentences with figures."""
    said = []
    if asked.context:
        answer = f"for an answer of {asked.written:,} tokens" if asked.written else "and no text was generated"
        said.append(f"{asked.context:,} tokens of sources were read {answer}.")
    if documents:
        few = documents[:_MOST_PARTS]
        parts = [f"{one['name']} {one['tokens']:,} tokens in {_passages(int(str(one['num_chunks'])))}" for one in few]
        rest = f", and {len(documents) - len(few)} more documents" if len(documents) > len(few) else ""
        said.append(f"Presented: {'; '.join(parts)}{rest}.")
    if asked.history:
        said.append(f"{asked.history:,} tokens were earlier turns of the conversation.")
    (operation, model), most = max(asked.parts.items(), key=lambda item: (item[1].cost_pico or 0, _tokens(item[1])))
    whole = sum(part.cost_pico or 0 for part in asked.parts.values())
    share = (most.cost_pico or 0) / whole if whole else _tokens(most) / max(1, asked.read + asked.output)
    of = "cost" if whole else "tokens"
    kind = _KINDS.get(Operation(operation), operation)
    calls = "1 call" if most.calls == 1 else f"{most.calls:,} calls"
    said.append(
        f"{share:.0%} of the {of} is {kind} ({model}): {calls}, {most.input_tokens:,} tokens read, "
        f"{most.output_tokens:,} written."
    )
    return " ".join(said)


def _how_to_lower(asked: _Asked, documents: Sequence[Mapping[str, object]]) -> str:
    """Parameters and settings that would have made it cheaper, with the values they had to be below."""
    said = []
    chunks = sum(int(str(one["num_chunks"])) for one in documents)
    judged = sum(part.input_tokens for (operation, _), part in asked.parts.items() if operation == Operation.JUDGE)
    ranked = sum(part.input_tokens for (operation, _), part in asked.parts.items() if operation == Operation.RERANK)
    if asked.context:
        said.append(
            f"A max_context_tokens (FOOTNOTE_MAX_CONTEXT_TOKENS) below {asked.context:,} presents less of the sources."
        )
    if chunks > 1:
        said.append(f"A top_k below {chunks} presents fewer passages.")
    if asked.written and asked.written > asked.context:
        said.append(f"A max_output_tokens below {asked.written:,} ends the answer earlier.")
    if asked.history > asked.context // 2:
        said.append("A new conversation, or a lower FOOTNOTE_HISTORY_TOKENS, leaves out earlier turns.")
    if ranked > max(asked.context, judged):
        said.append("A lower FOOTNOTE_RERANK_CANDIDATES, or rerank: false, ranks fewer passages.")
    if judged > asked.context and not chunks:
        said.append(f"A lower top_k lets models read less than the {judged:,} tokens of passages that they read here.")
    return " ".join(said) or "Its calls are small; nothing but a lower price would make it cheaper."


def _passages(chunks: int) -> str:
    return "1 passage" if chunks == 1 else f"{chunks} passages"


def _tokens(part: _Part) -> int:
    return part.input_tokens + part.output_tokens
