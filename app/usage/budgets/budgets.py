"""Enforces budgets: a call is admitted in the transaction that writes it to the ledger, or refused.

The most that a call can use (prompt and longest answer) is reserved in every budget that applies; the amount it used is
settled in the same window. A hard budget is checked and reserved by one conditional UPDATE, so concurrent calls cannot
exceed its limit together.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.tables.budgets import budget, budget_hold, budget_window
from app.errors import BudgetExceeded
from app.types import Reservation
from app.usage.budgets.alerts import Crossing, fire_in, thresholds_of
from app.usage.budgets.rows import lock_tenant
from app.usage.budgets.windows import Edges, edges_of
from app.usage.ledger.entry import Entry

# built once: every call runs these statements, and building one takes longer than running it
_MAKE_WINDOW = insert_or_ignore(budget_window)
_WINDOW = (
    budget_window.c.budget_id == sa.bindparam("its_budget"),
    budget_window.c.series == sa.bindparam("its_series"),
    budget_window.c.window_start == sa.bindparam("its_start"),
)
_READ = sa.select(budget_window.c.settled, budget_window.c.reserved).where(*_WINDOW)
_AMOUNT = sa.bindparam("amount", type_=sa.BigInteger)
_ROOM = (budget.c.enforcement == "soft") | (
    budget_window.c.reserved + budget_window.c.settled + _AMOUNT <= budget.c.limit_value
)
_TAKE = (
    sa.update(budget_window)
    .where(*_WINDOW, sa.exists().where(budget.c.budget_id == budget_window.c.budget_id, _ROOM))
    .values(reserved=budget_window.c.reserved + _AMOUNT)
)
_HOLD = sa.insert(budget_hold)

_MINE = budget_hold.c.event_id == sa.bindparam("its_event")
_ITS_WINDOW = (
    budget_window.c.budget_id == budget_hold.c.budget_id,
    budget_window.c.series == budget_hold.c.series,
    budget_window.c.window_start == budget_hold.c.window_start,
)
_UNIT = sa.select(budget.c.unit).where(budget.c.budget_id == budget_hold.c.budget_id).scalar_subquery()
_END = (
    sa.update(budget_hold)
    .where(_MINE, budget_hold.c.settled.is_(None))
    .values(
        settled=sa.case(
            (_UNIT == "tokens", sa.bindparam("tokens", type_=sa.BigInteger)),
            else_=sa.bindparam("pico", type_=sa.BigInteger),
        )
    )
    .returning(budget_hold.c.budget_id)
)
_SETTLE = (
    sa.update(budget_window)
    .where(_MINE, *_ITS_WINDOW)
    .values(
        reserved=budget_window.c.reserved - budget_hold.c.reserved,
        settled=budget_window.c.settled + budget_hold.c.settled,
    )
)
_WATCHED = (
    sa.select(budget_window, budget.c.limit_value, budget.c.thresholds)
    .select_from(budget_hold)
    .join(budget_window, sa.and_(*_ITS_WINDOW))
    .join(budget, budget.c.budget_id == budget_hold.c.budget_id)
    .where(_MINE, budget.c.deleted_at.is_(None), budget.c.series == budget_hold.c.series, budget.c.thresholds != "[]")
    .order_by(budget_hold.c.budget_id)
)


class _Claim(NamedTuple):
    """The amount a call would reserve in a window of the budget `row`; None if it is unknown."""

    row: sa.Row[Any]
    edges: Edges
    amount: int | None

    @property
    def window(self) -> dict[str, Any]:
        """The parameters of `_WINDOW`."""
        return {"its_budget": self.row.budget_id, "its_series": self.row.series, "its_start": self.edges.start}

    @property
    def key(self) -> dict[str, Any]:
        """The window's columns."""
        return {"budget_id": self.row.budget_id, "series": self.row.series, "window_start": self.edges.start}


class Budgets:
    """The `LedgerObserver` that enforces budgets. Calls without a user and a key (a change of embedder) count in none.

    Example:
        >>> ledger = Ledger(database, boot_id, observers=(Budgets(),))
        >>> ledger.reserve(reservation)  # raises BudgetExceeded if a hard budget has no room for the call
    """

    def __init__(self, *, on_refusal: Callable[[Crossing], object] | None = None) -> None:
        """`on_refusal` is called for every refusal: its transaction is rolled back and cannot record it."""
        self._on_refusal = on_refusal

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        """Reserve the most that a call can use in every budget that applies to it.

        Raises:
            BudgetExceeded: A hard budget has no room; nothing was reserved in any, and the transaction can go on.
        """
        principal = reservation.principal
        if not principal.user_id and not principal.key_id:
            return
        rows = _applying(connection, reservation)
        if not rows:
            return
        if lock_tenant(connection, principal.tenant_id):
            rows = _applying(connection, reservation)  # read again under the lock
        tokens = reservation.input_tokens + reservation.max_output_tokens
        claims = [_claim(row, tokens=tokens, pico=most_pico, at=at) for row in rows]
        if not _hold(connection, reservation.event_id, claims):
            self._refuse(connection, claims, at=at)

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:
        """Replace the reservation of a call by the amount it used, in the same window. Adjustments change nothing.

        More than the limit can be settled in three cases: a call used more than it reserved (a remote server counts
        differently), the limit was lowered meanwhile, or the budget is soft.
        """
        if entry.calls == 0:
            return
        mine = {"its_event": entry.event_id}
        used = {"tokens": entry.measures.total_tokens, "pico": entry.cost_pico or 0}
        ended = connection.execute(_END, mine | used).all()
        if not ended:
            return
        lock_tenant(connection, entry.tenant_id)
        assert connection.execute(_SETTLE, mine).rowcount == len(ended), "each hold belongs to one window"
        watched = connection.execute(_WATCHED, mine)  # read under the lock, with the limits in force
        fire_in(
            connection,
            *(
                Crossing(
                    budget_id=row.budget_id,
                    series=row.series,
                    window_start=row.window_start,
                    thresholds=thresholds_of(row.thresholds),
                    limit=row.limit_value,
                    used=row.settled,
                    at=entry.at,
                )
                for row in watched
            ),
        )

    def _refuse(self, connection: sa.Connection, claims: Sequence[_Claim], *, at: int) -> NoReturn:
        """Raise `BudgetExceeded` for the first claim that exceeds a hard budget."""
        for claim in claims:
            row, amount = claim.row, claim.amount
            if row.enforcement == "soft":
                continue
            window = connection.execute(_READ, claim.window).one_or_none()
            used, reserved = (0, 0) if window is None else window
            if amount is None or used + reserved + amount > row.limit_value:
                break
        else:
            raise AssertionError("a refusal has a cause")
        crossing = Crossing(
            **claim.key,
            thresholds=thresholds_of(row.thresholds),
            limit=row.limit_value,
            used=used + reserved,
            at=at,
            reason="refused",
        )
        if self._on_refusal is not None:
            self._on_refusal(crossing)
        end = claim.edges.end
        message = "A budget has no room for this request."
        if amount is None:
            end, message = None, "The model has no price, so a budget in money refuses the call."
        elif amount > row.limit_value:
            end, message = None, "This request alone could use more than the whole limit of a budget."
        raise BudgetExceeded(
            budget_id=row.budget_id,
            unit=row.unit,
            limit=row.limit_value,
            used=used,
            reserved=reserved,
            reset_at=None if end is None else end // 1_000_000,
            wait_s=None if end is None else (end - at) / 1_000_000,
            message=message,
        )


def _applying(connection: sa.Connection, reservation: Reservation) -> Sequence[sa.Row[Any]]:
    """The budgets that a call counts in, always in the same order."""
    principal = reservation.principal
    its = {"its_tenant": principal.tenant_id, "its_user": principal.user_id, "its_key": principal.key_id}
    collections = {f"collection_{number}": name for number, name in enumerate(reservation.collection_ids)}
    return connection.execute(_applying_to(len(collections)), its | collections).all()


@lru_cache(maxsize=64)  # most calls name none or one
def _applying_to(collections: int) -> sa.Select[Any]:
    """The query for the budgets of a call on `collections` collections."""
    names: list[sa.BindParameter[str]] = [sa.bindparam(f"collection_{number}") for number in range(collections)]
    its = {"tenant": "its_tenant", "user": "its_user", "key": "its_key"}
    scopes = [
        *(sa.and_(budget.c.scope_type == kind, budget.c.scope_id == sa.bindparam(name)) for kind, name in its.items()),
        *(sa.and_(budget.c.scope_type == "collection", budget.c.scope_id == name) for name in names),
    ]
    return (
        sa.select(budget)
        .where(budget.c.tenant_id == sa.bindparam("its_tenant"), budget.c.deleted_at.is_(None), sa.or_(*scopes))
        .order_by(budget.c.budget_id)
    )


def _claim(row: sa.Row[Any], *, tokens: int, pico: int | None, at: int) -> _Claim:
    """The most that a call can use of a budget; 0 in a soft budget in money if the call has no price."""
    amount = tokens if row.unit == "tokens" else pico
    if amount is None and row.enforcement == "soft":
        amount = 0
    return _Claim(row, edges_of(row.period, at, ZoneInfo(row.tz)), amount)


def _hold(connection: sa.Connection, event_id: str, claims: Sequence[_Claim]) -> bool:
    """Reserve every claim, or none: False if a hard budget has no room."""
    if any(claim.amount is None for claim in claims):
        return False
    with connection.begin_nested() as all_or_nothing:
        windows = [claim.key | {"window_end": claim.edges.end} for claim in claims]
        connection.execute(_MAKE_WINDOW.on(connection), windows)
        taken = connection.execute(_TAKE, [claim.window | {"amount": claim.amount} for claim in claims])
        if taken.rowcount != len(claims):
            all_or_nothing.rollback()
            return False
        holds = [claim.key | {"event_id": event_id, "reserved": claim.amount} for claim in claims]
        connection.execute(_HOLD, holds)
    return True
