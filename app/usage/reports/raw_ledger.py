"""Reads the ledger line by line: settled calls and adjustments in the order of their times, by page or as a stream.

Each read continues after the last line of the previous one (keyset pagination) in a short transaction of its own. So a
page costs the same at any depth, and a slow export does not hold back the database's log or its vacuum.
"""

import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.ledger import usage_event, usage_event_document
from app.db.tables.prices import price, usage_adjustment
from app.db.tables.usage_columns import LINE, MEASURES, LedgerLine, Measures
from app.errors import NotFound
from app.types import DocumentShare
from app.usage.ledger.entry import ADJUSTMENT
from app.usage.rollups.sums import of_adjusted

_BATCH = 4000  # lines of one read of a stream
_EVENT, _ADJUSTMENT = 0, 1  # the order of two lines of the same microsecond

_Position: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFilter:
    """Selects lines; None selects all. `statuses` may contain `adjustment`."""

    project_ids: Sequence[str] | None = None
    user_ids: Sequence[str] | None = None
    api_key_ids: Sequence[str] | None = None
    models: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    operations: Sequence[str] | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class NotedPrice:
    """A price in the cost of a call: pico-units for one token."""

    price_id: str
    meter: str
    pico_per_token: int
    currency: str


@dataclass(frozen=True, slots=True)
class WholeEvent:
    """A settled call with its documents, prices and adjustments."""

    line: LedgerLine
    documents: tuple[DocumentShare, ...]
    prices: tuple[NotedPrice, ...]
    adjustments: tuple[LedgerLine, ...]


class RawLedger:
    """Reads the settled lines of one tenant at a time.

    Example:
        >>> ledger = RawLedger(database)
        >>> for lines in ledger.batches(tenant_id="t1", start=start, end=end, only=LineFilter()):
        ...     write(lines)
    """

    def __init__(self, database: Database, *, batch: int = _BATCH) -> None:
        self._database = database
        self._batch = batch

    def page(
        self, *, tenant_id: str, start: int, end: int, only: LineFilter, limit: int, cursor: str | None = None
    ) -> tuple[tuple[LedgerLine, ...], str | None]:
        """At most `limit` lines of `[start, end)` (Unix microseconds), oldest first, and the next cursor.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        after: _Position | None = None
        if cursor is not None:
            at, kind, last_id = decode_cursor(cursor, int, int, str)
            after = int(at), int(kind), str(last_id)
        return cut(self._read(tenant_id, start, end, only, after, limit + 1), limit, _position)

    def batches(self, *, tenant_id: str, start: int, end: int, only: LineFilter) -> Iterator[Sequence[LedgerLine]]:
        """All lines of `[start, end)` (Unix microseconds), oldest first, in batches of some thousand.

        They are a consistent snapshot if `end` is not after `Ledger.moment`: calls settled meanwhile count later.
        """
        after: _Position | None = None
        while True:
            lines = self._read(tenant_id, start, end, only, after, self._batch)
            if lines:
                yield lines
                after = _position(lines[-1])
            if len(lines) < self._batch:
                return

    def event(self, event_id: str, *, tenant_id: str) -> WholeEvent:
        """A settled call.

        Raises:
            NotFound: The tenant has no call of that id, or it is not settled yet.
        """
        mine = usage_event.c.tenant_id == tenant_id, usage_event.c.event_id == event_id
        shares = sa.select(usage_event_document).where(usage_event_document.c.event_id == event_id)
        with self._database.read() as connection:
            row = connection.execute(_EVENTS.where(*mine, usage_event.c.settled_at.is_not(None))).one_or_none()
            if row is None:
                raise NotFound("There is no settled call of this id.")
            adjustments = connection.execute(
                _ADJUSTMENTS.where(*mine).order_by(usage_adjustment.c.created_at, usage_adjustment.c.adjustment_id)
            ).all()
            documents = connection.execute(shares.order_by(usage_event_document.c.document_id)).all()
            line = _line(row)
            noted = sa.select(price).where(price.c.price_id.in_(json.loads(line.price_ids)))
            prices = connection.execute(noted.order_by(price.c.price_id)).all()
        return WholeEvent(
            line,
            tuple(DocumentShare(share.document_id, share.chunks, share.tokens) for share in documents),
            tuple(NotedPrice(found.price_id, found.meter, found.pico_per_token, found.currency) for found in prices),
            tuple(_line(found) for found in adjustments),
        )

    def _read(
        self, tenant_id: str, start: int, end: int, only: LineFilter, after: _Position | None, limit: int
    ) -> list[LedgerLine]:
        """At most `limit` lines after a position, or from the start."""
        of_events, of_adjustments = _conditions(tenant_id, only)
        events: list[LedgerLine] = []
        adjustments: list[LedgerLine] = []
        with self._database.read() as connection:
            if of_events is not None:
                query = _following(_EVENTS, usage_event.c.settled_at, usage_event.c.event_id, _EVENT, start, after)
                rows = connection.execute(query.where(usage_event.c.settled_at < end, *of_events).limit(limit))
                events = [*map(_line, rows)]
            if of_adjustments is not None:
                if len(events) == limit:  # adjustments after the last call are for the next read
                    end = min(end, events[-1].at + 1)
                at, line_id = usage_adjustment.c.created_at, usage_adjustment.c.adjustment_id
                query = _following(_ADJUSTMENTS, at, line_id, _ADJUSTMENT, start, after)
                adjustments = [*map(_line, connection.execute(query.where(at < end, *of_adjustments).limit(limit)))]
        return [*heapq.merge(events, adjustments, key=_place)][:limit] if adjustments else events


def _columns(table: sa.Table) -> Iterator[sa.ColumnElement[Any]]:
    """The columns of a `LedgerLine` in their order, for calls or for adjustments joined with their calls."""
    for name in LedgerLine._fields:
        for column in (LINE[name],) if name in LINE else MEASURES.values():
            own = usage_event.c.get(column.column)
            if table is usage_adjustment and column.of_adjustment != "call":
                own = usage_adjustment.c[column.own_column] if column.of_adjustment == "own" else None
            nothing: sa.ColumnElement[Any] = sa.literal_column("NULL" if column.empty is None else repr(column.empty))
            yield (nothing if own is None else own).label(column.name)


_EVENTS = sa.select(*_columns(usage_event))
_ADJUSTMENTS = sa.select(*_columns(usage_adjustment)).select_from(
    usage_adjustment.join(usage_event, usage_adjustment.c.event_id == usage_event.c.event_id)
)

_COUNTS = slice(LedgerLine._fields.index("measures"), LedgerLine._fields.index("measures") + len(Measures._fields))


def _line(row: sa.Row[Any]) -> LedgerLine:
    """The line in a row of `_columns`; as `_make`, without its checks, for an export has millions."""
    counts = tuple.__new__(Measures, row[_COUNTS])
    return tuple.__new__(LedgerLine, (*row[: _COUNTS.start], counts, *row[_COUNTS.stop :]))


def _conditions(
    tenant_id: str, only: LineFilter
) -> tuple[list[sa.ColumnElement[bool]] | None, list[sa.ColumnElement[bool]] | None]:
    """The conditions for calls and for adjustments, which are filtered by their calls; None to read no such lines."""
    chosen: dict[sa.Column[str], Sequence[str] | None] = {
        usage_event.c.tenant_id: [tenant_id],
        usage_event.c.project_id: only.project_ids,
        usage_event.c.user_id: only.user_ids,
        usage_event.c.api_key_id: only.api_key_ids,
        usage_event.c.model_id: only.models,
        usage_event.c.operation: only.operations,
        usage_event.c.request_id: None if only.request_id is None else [only.request_id],
    }
    given = {column: values for column, values in chosen.items() if values is not None}
    of_events: list[sa.ColumnElement[bool]] = [
        column == values[0] if len(values) == 1 else column.in_(values) for column, values in given.items()
    ]
    of_adjustments: list[sa.ColumnElement[bool]] = [of_adjusted(column).in_(values) for column, values in given.items()]
    if only.statuses is None:
        return of_events, of_adjustments
    settled = [status for status in only.statuses if status != ADJUSTMENT]
    return (
        [*of_events, usage_event.c.status.in_(settled)] if settled else None,
        of_adjustments if ADJUSTMENT in only.statuses else None,
    )


def _following(
    query: sa.Select[Any], at: sa.Column[int], line_id: sa.Column[str], kind: int, start: int, after: _Position | None
) -> sa.Select[Any]:
    """The lines of a kind after a position, in order.

    Ids are compared by the database alone, and never between the kinds, since databases order text differently.
    """
    query = query.order_by(at, line_id)
    if after is None or after[0] < start:
        return query.where(at >= start)
    last_at, last_kind, last_id = after
    # only one lower bound: SQLite would use the first it finds, and read all lines before the other
    if kind == last_kind:
        return query.where(at >= last_at, sa.tuple_(at, line_id) > sa.tuple_(last_at, last_id))
    return query.where(at >= last_at if kind > last_kind else at > last_at)


def _place(line: LedgerLine) -> tuple[int, int]:
    return line.at, _ADJUSTMENT if line.adjustment_id else _EVENT


def _position(line: LedgerLine) -> _Position:
    return *_place(line), line.adjustment_id or line.event_id
