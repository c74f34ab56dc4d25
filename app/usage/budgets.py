"""Budgets at the ledger's side: a call is admitted in the transaction that writes it down, or not made.

The most a call can take (prompt and longest answer) is reserved of every budget that applies, and what it really took
is settled in the window it was reserved in. Admission to a hard budget is one conditional UPDATE, so there is no moment
between looking and taking, and no number of callers at once gets more than the limit.
"""

from collections.abc import Callable
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.db.budget_rows import lock_tenant
from app.db.tables_budgets import budget, budget_hold, budget_window
from app.errors import BudgetExceeded
from app.types import Reservation
from app.usage.alerts import Crossing, fire_in, thresholds_of
from app.usage.budget_windows import Edges, edges_of
from app.usage.entry import Entry

# composed once: every call is reserved and settled with them, and most know no budget
_ANY = (
    sa.select(budget.c.budget_id)
    .where(budget.c.tenant_id == sa.bindparam("its_tenant"), budget.c.deleted_at.is_(None))
    .limit(1)
)
_HOLDS = (
    sa.select(budget_hold, budget.c.unit, budget.c.limit_value, budget.c.thresholds)
    .add_columns(budget.c.series.label("current_series"), budget.c.deleted_at)
    .join(budget, budget.c.budget_id == budget_hold.c.budget_id)
    .where(budget_hold.c.event_id == sa.bindparam("its_event"), budget_hold.c.settled.is_(None))
    .order_by(budget_hold.c.budget_id)
)


class Budgets:
    """A `Book`. `on_refusal` is told of every refusal, whose transaction is rolled back and can note nothing itself.

    Calls that nobody asked for (no user and no key: a change of embedder embeds everything again) touch no budget.
    """

    def __init__(self, *, on_refusal: Callable[[Crossing], object] | None = None) -> None:
        self._on_refusal = on_refusal

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        """Reserve the most a call can take of every budget that applies to it.

        Raises:
            BudgetExceeded: A hard budget has no room; nothing was reserved of any, and the transaction can go on.
        """
        principal = reservation.principal
        if not principal.user_id and not principal.key_id:
            return
        if connection.execute(_ANY, {"its_tenant": principal.tenant_id}).scalar() is None:
            return
        rows = _applying(connection, reservation)
        if not rows:
            return
        if connection.dialect.name == "postgresql":
            lock_tenant(connection, principal.tenant_id)
            rows = _applying(connection, reservation)  # as they are now that nobody changes them
        tokens = reservation.input_tokens + reservation.max_output_tokens
        with connection.begin_nested():  # one that refuses undoes what the others before it have given
            for row in rows:
                amount = tokens if row.unit == "tokens" else most_pico
                self._reserve(connection, row, reservation.event_id, amount=amount, at=at)

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:
        """Give back what a call held and book what it took, in the window it was reserved in; adjustments do nothing.

        More than the limit can be settled only where a call took more than it reserved (a server that counts
        otherwise), a limit was lowered meanwhile, or the budget is soft.
        """
        if entry.calls == 0:
            return
        rows = connection.execute(_HOLDS, {"its_event": entry.event_id}).all()
        if not rows:
            return
        mine = budget_hold.c.event_id == entry.event_id, budget_hold.c.settled.is_(None)
        lock_tenant(connection, entry.tenant_id)
        for hold in rows:
            tokens = entry.input_tokens + entry.output_tokens
            amount = tokens if hold.unit == "tokens" else entry.cost_pico or 0
            ended = sa.update(budget_hold).where(*mine, budget_hold.c.budget_id == hold.budget_id)
            assert connection.execute(ended.values(settled=amount)).rowcount == 1, "a call is settled once"
            window = (
                sa.update(budget_window)
                .where(
                    budget_window.c.budget_id == hold.budget_id,
                    budget_window.c.series == hold.series,
                    budget_window.c.window_start == hold.window_start,
                )
                .values(
                    reserved=budget_window.c.reserved - hold.reserved,
                    settled=budget_window.c.settled + amount,
                )
                .returning(budget_window.c.settled)
            )
            settled = connection.execute(window).scalar_one()
            if hold.deleted_at is None and hold.series == hold.current_series:
                crossing = Crossing(
                    budget_id=hold.budget_id,
                    series=hold.series,
                    window_start=hold.window_start,
                    thresholds=thresholds_of(hold.thresholds),
                    limit=hold.limit_value,
                    used=settled,
                    at=entry.at,
                )
                fire_in(connection, crossing)

    def _reserve(
        self, connection: sa.Connection, row: sa.Row[Any], event_id: str, *, amount: int | None, at: int
    ) -> None:
        hard = row.enforcement == "hard"
        edges = edges_of(row.period, at, ZoneInfo(row.tz))
        if amount is None and hard:
            self._refuse(connection, row, edges, amount=None, at=at)
        amount = amount or 0
        key = {"budget_id": row.budget_id, "series": row.series, "window_start": edges.start}
        insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        connection.execute(insert(budget_window).values(**key, window_end=edges.end).on_conflict_do_nothing())
        taken = sa.update(budget_window).where(*_is(key)).values(reserved=budget_window.c.reserved + amount)
        if hard:
            limit = sa.select(budget.c.limit_value).where(budget.c.budget_id == row.budget_id).scalar_subquery()
            taken = taken.where(budget_window.c.reserved + budget_window.c.settled + amount <= limit)
        if connection.execute(taken).rowcount != 1:
            self._refuse(connection, row, edges, amount=amount, at=at)
        connection.execute(sa.insert(budget_hold).values(event_id=event_id, reserved=amount, **key))

    def _refuse(
        self, connection: sa.Connection, row: sa.Row[Any], edges: Edges, *, amount: int | None, at: int
    ) -> NoReturn:
        """Raise `BudgetExceeded` for a call that would take `amount` (None: nobody knows)."""
        key = {"budget_id": row.budget_id, "series": row.series, "window_start": edges.start}
        window = connection.execute(sa.select(budget_window).where(*_is(key))).one_or_none()
        used, reserved = (0, 0) if window is None else (window.settled, window.reserved)
        crossing = Crossing(
            **key,
            thresholds=thresholds_of(row.thresholds),
            limit=row.limit_value,
            used=used + reserved,
            at=at,
            reason="refused",
        )
        if self._on_refusal is not None:
            self._on_refusal(crossing)
        reset_at = None if edges.end is None else edges.end // 1_000_000
        message = "A budget has no room for this request."
        if amount is None:
            reset_at, message = None, "The model has no price, and a budget in money admits no call without one."
        elif amount > row.limit_value:
            reset_at, message = None, "This request alone could take more than a budget allows in all."
        raise BudgetExceeded(
            budget_id=row.budget_id,
            unit=row.unit,
            limit=row.limit_value,
            used=used,
            reserved=reserved,
            reset_at=reset_at,
            message=message,
        )


def _applying(connection: sa.Connection, reservation: Reservation) -> list[sa.Row[Any]]:
    """The budgets a call counts against, always in the same order."""
    principal = reservation.principal
    wanted = [
        ("tenant", [principal.tenant_id]),
        ("user", [principal.user_id]),
        ("key", [principal.key_id]),
        ("collection", list(reservation.collection_ids)),
    ]
    scopes = [sa.and_(budget.c.scope_type == kind, budget.c.scope_id.in_(ids)) for kind, ids in wanted if ids]
    query = (
        sa.select(budget)
        .where(budget.c.tenant_id == principal.tenant_id, budget.c.deleted_at.is_(None), sa.or_(*scopes))
        .order_by(budget.c.budget_id)
    )
    return list(connection.execute(query).all())


def _is(key: dict[str, Any]) -> list[sa.ColumnElement[bool]]:
    return [budget_window.c[name] == value for name, value in key.items()]
