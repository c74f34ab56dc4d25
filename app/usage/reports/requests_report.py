"""Requests as the ledger knows them: each with its caller, how it ended, and what all its calls used and cost.

A request that called no model, such as the reply to a greeting, is not on the ledger and not listed here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.paging import cut, decode_cursor
from app.db.tables.documents import conversation_turn
from app.db.tables.ledger import answer_outcome, api_request, usage_event
from app.db.tables.prices import usage_adjustment
from app.errors import NotFound
from app.usage.rollups.sums import decimal

_MICRO = 1_000_000
_request, _event, _outcome, _turn = api_request.c, usage_event.c, answer_outcome.c, conversation_turn.c


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """Selects requests of a tenant that were accepted in `[start, end)` (Unix seconds); None selects all."""

    tenant_id: str
    start: int
    end: int
    project_ids: Sequence[str] | None = None
    user_ids: Sequence[str] | None = None
    api_key_ids: Sequence[str] | None = None
    endpoints: Sequence[str] | None = None
    results: Sequence[str] | None = None


def listed_requests(
    connection: sa.Connection, only: RequestFilter, *, limit: int, cursor: str | None, currency: str
) -> tuple[list[dict[str, object]], str | None]:
    """At most `limit` requests, the newest first, as bodies of the API, and the cursor of the next page.

    Raises:
        InvalidRequest: A cursor that this list did not give out.
    """
    query = _selected(only).order_by(_request.accepted_at.desc(), _request.request_id.desc()).limit(limit + 1)
    if cursor is not None:
        at, last_id = decode_cursor(cursor, int, str)
        # The bound on the time alone lets the index begin there.
        before = sa.tuple_(_request.accepted_at, _request.request_id) < sa.tuple_(sa.literal(at), sa.literal(last_id))
        query = query.where(_request.accepted_at <= at, before)
    rows, following = cut(connection.execute(query).all(), limit, lambda row: (row.accepted_at, row.request_id))
    return _bodies(connection, rows, currency), following


def read_request(connection: sa.Connection, request_id: str, *, tenant_id: str, currency: str) -> dict[str, object]:
    """A request as a body of the API, without its calls.

    Raises:
        NotFound: The tenant's ledger has no such request.
    """
    row = connection.execute(
        _ROWS.where(_request.request_id == request_id, _request.tenant_id == tenant_id)
    ).one_or_none()
    if row is None:
        raise NotFound("The ledger has no request of this id.")
    (body,) = _bodies(connection, [row], currency)
    return body


_ROWS = sa.select(
    _request.request_id,
    _request.endpoint,
    _request.accepted_at,
    _request.user_id,
    _request.api_key_id,
    _request.project_id,
    _outcome.result,
    _outcome.reason,
    _outcome.confirmed,
    _outcome.total_us,
).select_from(api_request.outerjoin(answer_outcome, _outcome.request_id == _request.request_id))


def _selected(only: RequestFilter) -> sa.Select[Any]:
    given = {
        _request.project_id: only.project_ids,
        _request.user_id: only.user_ids,
        _request.api_key_id: only.api_key_ids,
        _request.endpoint: only.endpoints,
        _outcome.result: only.results,
    }
    return _ROWS.where(
        _request.tenant_id == only.tenant_id,
        _request.accepted_at >= only.start * _MICRO,
        _request.accepted_at < only.end * _MICRO,
        *(column.in_(values) for column, values in given.items() if values is not None),
    )


@dataclass(slots=True)
class _Sums:
    """What the settled calls of a request used, later adjustments included."""

    calls: int = 0
    open_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_pico: int | None = None


def _bodies(connection: sa.Connection, rows: Sequence[Any], currency: str) -> list[dict[str, object]]:
    ids = [row.request_id for row in rows]
    sums, texts = _sums(connection, ids), _texts(connection, ids)
    return [_body(row, sums[row.request_id], texts.get(row.request_id), currency) for row in rows]


def _sums(connection: sa.Connection, ids: Iterable[str]) -> dict[str, _Sums]:
    found = {request_id: _Sums() for request_id in ids}
    calls = (
        sa.select(
            _event.request_id,
            sa.func.count().label("calls"),
            sa.func.count(_event.settled_at).label("settled"),
            # What an unsettled call holds is a reservation, not use.
            sa.func.sum(_event.input_tokens).filter(_event.settled_at.is_not(None)).label("read"),
            sa.func.sum(_event.output_tokens).filter(_event.settled_at.is_not(None)).label("written"),
            sa.func.sum(_event.cost_pico).label("cost"),
        )
        .where(_event.request_id.in_([*found]))
        .group_by(_event.request_id)
    )
    for row in connection.execute(calls):
        one = found[row.request_id]
        one.calls, one.open_calls = row.settled, row.calls - row.settled
        one.input_tokens, one.output_tokens = int(row.read or 0), int(row.written or 0)
        one.cost_pico = None if row.cost is None else int(row.cost)
    later = (
        sa.select(
            _event.request_id,
            sa.func.sum(usage_adjustment.c.input_tokens).label("read"),
            sa.func.sum(usage_adjustment.c.output_tokens).label("written"),
            sa.func.sum(usage_adjustment.c.cost_pico).label("cost"),
        )
        .join(usage_adjustment, usage_adjustment.c.event_id == _event.event_id)
        .where(_event.request_id.in_([*found]))
        .group_by(_event.request_id)
    )
    for row in connection.execute(later):
        one = found[row.request_id]
        one.input_tokens += int(row.read)
        one.output_tokens += int(row.written)
        if one.cost_pico is not None or row.cost:
            one.cost_pico = (one.cost_pico or 0) + int(row.cost)
    return found


def _texts(connection: sa.Connection, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """By request, its conversation and question; only of those that are kept in a conversation."""
    query = sa.select(_turn.request_id, _turn.conversation_id, _turn.question).where(_turn.request_id.in_(ids))
    return {row.request_id: (row.conversation_id, row.question) for row in connection.execute(query)}


def _body(row: Any, used: _Sums, text: tuple[str, str] | None, currency: str) -> dict[str, object]:
    conversation_id, question = text or (None, None)
    return {
        "object": "request",
        "id": row.request_id,
        "endpoint": row.endpoint,
        "created_at": row.accepted_at // _MICRO,
        "user_id": row.user_id or None,
        "api_key_id": row.api_key_id or None,
        "project_id": row.project_id or None,
        "result": row.result,
        "reason": row.reason or None,
        "confirmed": row.confirmed,
        "seconds": None if row.total_us is None else row.total_us / _MICRO,
        "conversation_id": conversation_id,
        "question": question,
        "num_model_requests": used.calls,
        "num_unsettled": used.open_calls,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
        "cost": {"value": None if used.cost_pico is None else decimal(used.cost_pico), "currency": currency},
    }
