"""Reads budgets with their current windows, and locks the budgets of a tenant."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.dialect import advisory_lock
from app.db.tables.budgets import budget, budget_window
from app.usage.budgets.alerts import thresholds_of
from app.usage.budgets.windows import BudgetWindow, edges_of, to_window


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit on use in each period. Amounts are tokens, or pico-units of money if `unit` is `cost`.

    Times are Unix microseconds. `thresholds` are percentages of the limit; `window` is the current period.
    """

    id: str
    tenant_id: str
    scope_type: str
    scope_id: str
    unit: str
    limit: int
    period: str
    tz: str
    enforcement: str
    thresholds: tuple[int, ...]
    webhook_url: str
    series: int
    created_by: str
    created_at: int
    window: BudgetWindow


def read_budgets(connection: sa.Connection, now: int, *conditions: sa.ColumnElement[bool]) -> tuple[Budget, ...]:
    """The budgets that are not deleted, oldest first, with their windows at `now`, Unix microseconds."""
    query = sa.select(budget).where(budget.c.deleted_at.is_(None), *conditions)
    rows = connection.execute(query.order_by(budget.c.created_at, budget.c.budget_id)).all()
    return tuple(_to_budget(row, _current(connection, row, now)) for row in rows)


def lock_tenant(connection: sa.Connection, tenant_id: str) -> bool:
    """Lock the budgets of a tenant until this transaction ends; SQLite has one writer anyway.

    Without it, two transactions with several calls each could lock windows in different orders and deadlock. The same
    holds for this lock in transactions of several tenants: these are recovery, which runs alone, and those of the one
    thread that embeds documents.

    Returns:
        Whether the budgets may have changed before the lock was taken: always False on SQLite.
    """
    return advisory_lock(connection, f"budgets:{tenant_id}")


def _current(connection: sa.Connection, row: sa.Row[Any], now: int) -> BudgetWindow:
    """The current window, also if nothing was used in it yet."""
    edges = edges_of(row.period, now, ZoneInfo(row.tz))
    found = connection.execute(
        sa.select(budget_window).where(
            budget_window.c.budget_id == row.budget_id,
            budget_window.c.series == row.series,
            budget_window.c.window_start == edges.start,
        )
    ).one_or_none()
    return BudgetWindow(row.series, edges.start, edges.end, 0, 0) if found is None else to_window(found)


def _to_budget(row: sa.Row[Any], window: BudgetWindow) -> Budget:
    return Budget(
        id=row.budget_id,
        tenant_id=row.tenant_id,
        scope_type=row.scope_type,
        scope_id=row.scope_id,
        unit=row.unit,
        limit=row.limit_value,
        period=row.period,
        tz=row.tz,
        enforcement=row.enforcement,
        thresholds=thresholds_of(row.thresholds),
        webhook_url=row.webhook_url,
        series=row.series,
        created_by=row.created_by,
        created_at=row.created_at,
        window=window,
    )
