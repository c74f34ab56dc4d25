"""The ledger: one row for each model call, reserved before the call runs and settled once when it ends.

The database enforces that a settled row never changes and that no row is deleted. Money is integer pico-units (1e-12);
a call without a price has no cost instead of a cost of zero.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.dialect import lock_tables
from app.db.presence import Gone, all_but
from app.db.session import Database
from app.db.tables.ledger import answer_citation, answer_outcome, usage_event
from app.db.tables.usage_columns import PARTS, Measures
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger
from app.telemetry.timing import timed
from app.types import Operation, Reservation, Settlement, UsageStatus
from app.usage.ledger.apportionment import components_of
from app.usage.ledger.call_rows import (
    change_call,
    forget_shares,
    insert_call,
    is_unfinished,
    kept_tokens,
    left_open,
    locked_call,
    note_output,
    scale_shares,
)
from app.usage.ledger.entry import Entry, LedgerObserver
from app.usage.ledger.events import Bill, UsageEvent, bill_of, events_of
from app.usage.ledger.pricing import cost_pico, rates_at, rates_of
from app.usage.ledger.settlement_journal import SettlementJournal

Late: TypeAlias = Callable[[sa.Connection, str, Measures, int], object]
"""Told the exact counts of a call that was settled at its checkpoint, and when that was, in Unix microseconds."""

_MOMENT_MS = 2000  # how long `Ledger.moment` waits on PostgreSQL


@dataclass(slots=True, kw_only=True)
class MeteredCall:
    """A reserved call while it runs: how many tokens it read so far, and the status it settles with if it fails.

    `input_tokens` None keeps the reserved count. A call that ends without an exception settles as completed.
    """

    input_tokens: int | None = None
    status_on_error: UsageStatus = UsageStatus.ERROR


class Ledger:
    """Writes the ledger for one process.

    Example:
        >>> ledger = Ledger(database, new_id("boot"), observers=(Budgets(), Rollups(zone)))
        >>> ledger.reserve(reservation)  # or raises BudgetExceeded
        >>> ledger.settle(reservation.event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=42))
        True
    """

    def __init__(
        self,
        database: Database,
        boot_id: str,
        clock: Callable[[], float] = time.time,
        *,
        observers: Sequence[LedgerObserver] = (),
        journal: SettlementJournal | None = None,
        currency: str = "usd",
        clock_in: Callable[[sa.Connection], float] | None = None,
        late: Late | None = None,
    ) -> None:
        """Open no call yet.

        Args:
            database: Of all tenants.
            boot_id: The process that its rows belong to.
            clock: Unix seconds.
            observers: Called in each transaction, in this order.
            journal: Keeps settlements that the database cannot take.
            currency: ISO 4217, of all prices.
            clock_in: Unix seconds in a transaction, by which calls are settled where processes have clocks of their
                own; None means by `clock`.
            late: Called for counts that come after others settled the call at its checkpoint; None drops them.
        """
        self._database = database
        self._boot_id = boot_id
        self._clock = clock
        self._observers = tuple(observers)
        self._journal = journal
        self._currency = currency
        self._clock_in = clock_in
        self._late = late
        self._latest = self._latest_in = 0
        self._stepping = threading.Lock()

    @property
    def boot_id(self) -> str:
        """The process that the rows of this ledger belong to."""
        return self._boot_id

    def reserve(self, reservation: Reservation) -> None:
        """Write a call before it runs, and its request if this is its first call.

        Raises:
            StoreUnavailable, StorageFull, BudgetExceeded: Nothing was written: the call must not be made.
        """
        with timed("reserve"), self._database.write_shortly() as connection:
            self.reserve_in(connection, reservation)

    def reserve_in(self, connection: sa.Connection, reservation: Reservation) -> None:
        """As `reserve`, inside the caller's transaction, which can go on after a refusal.

        The observers are called before anything is written. Those that can refuse come first, so that a refusal leaves
        nothing behind.
        """
        generates = reservation.operation.generates
        assert not generates or reservation.components.total == reservation.input_tokens, (
            "the components sum to the prompt"
        )
        now = self._now()
        rates = rates_at(connection, reservation.model, at=now)
        most_pico = cost_pico(
            rates,
            reservation.operation,
            input_tokens=reservation.input_tokens,
            cached_tokens=0,
            output_tokens=reservation.max_output_tokens,
        )
        for observer in self._observers:
            observer.reserve_in(connection, reservation, at=now, most_pico=most_pico)
        price_ids = json.dumps([rate.price_id for rate in rates])
        insert_call(
            connection, reservation, boot_id=self._boot_id, at=now, currency=self._currency, price_ids=price_ids
        )

    @contextmanager
    def metered(self, reservation: Reservation) -> Iterator[MeteredCall]:
        """Reserve a call, run the body of the `with` statement, and settle the call, whatever the body raises.

        Without an exception the call settles as completed, else with `status_on_error` of the yielded `MeteredCall`;
        any exception counts, cancellation included, and is raised again. Its `input_tokens` are settled either way.

            with ledger.metered(reservation) as call:
                scores = reranker.score(question, passages)
                call.input_tokens = tokens

        Raises:
            StoreUnavailable, StorageFull, BudgetExceeded: Nothing was reserved, and the body did not run.
        """
        self.reserve(reservation)
        call = MeteredCall()
        status = None
        try:
            yield call
            status = UsageStatus.COMPLETED
        finally:
            settlement = Settlement(status=status or call.status_on_error, input_tokens=call.input_tokens)
            self.settle(reservation.event_id, settlement)

    def checkpoint(self, event_id: str, output_tokens: int) -> None:
        """Record how many tokens a running call has generated, for recovery if the process dies.

        A count below the recorded one, or for a settled call, changes nothing.
        """
        with self._database.write_shortly() as connection:
            note_output(connection, event_id, output_tokens)

    def settle(self, event_id: str, settlement: Settlement) -> bool:
        """Write the counts of a call that has ended; False if it was settled before, and its row does not change.

        If the database cannot take it, the journal keeps it until `settle_journaled`.

        Raises:
            StoreUnavailable, StorageFull: There is no journal, and nothing was written; settle again.
        """
        try:
            with timed("settle"), self._database.write_shortly() as connection:
                return self.settle_in(connection, event_id, settlement)
        except (StoreUnavailable, StorageFull):
            if self._journal is None:
                raise
            self._journal.append(event_id, settlement)
            return True

    def settle_journaled(self) -> int:
        """Replay the journal; returns how many rows were settled. At start, call it before `recover`.

        A settlement that the database still cannot take stays in the journal. One that contradicts its row stays too,
        for an administrator; one without a row, as after a restored backup, is dropped. Both are logged.
        """
        closed = 0
        for event_id, settlement in self._journal.pending() if self._journal is not None else ():
            assert self._journal is not None
            try:
                with self._database.write() as connection:
                    if locked_call(connection, event_id) is None:
                        logger().error("settlement.unknown", row=event_id)
                    else:
                        closed += self.settle_in(connection, event_id, settlement)
            except (StoreUnavailable, StorageFull):
                break
            except Exception as error:  # noqa: BLE001 - one bad line must not keep the others; it is logged
                logger().error("settlement.refused", row=event_id, error=type(error).__name__)
                continue
            self._journal.remove(event_id)
        return closed

    def settle_in(self, connection: sa.Connection, event_id: str, settlement: Settlement) -> bool:
        """As `settle`, inside the caller's transaction."""
        assert settlement.status != UsageStatus.RESERVED, "a settled call has ended"
        row = locked_call(connection, event_id)
        assert row is not None, "a settled call was reserved"
        if row.status != UsageStatus.RESERVED:
            # what an ingestion embedded beyond its checkpoint is embedded again, and billed then
            if self._late is not None and row.status == UsageStatus.RECOVERED and row.operation != Operation.EMBED_DOC:
                self._late(connection, event_id, _counted(row, settlement), self._now_in(connection))
            return False
        before, counts = Measures.of_row(row), _counted(row, settlement)
        ttft = None if settlement.first_token_ms is None else round(settlement.first_token_ms * 1000)
        self._close(
            connection,
            row,
            counts,
            status=settlement.status,
            count_quality="exact",
            first_token_at=None if ttft is None else row.accepted_at + ttft,
            ttft_us=ttft,
            total_us=None if settlement.total_ms is None else round(settlement.total_ms * 1000),
        )
        if settlement.input_tokens == 0:
            forget_shares(connection, event_id)
        elif counts.tok_context < before.tok_context:
            scale_shares(connection, event_id, counts.tok_context)
        return True

    def recover(self) -> int:
        """As `recover_in`, for a process that is alone on its database. Call it once, before any reservation."""
        with self._database.write() as connection:
            return self.recover_in(connection, all_but(self._boot_id))

    def recover_in(self, connection: sa.Connection, gone: Gone) -> int:
        """Settle the calls that processes left open which are gone, and return how many, in the caller's transaction.

        Their output is that of the last checkpoint: at least this much was generated. The input of an ingestion that
        will continue is what its checkpoints kept, because the rest is embedded, and billed, again. So its call is
        settled before its job runs again.
        """
        rows = left_open(connection, gone)
        for row in rows:
            counts = Measures.of_row(row)
            if row.operation == Operation.EMBED_DOC and is_unfinished(connection, row.request_id):
                counts = counts._replace(input_tokens=kept_tokens(connection, row.event_id))
            self._close(connection, row, counts, status=UsageStatus.RECOVERED, count_quality="checkpoint")
        return len(rows)

    def usage(self, request_id: str) -> tuple[UsageEvent, ...]:
        """The calls of a request in the order they were reserved; empty if it has none."""
        with self._database.read() as connection:
            return events_of(connection, request_id)

    def bill(self, request_id: str) -> Bill:
        """The cost of a request so far."""
        with self._database.read() as connection:
            return bill_of(connection, request_id, currency=self._currency)

    def first_second(self, tenant_id: str) -> int | None:
        """When the first call of a tenant was accepted, in Unix seconds; None where it made none."""
        first = sa.select(sa.func.min(usage_event.c.accepted_at)).where(usage_event.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            moment = connection.execute(first).scalar_one()
        return None if moment is None else int(moment) // 1_000_000

    def moment(self) -> int:
        """A time in Unix microseconds before which the ledger no longer changes, for consistent exports.

        Waits for transactions that are settling calls; everything settled later counts at this time or later.

        Raises:
            StoreUnavailable: Those transactions take too long.
        """
        with self._database.write() as connection:  # on SQLite, this alone waits for other writers
            tables = usage_event, answer_citation, answer_outcome
            lock_tables(connection, *tables, mode="EXCLUSIVE", timeout_ms=_MOMENT_MS)
            return self._now_in(connection)

    def _close(
        self, connection: sa.Connection, row: sa.Row[Any], measures: Measures, *, status: UsageStatus, **values: Any
    ) -> None:
        """Settle an open row with its counts and other columns `values`, and call the observers."""
        # a call that another process accepted by a clock that was ahead is not settled before it was accepted
        operation, now = Operation(row.operation), max(self._now_in(connection), row.accepted_at)
        cost = cost_pico(
            rates_of(connection, json.loads(row.price_ids)),
            operation,
            input_tokens=measures.input_tokens,
            cached_tokens=measures.input_cached_tokens,
            output_tokens=measures.output_tokens,
        )
        change_call(
            connection, row.event_id, **measures._asdict(), **values, status=status, cost_pico=cost, settled_at=now
        )
        entry = Entry(
            event_id=row.event_id,
            tenant_id=row.tenant_id,
            project_id=row.project_id,
            user_id=row.user_id,
            key_id=row.api_key_id,
            model=row.model_id,
            operation=operation,
            status=status,
            at=now,
            calls=1,
            measures=measures,
            cost_pico=cost,
        )
        for observer in self._observers:
            observer.settle_in(connection, entry)

    def seconds(self) -> float:
        """Unix seconds from its clock, never going back, for rows that must agree with the times of the ledger."""
        return self._now() / 1_000_000

    def _now(self) -> int:
        """Unix microseconds, monotonic: after the clock was put back, the last value is repeated until it is passed."""
        with self._stepping:
            self._latest = max(self._latest, round(self._clock() * 1_000_000))
            return self._latest

    def _now_in(self, connection: sa.Connection) -> int:
        """As `_now`, by the clock that all processes settle by; asked once rows or tables are locked."""
        if self._clock_in is None:
            return self._now()
        now = round(self._clock_in(connection) * 1_000_000)
        with self._stepping:
            self._latest_in = max(self._latest_in, now)
            return self._latest_in


def _counted(row: sa.Row[Any], settlement: Settlement) -> Measures:
    """The counts of a call with what its end counted."""
    counts = Measures.of_row(row)._replace(**settlement.counts)
    if settlement.input_tokens is None:
        return counts
    return _with_input(counts, Operation(row.operation), settlement.input_tokens)


def _with_input(counts: Measures, operation: Operation, input_tokens: int) -> Measures:
    """The counts with another input, which the parts of a generator's call still sum to."""
    if not operation.generates:
        return counts._replace(input_tokens=input_tokens)
    read = Measures.read(input_tokens, components_of(counts.components, input_tokens))
    return counts._replace(**{name: getattr(read, name) for name in ("input_tokens", *PARTS)})
