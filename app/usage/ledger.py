"""The ledger: one row per model call, reserved before the model sees it and settled once.

A settled row never changes and none is ever deleted; the database enforces both. Money is integer
pico-units; a call without a price has no cost rather than a cost of zero.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.db.session import Database
from app.db.tables import embedding_checkpoint, job
from app.db.tables_ledger import api_request, usage_event, usage_event_document
from app.types import Components, DocumentShare, JobStatus, Operation, Reservation, Settlement, UsageStatus

_COMPONENTS = ("tok_system", "tok_history", "tok_context", "tok_question", "tok_template")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvent:
    """One model call as the ledger has it. Times are Unix microseconds; `cost_pico` None is unpriced.

    `count_quality` says how far the counts can be trusted: `none` while reserved, `exact`, or
    `checkpoint` (the process died: at least this much was generated).
    """

    event_id: str
    request_id: str
    operation: Operation
    status: UsageStatus
    count_quality: str
    tenant_id: str
    user_id: str
    key_id: str
    model: str
    tokenizer_revision: str
    components: Components
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    delivered_tokens: int
    max_output_tokens: int
    cost_pico: int | None
    accepted_at: int
    settled_at: int | None
    documents: tuple[DocumentShare, ...]


class Ledger:
    """Writes the ledger in the name of one process, `boot_id`. `clock` gives Unix seconds."""

    def __init__(self, database: Database, boot_id: str, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._boot_id = boot_id
        self._clock = clock

    def reserve(self, reservation: Reservation) -> None:
        """Write a call down before the model sees it; its request too, if this is its first call.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written: the call must not be made.
        """
        with self._database.write() as connection:
            self.reserve_in(connection, reservation)

    def reserve_in(self, connection: sa.Connection, reservation: Reservation) -> None:
        """As `reserve`, inside the caller's transaction."""
        generates = reservation.operation.generates
        assert not generates or reservation.components.total == reservation.input_tokens, "the parts are the prompt"
        now, principal, components = self._now(), reservation.principal, reservation.components
        who = {"tenant_id": principal.tenant_id, "user_id": principal.user_id, "api_key_id": principal.key_id}
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

        Raises:
            StoreUnavailable, StorageFull: Nothing was written; settle again.
        """
        with self._database.write() as connection:
            return self.settle_in(connection, event_id, settlement)

    def settle_in(self, connection: sa.Connection, event_id: str, settlement: Settlement) -> bool:
        """As `settle`, inside the caller's transaction."""
        assert settlement.status != UsageStatus.RESERVED, "a settlement is an end"
        now = self._now()
        ttft = None if settlement.first_token_ms is None else round(settlement.first_token_ms * 1000)
        values: dict[str, Any] = {
            "status": settlement.status,
            "count_quality": "exact",
            "input_cached_tokens": settlement.cached_tokens,
            "output_tokens": settlement.output_tokens,
            "output_delivered_tokens": settlement.delivered_tokens,
            "first_token_at": None if ttft is None else usage_event.c.accepted_at + ttft,
            "ttft_us": ttft,
            "total_us": None if settlement.total_ms is None else round(settlement.total_ms * 1000),
            "settled_at": now,
        }
        mine = usage_event.c.event_id == event_id
        if settlement.input_tokens is not None:
            values |= _input_counts(connection, event_id, settlement.input_tokens)
        settled = connection.execute(
            sa.update(usage_event).where(mine, usage_event.c.status == UsageStatus.RESERVED).values(**values)
        )
        if settled.rowcount == 1:
            if settlement.input_tokens == 0:  # what was not read was not read of any document
                shares = sa.update(usage_event_document).where(usage_event_document.c.event_id == event_id)
                connection.execute(shares.values(tokens=0))
            return True
        assert connection.execute(sa.select(usage_event.c.event_id).where(mine)).scalar(), "reserved before"
        return False

    def recover(self) -> int:
        """Close the calls other processes left open; how many. Call once, at start, before the first reservation.

        Their output is what the last checkpoint noted: at least that much was generated. Of an ingestion that
        will be gone on with, the input is what its checkpoints kept: the rest is read, and billed, again.
        """
        left_open = usage_event.c.status == UsageStatus.RESERVED, usage_event.c.boot_id != self._boot_id
        kept = (
            sa.select(sa.func.coalesce(sa.func.sum(embedding_checkpoint.c.tokens), 0))
            .where(embedding_checkpoint.c.event_id == usage_event.c.event_id)
            .scalar_subquery()
        )
        unfinished = sa.exists().where(job.c.id == usage_event.c.request_id, job.c.status != JobStatus.DONE)
        with self._database.write() as connection:
            connection.execute(
                sa.update(usage_event)
                .where(*left_open, usage_event.c.operation == Operation.EMBED_DOC, unfinished)
                .values(input_tokens=kept)
            )
            return connection.execute(
                sa.update(usage_event)
                .where(*left_open)
                .values(status=UsageStatus.RECOVERED, count_quality="checkpoint", settled_at=self._now())
            ).rowcount

    def usage(self, request_id: str) -> tuple[UsageEvent, ...]:
        """The calls of a request in the order they were reserved; empty when there were none."""
        of_request = usage_event.c.request_id == request_id
        events = sa.select(usage_event).where(of_request).order_by(usage_event.c.accepted_at, usage_event.c.event_id)
        shares = (
            sa.select(usage_event_document)
            .join(usage_event, usage_event.c.event_id == usage_event_document.c.event_id)
            .where(of_request)
            .order_by(usage_event_document.c.document_id)
        )
        with self._database.read() as connection:
            rows = connection.execute(events).all()
            documents: dict[str, list[DocumentShare]] = {row.event_id: [] for row in rows}
            for share in connection.execute(shares):
                documents[share.event_id].append(DocumentShare(share.document_id, share.chunks, share.tokens))
        return tuple(_to_event(row, tuple(documents[row.event_id])) for row in rows)

    def _now(self) -> int:
        return round(self._clock() * 1_000_000)


def _to_event(row: sa.Row[Any], documents: tuple[DocumentShare, ...]) -> UsageEvent:
    return UsageEvent(
        event_id=row.event_id,
        request_id=row.request_id,
        operation=Operation(row.operation),
        status=UsageStatus(row.status),
        count_quality=row.count_quality,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        key_id=row.api_key_id,
        model=row.model_id,
        tokenizer_revision=row.tokenizer_rev,
        components=Components(
            template=row.tok_template,
            system=row.tok_system,
            history=row.tok_history,
            question=row.tok_question,
            context=row.tok_context,
        ),
        input_tokens=row.input_tokens,
        cached_tokens=row.input_cached_tokens,
        output_tokens=row.output_tokens,
        delivered_tokens=row.output_delivered_tokens,
        max_output_tokens=row.max_output_tokens,
        cost_pico=row.cost_pico,
        accepted_at=row.accepted_at,
        settled_at=row.settled_at,
        documents=documents,
    )


def _input_counts(connection: sa.Connection, event_id: str, input_tokens: int) -> dict[str, int]:
    """The columns of a call's input, its components still adding up.

    Nothing read is nothing of any component. Where a server counts another number than was sent, it
    is its template that differs; a number that cannot be explained so leaves what was reserved.
    """
    mine = usage_event.c.event_id == event_id
    reserved = connection.execute(
        sa.select(usage_event.c.operation, usage_event.c.input_tokens, usage_event.c.tok_template).where(mine)
    ).one_or_none()
    if reserved is None or not Operation(reserved.operation).generates:
        return {"input_tokens": input_tokens}
    if input_tokens == 0:
        return dict.fromkeys(("input_tokens", *_COMPONENTS), 0)
    template = reserved.tok_template + input_tokens - reserved.input_tokens
    return {"input_tokens": input_tokens, "tok_template": template} if template >= 0 else {}
