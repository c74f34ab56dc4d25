"""The ledger: one row per model call, reserved before the model sees it and settled once.

A settled row never changes and none is ever deleted; the database enforces both. Money is integer
pico-units; a call without a price has no cost rather than a cost of zero.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.dialect import lock_tables
from app.db.session import Database
from app.db.tables.ledger import answer_citation, usage_event
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger
from app.telemetry.stations import station
from app.types import Components, Operation, Reservation, Settlement, UsageStatus
from app.usage.ledger.call_rows import (
    COMPONENTS,
    change_call,
    forget_shares,
    insert_call,
    is_unfinished,
    kept_tokens,
    left_open,
    locked_call,
    note_output,
)
from app.usage.ledger.entry import Entry, LedgerObserver
from app.usage.ledger.events import Bill, UsageEvent, bill_of, events_of
from app.usage.ledger.pricing import cost_pico, rates_at, rates_of
from app.usage.ledger.settlement_journal import SettlementJournal

_COUNTS = (*COMPONENTS, "input_tokens", "input_cached_tokens", "output_tokens", "output_delivered_tokens")
_MOMENT_MS = 2000  # how long `Ledger.moment` waits on PostgreSQL


@dataclass(slots=True, kw_only=True)
class MeteredCall:
    """A reserved call while it runs: how many tokens it read so far, and the status it settles with if it fails.

    `input_tokens` None keeps the reserved count. A call that ends without an exception settles as completed.
    """

    input_tokens: int | None = None
    status_on_error: UsageStatus = UsageStatus.ERROR


class Ledger:
    """Writes the ledger in the name of one process, `boot_id`. `clock` gives Unix seconds.

    `books` are kept in step with it, in its transactions and in their order. Settlements the database cannot take
    wait in the `journal`. `currency` is that of all prices.
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
    ) -> None:
        self._database = database
        self._boot_id = boot_id
        self._clock = clock
        self._observers = tuple(observers)
        self._journal = journal
        self._currency = currency
        self._latest = 0
        self._stepping = threading.Lock()

    @property
    def boot_id(self) -> str:
        """The process in whose name it writes."""
        return self._boot_id

    def reserve(self, reservation: Reservation) -> None:
        """Write a call down before the model sees it; its request too, if this is its first call.

        Raises:
            StoreUnavailable, StorageFull, BudgetExceeded: Nothing was written: the call must not be made.
        """
        with station("reserve"), self._database.write_shortly() as connection:
            self.reserve_in(connection, reservation)

    def reserve_in(self, connection: sa.Connection, reservation: Reservation) -> None:
        """As `reserve`, inside the caller's transaction, which can go on where it is refused.

        The books come first, so that a refusal has written nothing; one that refuses is the first of them.
        """
        generates = reservation.operation.generates
        assert not generates or reservation.components.total == reservation.input_tokens, "the parts are the prompt"
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
        """Note how much a running call has generated, in case the process dies.

        A note that comes late or says less changes nothing.
        """
        with self._database.write_shortly() as connection:
            note_output(connection, event_id, output_tokens)

    def settle(self, event_id: str, settlement: Settlement) -> bool:
        """Write what a call really spent, once; False when that was done before, and nothing changes.

        Where the database cannot take it the journal does, and it will be settled with `settle_journaled`.

        Raises:
            StoreUnavailable, StorageFull: There is no journal, and nothing was written; settle again.
        """
        try:
            with station("settle"), self._database.write_shortly() as connection:
                return self.settle_in(connection, event_id, settlement)
        except (StoreUnavailable, StorageFull):
            if self._journal is None:
                raise
            self._journal.append(event_id, settlement)
            return True

    def settle_journaled(self) -> int:
        """Settle what the journal keeps; how many rows that closed. At start, call it before `recover`.

        What the database still cannot take stays. So does what contradicts its row, for somebody to look at; a line
        without a row, as after a restored backup, is dropped. The log tells of both.
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
        assert settlement.status != UsageStatus.RESERVED, "a settlement is an end"
        row = locked_call(connection, event_id)
        assert row is not None, "reserved before"
        if row.status != UsageStatus.RESERVED:
            return False
        ttft = None if settlement.first_token_ms is None else round(settlement.first_token_ms * 1000)
        self._close(
            connection,
            row,
            status=settlement.status,
            count_quality="exact",
            input_cached_tokens=settlement.cached_tokens,
            output_tokens=settlement.output_tokens,
            output_delivered_tokens=settlement.delivered_tokens,
            first_token_at=None if ttft is None else row.accepted_at + ttft,
            ttft_us=ttft,
            total_us=None if settlement.total_ms is None else round(settlement.total_ms * 1000),
            **_input_counts(row, settlement.input_tokens),
        )
        if settlement.input_tokens == 0:
            forget_shares(connection, event_id)
        return True

    def recover(self) -> int:
        """Close the calls other processes left open; how many. Call once, at start, before the first reservation.

        Their output is what the last checkpoint noted: at least that much was generated. Of an ingestion that
        will be gone on with, the input is what its checkpoints kept: the rest is read, and billed, again.
        """
        with self._database.write() as connection:
            rows = left_open(connection, boot_id=self._boot_id)
            for row in rows:
                counts = {}
                if row.operation == Operation.EMBED_DOC and is_unfinished(connection, row.request_id):
                    counts = {"input_tokens": kept_tokens(connection, row.event_id)}
                self._close(connection, row, status=UsageStatus.RECOVERED, count_quality="checkpoint", **counts)
            return len(rows)

    def usage(self, request_id: str) -> tuple[UsageEvent, ...]:
        """The calls of a request in the order they were reserved; empty when there were none."""
        with self._database.read() as connection:
            return events_of(connection, request_id)

    def bill(self, request_id: str) -> Bill:
        """What a request has cost."""
        with self._database.read() as connection:
            return bill_of(connection, request_id, currency=self._currency)

    def moment(self) -> int:
        """Unix microseconds before which the ledger is closed: whatever is settled from now on counts then or later.

        Waits for the settlements that are being written; what reads up to this moment reads the same at any time.

        Raises:
            StoreUnavailable: They take too long.
        """
        with self._database.write() as connection:  # on SQLite writers take turns
            # nobody writes meanwhile
            lock_tables(connection, usage_event, answer_citation, mode="EXCLUSIVE", timeout_ms=_MOMENT_MS)
            return self._now()

    def _close(self, connection: sa.Connection, row: sa.Row[Any], **values: Any) -> None:
        """Make an open row terminal, `values` being what changes, and tell the books."""
        counts = {name: values.get(name, getattr(row, name)) for name in _COUNTS}
        operation, now = Operation(row.operation), self._now()
        cost = cost_pico(
            rates_of(connection, json.loads(row.price_ids)),
            operation,
            input_tokens=counts["input_tokens"],
            cached_tokens=counts["input_cached_tokens"],
            output_tokens=counts["output_tokens"],
        )
        change_call(connection, row.event_id, **values, cost_pico=cost, settled_at=now)
        entry = Entry(
            event_id=row.event_id,
            tenant_id=row.tenant_id,
            project_id=row.project_id,
            user_id=row.user_id,
            key_id=row.api_key_id,
            model=row.model_id,
            operation=operation,
            status=values["status"],
            at=now,
            calls=1,
            components=Components(**{name.removeprefix("tok_"): counts[name] for name in COMPONENTS}),
            input_tokens=counts["input_tokens"],
            cached_tokens=counts["input_cached_tokens"],
            output_tokens=counts["output_tokens"],
            delivered_tokens=counts["output_delivered_tokens"],
            cost_pico=cost,
        )
        for observer in self._observers:
            observer.settle_in(connection, entry)

    def seconds(self) -> float:
        """Its clock, in Unix seconds and never going back, for whoever writes what must agree with its times."""
        return self._now() / 1_000_000

    def _now(self) -> int:
        """Unix microseconds, never before what it said last: a clock that is put back stands still here until then."""
        with self._stepping:
            self._latest = max(self._latest, round(self._clock() * 1_000_000))
            return self._latest


def _input_counts(row: sa.Row[Any], input_tokens: int | None) -> dict[str, int]:
    """The columns of a call's input, its components still adding up; none where the reserved count stands.

    Nothing read is nothing of any component. Where a server counts another number than was sent, it
    is its template that differs; a number that cannot be explained so leaves what was reserved.
    """
    if input_tokens is None:
        return {}
    if not Operation(row.operation).generates:
        return {"input_tokens": input_tokens}
    if input_tokens == 0:
        return dict.fromkeys(("input_tokens", *COMPONENTS), 0)
    template = row.tok_template + input_tokens - row.input_tokens
    return {"input_tokens": input_tokens, "tok_template": template} if template >= 0 else {}
