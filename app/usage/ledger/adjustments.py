"""Adjustments of settled calls: rows of their own that say what to add, since a settled row never changes.

They count at the moment they were made, so a closed bucket of a report stays as it is. Budgets hold what a call cost
when it was settled: adjustments do not touch them.
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
from app.db.values import require_text
from app.errors import Conflict, InvalidRequest, NotFound
from app.ids import new_id
from app.types import Components, Operation, Principal, UsageStatus
from app.usage.ledger.entry import ADJUSTMENT, COUNTS, Counts, Entry, LedgerObserver
from app.usage.ledger.pricing import Rate, cost_pico, rates_at

Kind: TypeAlias = Literal["rerate", "correction"]

_REASON_CHARS = 500
_WRITE = sa.insert(usage_adjustment)  # composed once: re-rating runs it for every call


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """What was added to a call: tokens and pico-units of money. `price_ids` are the prices its cost now stands on.

    `created_at` is Unix microseconds.
    """

    adjustment_id: str
    event_id: str
    kind: Kind
    change: Counts
    cost_pico: int
    currency: str
    price_ids: tuple[str, ...]
    reason: str
    created_by: str
    created_at: int


@dataclass(frozen=True, slots=True)
class AdjustedCall:
    """A settled call as it stands with its adjustments: `row` is the ledger's, `cost_pico` 0 where it is unpriced."""

    row: sa.RowMapping
    counts: Counts
    cost_pico: int


class Adjustments:
    """Writes adjustments. `books` count them; `currency` is the installation's; `clock` gives Unix seconds."""

    def __init__(
        self,
        database: Database,
        audit: AuditLog,
        *,
        observers: Sequence[LedgerObserver] = (),
        currency: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._audit = audit
        self._observers = tuple(observers)
        self._currency = currency
        self._clock = clock

    def correct(
        self, principal: Principal, event_id: str, change: Counts, *, reason: str, request_id: str = ""
    ) -> Adjustment:
        """Add `change` to the counts of a settled call of the caller's tenant.

        Its cost becomes what the corrected counts cost at the prices now known for the moment it was accepted; an
        unpriced call stays one where there is none. How its context splits by document is not corrected.

        Raises:
            NotFound: The tenant has no such call.
            Conflict: It still runs, or its corrected counts need a price that there is not.
            InvalidRequest: Parts that do not sum to the input, counts that cannot be, or no change at all.
        """
        require_reason(reason)
        with self._database.write() as connection:
            mine = usage_event.c.event_id == event_id, usage_event.c.tenant_id == principal.tenant_id
            found = adjusted_calls(connection, sa.select(usage_event).where(*mine).with_for_update())
            if not found:
                raise NotFound("There is no such call.")
            (standing,) = found
            row = standing.row
            if row["status"] == UsageStatus.RESERVED:
                raise Conflict("The call has not ended yet; its counts are not final.")
            after = standing.counts + change
            _require_possible(row, change, after)
            rates = rates_at(connection, row["model_id"], at=row["accepted_at"])
            due = cost_of(row, after, rates=rates)
            if due is None and (row["cost_pico"] is not None or standing.cost_pico):
                raise Conflict("The corrected counts need a price that the model had not; add that price first.")
            adjustment = self.write_in(
                connection,
                principal,
                row,
                kind="correction",
                change=change,
                cost_pico=0 if due is None else due - standing.cost_pico,
                price_ids=[rate.price_id for rate in rates],
                reason=reason,
            )
            detail = {"event_id": event_id, "reason": reason, "cost_pico": adjustment.cost_pico, **change.columns}
            self._audit.record_in(
                connection, principal, "usage.corrected", adjustment.adjustment_id, detail, request_id=request_id
            )
        return adjustment

    def write_in(
        self,
        connection: sa.Connection,
        principal: Principal,
        row: sa.RowMapping,
        *,
        kind: Kind,
        change: Counts,
        cost_pico: int,
        price_ids: Sequence[str],
        reason: str,
    ) -> Adjustment:
        """Write down what is added to the settled call `row` and tell the books, in the caller's transaction.

        Whoever computes `cost_pico` from the adjustments before must have locked the row.
        """
        assert row["status"] != UsageStatus.RESERVED, "only what has ended is adjusted"
        now = round(self._clock() * 1_000_000)
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
        connection.execute(_WRITE, values | change.columns)
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
            components=change.components,
            input_tokens=change.input_tokens,
            cached_tokens=change.cached_tokens,
            output_tokens=change.output_tokens,
            delivered_tokens=change.delivered_tokens,
            cost_pico=cost_pico,
        )
        for observer in self._observers:
            observer.settle_in(connection, entry)
        return adjustment


def adjustments_of(connection: sa.Connection, event_id: str) -> tuple[Adjustment, ...]:
    """The adjustments of a call in the order they were made."""
    query = sa.select(usage_adjustment).where(usage_adjustment.c.event_id == event_id)
    query = query.order_by(usage_adjustment.c.created_at, usage_adjustment.c.adjustment_id)
    return tuple(
        Adjustment(
            adjustment_id=row["adjustment_id"],
            event_id=row["event_id"],
            kind=row["kind"],
            change=Counts.of(row),
            cost_pico=row["cost_pico"],
            currency=row["currency"],
            price_ids=tuple(json.loads(row["price_ids"])),
            reason=row["reason"],
            created_by=row["created_by"],
            created_at=row["created_at"],
        )
        for row in connection.execute(query).mappings()
    )


def adjusted_calls(connection: sa.Connection, events: sa.Select[Any]) -> tuple[AdjustedCall, ...]:
    """The calls that `events` selects (of `usage_event`, every column), in its order, with all their adjustments.

    Where `events` locks its rows, no adjustment of them can be missed or made before the transaction ends.
    """
    rows = connection.execute(events).mappings().all()
    sums = (
        sa.select(
            usage_adjustment.c.event_id,
            *(sa.func.sum(usage_adjustment.c[name]).label(name) for name in (*COUNTS, "cost_pico")),
        )
        .where(usage_adjustment.c.event_id.in_([row["event_id"] for row in rows]))
        .group_by(usage_adjustment.c.event_id)
    )
    added = {row["event_id"]: row for row in connection.execute(sums).mappings()}
    found = []
    for row in rows:
        counts, cost, more = Counts.of(row), row["cost_pico"] or 0, added.get(row["event_id"])
        if more is not None:
            counts, cost = counts + Counts.of(more), cost + int(more["cost_pico"])
        found.append(AdjustedCall(row, counts, cost))
    return tuple(found)


def cost_of(row: sa.RowMapping, counts: Counts, *, rates: Sequence[Rate]) -> int | None:
    """What `counts` of the call `row` cost at `rates`; None where these lack a price."""
    return cost_pico(
        rates,
        Operation(row["operation"]),
        input_tokens=counts.input_tokens,
        cached_tokens=counts.cached_tokens,
        output_tokens=counts.output_tokens,
    )


def require_reason(reason: str) -> None:
    """Check a reason.

    Raises:
        InvalidRequest: It is empty, too long or cannot be stored.
    """
    if not reason.strip() or len(reason) > _REASON_CHARS:
        raise InvalidRequest(f"reason must have 1 to {_REASON_CHARS} characters.", param="reason")
    require_text(reason, param="reason")


def _require_possible(row: sa.RowMapping, change: Counts, after: Counts) -> None:
    parts = change.components
    if Operation(row["operation"]).generates:
        if parts.total != change.input_tokens:
            raise InvalidRequest("The parts of the change must sum to its input tokens.", param="change")
    elif parts != Components():
        raise InvalidRequest("Only a generator's call has parts.", param="change")
    if change == Counts():
        raise InvalidRequest("The change changes nothing.", param="change")
    if (
        min(after.columns.values()) < 0
        or after.cached_tokens > after.input_tokens
        or after.delivered_tokens > after.output_tokens
        or after.output_tokens > row["max_output_tokens"]
    ):
        raise InvalidRequest("No call can have the counts this would leave.", param="change")
