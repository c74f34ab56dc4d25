"""Adjustments of settled calls: separate rows with changes to add, since a settled row never changes.

An adjustment counts at the time it was made, so past buckets of reports do not change. Budgets are not adjusted: they
count the cost at settlement.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.session import Database, to_json
from app.db.tables.ledger import usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.usage_columns import Measures
from app.db.values import require_text
from app.errors import Conflict, InvalidRequest, NotFound
from app.ids import new_id
from app.telemetry.logs import logger
from app.types import Components, Operation, Principal, Role, UsageStatus
from app.usage.ledger.entry import ADJUSTMENT, Entry, LedgerObserver
from app.usage.ledger.pricing import Rate, cost_pico, rates_at, rates_of

Kind: TypeAlias = Literal["rerate", "correction"]

_REASON_CHARS = 500
_LATE = "Counted after its process was taken for dead."
_WRITE = sa.insert(usage_adjustment)  # built once: re-rating runs it for every call


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A change of a settled call, in tokens and pico-units of money.

    `price_ids` are the prices of its cost with this change; `created_at` is Unix microseconds.
    """

    adjustment_id: str
    event_id: str
    kind: Kind
    change: Measures
    cost_pico: int
    currency: str
    price_ids: tuple[str, ...]
    reason: str
    created_by: str
    created_at: int


@dataclass(frozen=True, slots=True)
class AdjustedCall:
    """A settled call with its adjustments added. `row` is its row in the ledger; `cost_pico` is 0 if it is unpriced."""

    row: sa.RowMapping
    counts: Measures
    cost_pico: int


class Adjustments:
    """Writes adjustments.

    Example:
        >>> adjustments = Adjustments(database, audit, observers=(Rollups(zone),), currency="usd")
        >>> change = Measures(output_tokens=-10)
        >>> adjustments.correct(principal, event_id, change, reason="counted twice").cost_pico
        -6000000
    """

    def __init__(
        self,
        database: Database,
        audit: AuditLog,
        *,
        observers: Sequence[LedgerObserver] = (),
        currency: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`observers` are called for each adjustment; `currency` is that of all prices; `clock` gives Unix seconds."""
        self._database = database
        self._audit = audit
        self._observers = tuple(observers)
        self._currency = currency
        self._clock = clock

    def correct(
        self, principal: Principal, event_id: str, change: Measures, *, reason: str, request_id: str = ""
    ) -> Adjustment:
        """Add `change` to the counts of a settled call of the caller's tenant.

        Its cost becomes that of the corrected counts at the prices now known for the time it was accepted; without
        such a price an unpriced call stays unpriced. Its shares of documents are not corrected.

        Raises:
            NotFound: The tenant has no such call.
            Conflict: It still runs, or its corrected counts need a price that the model does not have.
            InvalidRequest: Components that do not sum to the input, impossible counts, or no change at all.
        """
        require_reason(reason)
        with self._database.write() as connection:
            mine = usage_event.c.event_id == event_id, usage_event.c.tenant_id == principal.tenant_id
            found = adjusted_calls(connection, sa.select(usage_event).where(*mine).with_for_update())
            if not found:
                raise NotFound("There is no such call.")
            (call,) = found
            row = call.row
            if row["status"] == UsageStatus.RESERVED:
                raise Conflict("The call has not ended yet; its counts are not final.")
            after = call.counts.plus(change)
            _require_possible(row, change, after)
            rates = rates_at(connection, row["model_id"], at=row["accepted_at"])
            due = cost_of(row, after, rates=rates)
            if due is None and (row["cost_pico"] is not None or call.cost_pico):
                raise Conflict("The corrected counts need a price that the model does not have; add that price first.")
            adjustment = self.write_in(
                connection,
                principal,
                row,
                kind="correction",
                change=change,
                cost_pico=0 if due is None else due - call.cost_pico,
                price_ids=[rate.price_id for rate in rates],
                reason=reason,
            )
            detail = {"event_id": event_id, "reason": reason, "cost_pico": adjustment.cost_pico, **change._asdict()}
            self._audit.record_in(
                connection, principal, "usage.corrected", adjustment.adjustment_id, detail, request_id=request_id
            )
        return adjustment

    def correct_late_in(self, connection: sa.Connection, event_id: str, exact: Measures, at: int) -> Adjustment | None:
        """Add what a call's exact counts differ by from those of the checkpoint at which it was settled, once.

        The caller has locked its row; `at` is Unix microseconds. Its price is the one that the call has. Nothing is
        written where the counts are the same, or where somebody has corrected the call.
        """
        row = connection.execute(sa.select(usage_event).where(usage_event.c.event_id == event_id)).mappings().one()
        change = Measures._make(new - old for new, old in zip(exact, Measures.of(row), strict=True))
        its_own = usage_adjustment.c.event_id == event_id
        newest = usage_adjustment.c.created_at.desc(), usage_adjustment.c.adjustment_id.desc()
        adjusted = connection.execute(sa.select(usage_adjustment).where(its_own).order_by(*newest)).all()
        if change == Measures() or any(one.kind == "correction" for one in adjusted):
            return None
        price_ids = json.loads(adjusted[0].price_ids if adjusted else row["price_ids"])
        due = cost_of(row, exact, rates=rates_of(connection, price_ids))
        paid = (row["cost_pico"] or 0) + sum(one.cost_pico for one in adjusted)
        logger().warning("settlement.late", row=event_id, output_tokens=change.output_tokens)
        return self.write_in(
            connection,
            Principal(row["tenant_id"], "", "", Role.ADMIN),
            row,
            kind="correction",
            change=change,
            cost_pico=0 if due is None else due - paid,
            price_ids=price_ids,
            reason=_LATE,
            at=at,
        )

    def write_in(
        self,
        connection: sa.Connection,
        principal: Principal,
        row: sa.RowMapping,
        *,
        kind: Kind,
        change: Measures,
        cost_pico: int,
        price_ids: Sequence[str],
        reason: str,
        at: int | None = None,
    ) -> Adjustment:
        """Write an adjustment of the settled call `row` and call the observers, in the caller's transaction.

        `at` is Unix microseconds; None is now, by the clock of this process.
        The caller must have locked the row if `cost_pico` depends on its earlier adjustments.
        """
        assert row["status"] != UsageStatus.RESERVED, "only settled calls are adjusted"
        now = round(self._clock() * 1_000_000) if at is None else at
        adjustment = Adjustment(
            adjustment_id=new_id("adj"),
            event_id=row["event_id"],
            kind=kind,
            change=change,
            cost_pico=cost_pico,
            currency=self._currency,
            price_ids=tuple(price_ids),
            reason=reason,
            created_by=principal.user_id,
            created_at=now,
        )
        values = {
            "adjustment_id": adjustment.adjustment_id,
            "event_id": adjustment.event_id,
            "kind": kind,
            "cost_pico": cost_pico,
            "currency": self._currency,
            "price_ids": to_json(list(price_ids)),
            "reason": reason,
            "created_by": principal.user_id,
            "created_at": now,
        }
        connection.execute(_WRITE, values | change._asdict())
        entry = Entry(
            event_id=row["event_id"],
            tenant_id=row["tenant_id"],
            project_id=row["project_id"],
            user_id=row["user_id"],
            key_id=row["api_key_id"],
            model=row["model_id"],
            operation=Operation(row["operation"]),
            status=ADJUSTMENT,
            at=now,
            calls=0,
            measures=change,
            cost_pico=cost_pico,
        )
        for observer in self._observers:
            observer.settle_in(connection, entry)
        return adjustment


def adjusted_calls(connection: sa.Connection, events: sa.Select[Any]) -> tuple[AdjustedCall, ...]:
    """The calls that `events` selects (all columns of `usage_event`), in its order, with their adjustments added.

    If `events` locks its rows, no other transaction can adjust them before this one ends.
    """
    rows = connection.execute(events).mappings().all()
    sums = (
        sa.select(
            usage_adjustment.c.event_id,
            *(sa.func.sum(usage_adjustment.c[name]).label(name) for name in (*Measures._fields, "cost_pico")),
        )
        .where(usage_adjustment.c.event_id.in_([row["event_id"] for row in rows]))
        .group_by(usage_adjustment.c.event_id)
    )
    added = {row["event_id"]: row for row in connection.execute(sums).mappings()}
    calls = []
    for row in rows:
        counts, cost, more = Measures.of(row), row["cost_pico"] or 0, added.get(row["event_id"])
        if more is not None:
            counts, cost = counts.plus(Measures.of(more)), cost + int(more["cost_pico"])
        calls.append(AdjustedCall(row, counts, cost))
    return tuple(calls)


def cost_of(row: sa.RowMapping, counts: Measures, *, rates: Sequence[Rate]) -> int | None:
    """The cost of `counts` for the call `row` at `rates`, in pico-units; None if a price is missing."""
    return cost_pico(
        rates,
        Operation(row["operation"]),
        input_tokens=counts.input_tokens,
        cached_tokens=counts.input_cached_tokens,
        output_tokens=counts.output_tokens,
    )


def require_reason(reason: str) -> None:
    """Validate the reason of an adjustment.

    Raises:
        InvalidRequest: It is empty, too long or cannot be stored.
    """
    if not reason.strip() or len(reason) > _REASON_CHARS:
        raise InvalidRequest(f"reason must have 1 to {_REASON_CHARS} characters.", param="reason")
    require_text(reason, param="reason")


def _require_possible(row: sa.RowMapping, change: Measures, after: Measures) -> None:
    parts = change.components
    if Operation(row["operation"]).generates:
        if parts.total != change.input_tokens:
            raise InvalidRequest("The components of the change must sum to its input tokens.", param="change")
    elif parts != Components():
        raise InvalidRequest("Only a generator's call has components.", param="change")
    if change == Measures():
        raise InvalidRequest("The change changes nothing.", param="change")
    if (
        min(after) < 0
        or after.input_cached_tokens > after.input_tokens
        or after.output_delivered_tokens > after.output_tokens
        or after.output_tokens > row["max_output_tokens"]
    ):
        raise InvalidRequest("No call can have the counts this would leave.", param="change")
