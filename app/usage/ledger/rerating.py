"""Re-rating: adjusts settled calls to the prices now known for the time they were accepted.

A price that is added for a past time reaches the calls of that time only by re-rating. Ledger rows do not change: a
call counted as unpriced stays counted so, and its cost is in its adjustment.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.ledger import usage_event
from app.db.tables.prices import price
from app.db.tables.usage_columns import Measures
from app.errors import InvalidRequest
from app.ids import new_id
from app.types import Principal, UsageStatus
from app.usage.ledger.adjustments import AdjustedCall, Adjustments, adjusted_calls, cost_of, require_reason
from app.usage.ledger.pricing import Rate

_AT_ONCE = 500  # calls read, and at most written, in one transaction
_LATEST = 253_402_300_800 * 1_000_000  # the year 10000


@dataclass(slots=True)
class ModelRerating:
    """The result of re-rating for one model: calls read, and among them those `adjusted` because their cost changed.

    `newly_priced` of the adjusted had no cost before; `unpriced` calls still have no price. Money is pico-units.
    """

    model: str
    calls: int = 0
    adjusted: int = 0
    newly_priced: int = 0
    unpriced: int = 0
    difference_pico: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerating:
    """The result of re-rating the calls settled in `[start, end)`, Unix microseconds; `dry_run` wrote nothing."""

    rerating_id: str
    dry_run: bool
    start: int
    end: int
    models: tuple[ModelRerating, ...]


@dataclass(frozen=True, slots=True)
class _Difference:
    call: AdjustedCall
    rates: tuple[Rate, ...]
    cost_pico: int


@dataclass(slots=True)
class _Periods:
    """The rates of some models with the times they are in force."""

    by_model: dict[str, list[tuple[int, int | None, Rate]]] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: sa.Connection, models: Iterable[str]) -> "_Periods":
        query = sa.select(price).where(price.c.model_id.in_(sorted(set(models)))).order_by(price.c.price_id)
        periods = cls()
        for row in connection.execute(query):
            rate = Rate(row.price_id, row.meter, row.pico_per_token)
            periods.by_model.setdefault(row.model_id, []).append((row.effective_from, row.effective_to, rate))
        return periods

    def rates_at(self, model: str, *, at: int) -> tuple[Rate, ...]:
        """As `app.usage.ledger.pricing.rates_at`."""
        known = self.by_model.get(model, ())
        return tuple(rate for begin, end, rate in known if begin <= at and (end is None or at < end))


class Rerater:
    """Re-rates the settled calls of a tenant.

    Example:
        >>> rerater = Rerater(database, adjustments, audit)
        >>> rerater.run(principal, start=0, end=now, reason="new price", dry_run=True).models[0].difference_pico
        1200000
    """

    def __init__(
        self,
        database: Database,
        adjustments: Adjustments,
        audit: AuditLog,
        *,
        clock: Callable[[], float] = time.time,
        at_once: int = _AT_ONCE,
    ) -> None:
        """`clock` gives Unix seconds; `at_once` calls are read, and at most written, in one transaction."""
        self._database = database
        self._adjustments = adjustments
        self._audit = audit
        self._clock = clock
        self._at_once = at_once

    def run(
        self,
        principal: Principal,
        *,
        start: int,
        end: int,
        models: Sequence[str] | None = None,
        reason: str,
        dry_run: bool = True,
        request_id: str = "",
    ) -> Rerating:
        """Re-rate the calls of the caller's tenant settled in `[start, end)`, Unix microseconds, and by now.

        Differences are taken from the cost with all adjustments so far, so a second run adjusts nothing. Calls are
        processed in batches of one transaction each; run it again to finish an interrupted run. The begin and the end
        are audited; `dry_run` only counts.

        Raises:
            InvalidRequest: The range or the reason is not valid; `param` names it.
            StoreUnavailable, StorageFull: It was interrupted; run it again.
        """
        require_reason(reason)
        if not 0 <= start <= _LATEST:
            raise InvalidRequest("start_time must be Unix seconds.", param="start_time")
        if not start < end <= _LATEST:
            raise InvalidRequest("end_time must be after start_time.", param="end_time")
        rerating_id = new_id("rerate")
        detail = {"start_time": start // 10**6, "end_time": end // 10**6, "models": models and [*models]}
        if not dry_run:
            with self._database.write() as connection:
                begun = {**detail, "reason": reason}
                self._audit.record_in(
                    connection, principal, "usage.rerate_begun", rerating_id, begun, request_id=request_id
                )
        found: dict[str, ModelRerating] = {}
        until = min(end, round(self._clock() * 1_000_000) + 1)
        position: tuple[int, str] | None = (start, "")
        while position is not None:
            position = self._batch(
                principal, position, until, models=models, reason=reason, dry_run=dry_run, found=found
            )
        rerating = Rerating(
            rerating_id=rerating_id,
            dry_run=dry_run,
            start=start,
            end=end,
            models=tuple(found[model] for model in sorted(found)),
        )
        if not dry_run:
            detail["adjusted"] = sum(model.adjusted for model in rerating.models)
            detail["difference_pico"] = sum(model.difference_pico for model in rerating.models)
            with self._database.write() as connection:
                self._audit.record_in(
                    connection, principal, "usage.rerated", rerating_id, detail, request_id=request_id
                )
        return rerating

    def _batch(
        self,
        principal: Principal,
        position: tuple[int, str],
        until: int,
        *,
        models: Sequence[str] | None,
        reason: str,
        dry_run: bool,
        found: dict[str, ModelRerating],
    ) -> tuple[int, str] | None:
        """Re-rate one batch of calls after `position` into `found`; returns the next position, None at the end."""
        query = (
            sa.select(usage_event)
            .where(
                usage_event.c.tenant_id == principal.tenant_id,
                usage_event.c.settled_at >= position[0],
                usage_event.c.settled_at < until,
                sa.tuple_(usage_event.c.settled_at, usage_event.c.event_id) > sa.tuple_(*position),
            )
            .order_by(usage_event.c.settled_at, usage_event.c.event_id)
            .limit(self._at_once)
        )
        if models is not None:
            query = query.where(usage_event.c.model_id.in_(models))
        with self._database.read() as connection:
            calls = adjusted_calls(connection, query)
            differences, unpriced = _differences(connection, calls)
        for call in calls:
            found.setdefault(call.row["model_id"], ModelRerating(call.row["model_id"])).calls += 1
        for model in unpriced:
            found[model].unpriced += 1
        if differences and not dry_run:
            differences = self._write(principal, [item.call.row["event_id"] for item in differences], reason)
        for item in differences:
            model_rerating = found[item.call.row["model_id"]]
            model_rerating.adjusted += 1
            model_rerating.newly_priced += item.call.row["cost_pico"] is None and item.call.cost_pico == 0
            model_rerating.difference_pico += item.cost_pico
        if len(calls) < self._at_once:
            return None
        last = calls[-1].row
        return last["settled_at"], last["event_id"]

    def _write(self, principal: Principal, event_ids: Sequence[str], reason: str) -> list[_Difference]:
        """Lock the calls, adjust them by their differences, and return these."""
        mine = sa.select(usage_event).where(usage_event.c.event_id.in_(event_ids))
        with self._database.write() as connection:
            calls = adjusted_calls(connection, mine.order_by(usage_event.c.event_id).with_for_update())
            differences, _ = _differences(connection, calls)
            for item in differences:
                self._adjustments.write_in(
                    connection,
                    principal,
                    item.call.row,
                    kind="rerate",
                    change=Measures(),
                    cost_pico=item.cost_pico,
                    price_ids=[rate.price_id for rate in item.rates],
                    reason=reason,
                )
        return differences


def _differences(connection: sa.Connection, calls: Sequence[AdjustedCall]) -> tuple[list[_Difference], list[str]]:
    """The differences of calls from their due cost, where not 0, and the models of the calls without a price."""
    periods = _Periods.of(connection, (call.row["model_id"] for call in calls))
    differences, unpriced = [], []
    for call in calls:
        assert call.row["status"] != UsageStatus.RESERVED, "the query selects settled calls"
        rates = periods.rates_at(call.row["model_id"], at=call.row["accepted_at"])
        due = cost_of(call.row, call.counts, rates=rates)
        if due is None:
            unpriced.append(call.row["model_id"])
        elif due != call.cost_pico:
            differences.append(_Difference(call, rates, due - call.cost_pico))
    return differences, unpriced
