"""Checks within the database: the parts of calls, calls left open, and the amounts of budgets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import sqlalchemy as sa

from app.db.presence import Gone
from app.db.tables.budgets import budget_hold, budget_window
from app.db.tables.ledger import usage_event, usage_event_document
from app.db.tables.usage_columns import PARTS
from app.types import Operation, UsageStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one comparison of two counts, `expected` and `found`.

    They are None if nothing could be compared, which is no mismatch. `detail` describes the comparison or the reason.
    """

    name: str
    ok: bool
    expected: int | None
    found: int | None
    detail: str


def none_expected(name: str, found: int, detail: str) -> Check:
    """A check that a number of errors is 0."""
    return Check(name=name, ok=found == 0, expected=0, found=found, detail=detail)


COMPONENTS = "components"
DOCUMENTS = "document_tokens"
ORPHANS = "orphaned_calls"
HOLDS = "orphaned_holds"
RESERVED = "budget_reserved"
SETTLED = "budget_settled"

_GENERATING = tuple(operation.value for operation in Operation if operation.generates)


def row_checks(connection: sa.Connection, *, since: int) -> Iterator[Check]:
    """Check that the parts of every generating call settled after `since` (Unix microseconds) sum to its input."""
    event, share = usage_event.c, usage_event_document.c
    settled = event.settled_at >= since, event.operation.in_(_GENERATING)
    parts = reduce(add, (event[name] for name in PARTS))
    wrong = sa.select(sa.func.count()).where(*settled, parts != event.input_tokens)
    yield none_expected(COMPONENTS, _number(connection, wrong), "Calls whose components do not add up to their input.")
    differing = (
        sa.select(event.event_id)
        .join(usage_event_document, share.event_id == event.event_id)
        .where(*settled)
        .group_by(event.event_id, event.tok_context)
        .having(sa.func.sum(share.tokens) != event.tok_context)
        .subquery()
    )
    count = _number(connection, sa.select(sa.func.count()).select_from(differing))
    yield none_expected(DOCUMENTS, count, "Calls whose documents do not add up to their context.")


def open_checks(connection: sa.Connection, *, gone: Gone) -> Iterator[Check]:
    """Check that no process that is gone has open calls, and that only open calls hold budgets."""
    event, hold = usage_event.c, budget_hold.c
    is_open = event.status == UsageStatus.RESERVED.value
    others = sa.select(sa.func.count()).where(is_open, gone(event.boot_id))
    yield none_expected(ORPHANS, _number(connection, others), "Calls left open by processes that are gone.")
    held = (
        sa.select(sa.func.count())
        .select_from(budget_hold.outerjoin(usage_event, sa.and_(event.event_id == hold.event_id, is_open)))
        .where(hold.settled.is_(None), event.event_id.is_(None))
    )
    yield none_expected(HOLDS, _number(connection, held), "Budgets held by calls that are not open.")


def budget_checks(connection: sa.Connection, *, since: int, totals: bool) -> Iterator[Check]:
    """Check that the windows of budgets have the amounts that their calls hold and have used.

    Args:
        connection: A read transaction.
        since: Unix microseconds; windows that ended before are left out.
        totals: Check windows that never end too, which reads all calls of their budgets.
    """
    window, hold = budget_window.c, budget_hold.c
    same = sa.and_(
        hold.budget_id == window.budget_id, hold.series == window.series, hold.window_start == window.window_start
    )
    lasting = window.window_end.is_(None)
    wanted = sa.or_(lasting, window.window_end > since) if totals else window.window_end > since
    is_open = hold.settled.is_(None)
    reserved, found = _pair(connection, budget_window, window.reserved, hold.reserved, sa.and_(same, is_open), wanted)
    detail = "What windows have reserved, and what open calls hold of them."
    yield Check(name=RESERVED, ok=reserved == found, expected=sum(reserved), found=sum(found), detail=detail)
    settled, found = _pair(connection, budget_window, window.settled, hold.settled, same, wanted)
    detail = "What windows have spent, and what ended calls have spent of them."
    yield Check(name=SETTLED, ok=settled == found, expected=sum(settled), found=sum(found), detail=detail)


def _pair(
    connection: sa.Connection,
    table: sa.Table,
    kept: sa.ColumnElement[int],
    held: sa.ColumnElement[int],
    same: sa.ColumnElement[bool],
    wanted: sa.ColumnElement[bool],
) -> tuple[list[int], list[int]]:
    """The amount of each window and the sum of its holds, in the same order."""
    keys = list(table.primary_key)
    sums = sa.func.coalesce(sa.func.sum(held), 0)
    query = (
        sa.select(kept, sums)
        .select_from(table.outerjoin(budget_hold, same))
        .where(wanted)
        .group_by(*keys, kept)
        .order_by(*keys)
    )
    rows = connection.execute(query).all()
    return [int(row[0]) for row in rows], [int(row[1]) for row in rows]


def _number(connection: sa.Connection, query: sa.Select[Any]) -> int:
    return int(connection.execute(query).scalar_one())
