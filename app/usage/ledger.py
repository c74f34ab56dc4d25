"""The ledger: one row per model call, reserved before the model sees it and settled once.

A settled row never changes and none is ever deleted; the database enforces both. Money is integer
pico-units; a call without a price has no cost rather than a cost of zero.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.db.session import Database
from app.db.tables import embedding_checkpoint, job
from app.db.tables_ledger import api_request, usage_event, usage_event_document
from app.errors import StorageFull, StoreUnavailable
from app.telemetry import logger
from app.types import Components, JobStatus, Operation, Reservation, Settlement, UsageStatus
from app.usage.entry import Book, Entry
from app.usage.events import UsageEvent, events_of
from app.usage.pricing import cost_pico, rates_at, rates_of
from app.usage.settlement_journal import SettlementJournal

_COMPONENTS = ("tok_system", "tok_history", "tok_context", "tok_question", "tok_template")
_COUNTS = (*_COMPONENTS, "input_tokens", "input_cached_tokens", "output_tokens", "output_delivered_tokens")
_MOMENT_MS = 2000  # how long `Ledger.moment` waits on PostgreSQL


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
        books: Sequence[Book] = (),
        journal: SettlementJournal | None = None,
        currency: str = "usd",
    ) -> None:
        self._database = database
        self._boot_id = boot_id
        self._clock = clock
        self._books = tuple(books)
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
        with self._database.write() as connection:
            self.reserve_in(connection, reservation)

    def reserve_in(self, connection: sa.Connection, reservation: Reservation) -> None:
        """As `reserve`, inside the caller's transaction, which is to be rolled back where it is refused."""
        generates = reservation.operation.generates
        assert not generates or reservation.components.total == reservation.input_tokens, "the parts are the prompt"
        now, principal, components = self._now(), reservation.principal, reservation.components
        rates = rates_at(connection, reservation.model, at=now)
        most_pico = cost_pico(
            rates,
            reservation.operation,
            input_tokens=reservation.input_tokens,
            cached_tokens=0,
            output_tokens=reservation.max_output_tokens,
        )
        for book in self._books:
            book.reserve_in(connection, reservation, at=now, most_pico=most_pico)
        who = {
            "tenant_id": principal.tenant_id,
            "project_id": reservation.project_id,
            "user_id": principal.user_id,
            "api_key_id": principal.key_id,
        }
        insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        connection.execute(
            insert(api_request)
            .values(
                request_id=reservation.request_id,
                endpoint=reservation.endpoint,
                accepted_at=now,
                boot_id=self._boot_id,
                **who,
            )
            .on_conflict_do_nothing()
        )
        connection.execute(
            sa.insert(usage_event).values(
                event_id=reservation.event_id,
                request_id=reservation.request_id,
                operation=reservation.operation,
                boot_id=self._boot_id,
                model_id=reservation.model,
                tokenizer_rev=reservation.tokenizer_revision,
                status=UsageStatus.RESERVED,
                tok_system=components.system,
                tok_history=components.history,
                tok_context=components.context,
                tok_question=components.question,
                tok_template=components.template,
                input_tokens=reservation.input_tokens,
                max_output_tokens=reservation.max_output_tokens,
                currency=self._currency,
                price_ids=json.dumps([rate.price_id for rate in rates]),
                accepted_at=now,
                **who,
            )
        )
        if reservation.documents:
            connection.execute(
                sa.insert(usage_event_document),
                [
                    {
                        "event_id": reservation.event_id,
                        "document_id": share.document_id,
                        "chunks": share.chunks,
                        "tokens": share.tokens,
                    }
                    for share in reservation.documents
                ],
            )

    def checkpoint(self, event_id: str, output_tokens: int) -> None:
        """Note how much a running call has generated, in case the process dies.

        A note that comes late or says less changes nothing.
        """
        with self._database.write() as connection:
            connection.execute(
                sa.update(usage_event)
                .where(
                    usage_event.c.event_id == event_id,
                    usage_event.c.status == UsageStatus.RESERVED,
                    usage_event.c.output_tokens < output_tokens,
                )
                .values(output_tokens=output_tokens)
            )

    def settle(self, event_id: str, settlement: Settlement) -> bool:
        """Write what a call really spent, once; False when that was done before, and nothing changes.

        Where the database cannot take it the journal does, and it will be settled with `settle_journaled`.

        Raises:
            StoreUnavailable, StorageFull: There is no journal, and nothing was written; settle again.
        """
        try:
            with self._database.write() as connection:
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
                    if _locked(connection, usage_event.c.event_id == event_id).one_or_none() is None:
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
        row = _locked(connection, usage_event.c.event_id == event_id).one_or_none()
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
        if settlement.input_tokens == 0:  # what was not read was not read of any document
            shares = sa.update(usage_event_document).where(usage_event_document.c.event_id == event_id)
            connection.execute(shares.values(tokens=0))
        return True

    def recover(self) -> int:
        """Close the calls other processes left open; how many. Call once, at start, before the first reservation.

        Their output is what the last checkpoint noted: at least that much was generated. Of an ingestion that
        will be gone on with, the input is what its checkpoints kept: the rest is read, and billed, again.
        """
        left_open = usage_event.c.status == UsageStatus.RESERVED, usage_event.c.boot_id != self._boot_id
        with self._database.write() as connection:
            rows = _locked(connection, *left_open).all()
            for row in rows:
                counts = {}
                if row.operation == Operation.EMBED_DOC and _unfinished(connection, row.request_id):
                    counts = {"input_tokens": _kept_tokens(connection, row.event_id)}
                self._close(connection, row, status=UsageStatus.RECOVERED, count_quality="checkpoint", **counts)
            return len(rows)

    def usage(self, request_id: str) -> tuple[UsageEvent, ...]:
        """The calls of a request in the order they were reserved; empty when there were none."""
        with self._database.read() as connection:
            return events_of(connection, request_id)

    def moment(self) -> int:
        """Unix microseconds before which the ledger is closed: whatever is settled from now on counts then or later.

        Waits for the settlements that are being written; what reads up to this moment reads the same at any time.

        Raises:
            StoreUnavailable: They take too long.
        """
        with self._database.write() as connection:  # on SQLite writers take turns
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_MOMENT_MS}")  # nobody settles meanwhile
                connection.exec_driver_sql("LOCK TABLE usage_event IN EXCLUSIVE MODE")
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
        mine = usage_event.c.event_id == row.event_id
        connection.execute(sa.update(usage_event).where(mine).values(**values, cost_pico=cost, settled_at=now))
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
            components=Components(**{name.removeprefix("tok_"): counts[name] for name in _COMPONENTS}),
            input_tokens=counts["input_tokens"],
            cached_tokens=counts["input_cached_tokens"],
            output_tokens=counts["output_tokens"],
            delivered_tokens=counts["output_delivered_tokens"],
            cost_pico=cost,
        )
        for book in self._books:
            book.settle_in(connection, entry)

    def seconds(self) -> float:
        """Its clock, in Unix seconds and never going back, for whoever writes what must agree with its times."""
        return self._now() / 1_000_000

    def _now(self) -> int:
        """Unix microseconds, never before what it said last: a clock that is put back stands still here until then."""
        with self._stepping:
            self._latest = max(self._latest, round(self._clock() * 1_000_000))
            return self._latest


def _locked(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> sa.CursorResult[Any]:
    """Rows that nobody else can settle before this transaction ends."""
    query = sa.select(usage_event).where(*conditions).order_by(usage_event.c.event_id).with_for_update()
    return connection.execute(query)


def _unfinished(connection: sa.Connection, job_id: str) -> bool:
    """Whether it is an ingestion that will be gone on with."""
    mine = sa.select(job.c.id).where(job.c.id == job_id, job.c.status != JobStatus.DONE)
    return connection.execute(mine).scalar() is not None


def _kept_tokens(connection: sa.Connection, event_id: str) -> int:
    """What the checkpoints of an ingestion's attempt keep of it."""
    kept = sa.func.coalesce(sa.func.sum(embedding_checkpoint.c.tokens), 0)
    return int(connection.execute(sa.select(kept).where(embedding_checkpoint.c.event_id == event_id)).scalar_one())


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
        return dict.fromkeys(("input_tokens", *_COMPONENTS), 0)
    template = row.tok_template + input_tokens - row.input_tokens
    return {"input_tokens": input_tokens, "tok_template": template} if template >= 0 else {}
