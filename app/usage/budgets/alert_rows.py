"""Stores budget alerts: lists them for administrators and queues them for delivery."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from app.db.deliveries import Deliveries
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.budgets import budget, budget_alert
from app.usage.budgets.alerts import Crossing, fire_in

Delivery = Literal["waiting", "delivered", "failed", "logged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A passed threshold: `used` of `limit`. Times are Unix microseconds.

    `webhook_url` is the budget's current webhook, empty for none. `delivery` is `waiting`, `delivered`, `failed` (given
    up), or `logged` (the budget had no webhook).
    """

    budget_id: str
    tenant_id: str
    scope_type: str
    scope_id: str
    series: int
    window_start: int
    percent: int
    reason: str
    unit: str
    used: int
    limit: int
    webhook_url: str
    fired_at: int
    delivery: str
    attempts: int
    delivered_at: int | None


class AlertRepository:
    """The alerts of all tenants; `clock` gives Unix seconds.

    Example:
        >>> for alert in alerts.due(limit=20):
        ...     if alerts.take(alert):
        ...         alerts.delivered(alert, "delivered")
    """

    def __init__(
        self, database: Database, *, clock: Callable[[], float] = time.time, claimant: str | None = None
    ) -> None:
        """`claimant` is this process, of several that share the database; None if it is alone."""
        self._database = database
        self._deliveries = Deliveries(database, budget_alert, claimant=claimant)
        self._clock = clock

    def fire(self, crossing: Crossing) -> None:
        """Record passed thresholds in a transaction of their own."""
        with self._database.write() as connection:
            fire_in(connection, crossing)

    def due(self, *, limit: int) -> Sequence[Alert]:
        """At most `limit` alerts that are due and that no other process delivers, the longest waiting first."""
        query = _ALERTS.where(
            budget_alert.c.delivery == "waiting",
            budget_alert.c.next_attempt_at <= round(self._clock() * 1_000_000),
            self._deliveries.free(),
        ).order_by(budget_alert.c.next_attempt_at, *budget_alert.primary_key)
        with self._database.read() as connection:
            return [_to_alert(row) for row in connection.execute(query.limit(limit))]

    def take(self, alert: Alert) -> bool:
        """Take a due alert before it is delivered; False where another process did.

        Raises:
            StoreUnavailable, StorageFull: Nobody has taken it.
        """
        return self._deliveries.take(*_key(alert), attempts=alert.attempts)

    def delivered(self, alert: Alert, delivery: Delivery) -> None:
        """End the delivery of an alert; counts one more attempt unless it was only logged."""
        now = round(self._clock() * 1_000_000)
        self._deliveries.note(
            *_key(alert),
            delivery=delivery,
            delivered_at=now if delivery == "delivered" else None,
            attempts=alert.attempts + (delivery != "logged"),
        )

    def put_off(self, alert: Alert, *, seconds: float) -> None:
        """Record a failed attempt; the next is due in `seconds`."""
        due = round((self._clock() + seconds) * 1_000_000)
        self._deliveries.note(*_key(alert), attempts=alert.attempts + 1, next_attempt_at=due)

    def list(
        self, *, tenant_id: str, budget_id: str | None = None, limit: int, cursor: str | None = None
    ) -> tuple[tuple[Alert, ...], str | None]:
        """At most `limit` alerts of a tenant, newest first, and the cursor of the next page.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        columns = budget_alert.c
        order = columns.fired_at, columns.budget_id, columns.series, columns.window_start, columns.percent
        query = _ALERTS.where(budget.c.tenant_id == tenant_id)
        if budget_id is not None:
            query = query.where(columns.budget_id == budget_id)
        if cursor is not None:
            position = decode_cursor(cursor, int, str, int, int, int)
            query = query.where(sa.tuple_(*order) < sa.tuple_(*position))
        query = query.order_by(*(column.desc() for column in order)).limit(limit + 1)
        with self._database.read() as connection:
            found = tuple(_to_alert(row) for row in connection.execute(query))
        return cut(
            found, limit, lambda item: (item.fired_at, item.budget_id, item.series, item.window_start, item.percent)
        )


_ALERTS = sa.select(
    budget_alert, *(budget.c[name] for name in ("tenant_id", "scope_type", "scope_id", "unit", "webhook_url"))
).join(budget, budget.c.budget_id == budget_alert.c.budget_id)


def _key(alert: Alert) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        budget_alert.c.budget_id == alert.budget_id,
        budget_alert.c.series == alert.series,
        budget_alert.c.window_start == alert.window_start,
        budget_alert.c.percent == alert.percent,
    )


def _to_alert(row: sa.Row[Any]) -> Alert:
    """An alert from its row, joined with columns of its budget."""
    return Alert(
        budget_id=row.budget_id,
        tenant_id=row.tenant_id,
        scope_type=row.scope_type,
        scope_id=row.scope_id,
        series=row.series,
        window_start=row.window_start,
        percent=row.percent,
        reason=row.reason,
        unit=row.unit,
        used=row.used,
        limit=row.limit_value,
        webhook_url=row.webhook_url,
        fired_at=row.fired_at,
        delivery=row.delivery,
        attempts=row.attempts,
        delivered_at=row.delivered_at,
    )
