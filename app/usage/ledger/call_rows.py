"""Writes and locks the rows of calls in the ledger, inside the caller's transaction.

The statements are built once: every call runs them, and building one takes longer than running it.
"""

from typing import Any

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.presence import Gone
from app.db.tables.documents import embedding_checkpoint, job
from app.db.tables.ledger import api_request, usage_event, usage_event_document
from app.db.tables.usage_columns import Measures
from app.types import DocumentShare, JobStatus, Reservation, UsageStatus
from app.usage.ledger.apportionment import shares_of

_MINE = usage_event.c.event_id == sa.bindparam("its_event")
_LOCKED = sa.select(usage_event).where(_MINE).with_for_update()
_NEW_REQUEST = insert_or_ignore(api_request)
_NEW_EVENT = sa.insert(usage_event)
_NEW_SHARES = sa.insert(usage_event_document)
_CHANGE = sa.update(usage_event).where(_MINE)
_NOT_READ = sa.update(usage_event_document).where(usage_event_document.c.event_id == sa.bindparam("its_event"))
_SHARES = sa.select(usage_event_document).where(usage_event_document.c.event_id == sa.bindparam("its_event"))
_SHARE = _NOT_READ.where(usage_event_document.c.document_id == sa.bindparam("its_document"))
_CHECKPOINT = sa.update(usage_event).where(
    _MINE, usage_event.c.status == UsageStatus.RESERVED, usage_event.c.output_tokens < sa.bindparam("noted")
)


def insert_call(
    connection: sa.Connection, reservation: Reservation, *, boot_id: str, at: int, currency: str, price_ids: str
) -> None:
    """Insert a reserved call, and its request if new. `at` is Unix microseconds, `price_ids` a JSON list."""
    principal = reservation.principal
    shared = {
        "request_id": reservation.request_id,
        "tenant_id": principal.tenant_id,
        "project_id": reservation.project_id,
        "user_id": principal.user_id,
        "api_key_id": principal.key_id,
        "boot_id": boot_id,
        "accepted_at": at,
    }
    connection.execute(_NEW_REQUEST.on(connection), {**shared, "endpoint": reservation.endpoint})
    event = {
        **shared,
        "event_id": reservation.event_id,
        "operation": reservation.operation,
        "model_id": reservation.model,
        "tokenizer_rev": reservation.tokenizer_revision,
        "status": UsageStatus.RESERVED,
        **Measures.read(reservation.input_tokens, reservation.components)._asdict(),
        "max_output_tokens": reservation.max_output_tokens,
        "currency": currency,
        "price_ids": price_ids,
    }
    connection.execute(_NEW_EVENT, event)
    shares = [
        {
            "event_id": reservation.event_id,
            "document_id": share.document_id,
            "chunks": share.chunks,
            "tokens": share.tokens,
        }
        for share in reservation.documents
    ]
    if shares:
        connection.execute(_NEW_SHARES, shares)


def locked_call(connection: sa.Connection, event_id: str) -> sa.Row[Any] | None:
    """Read and lock a row, so that no other transaction can settle it; None if it does not exist."""
    return connection.execute(_LOCKED, {"its_event": event_id}).one_or_none()


def left_open(connection: sa.Connection, gone: Gone) -> list[sa.Row[Any]]:
    """Read and lock the rows that processes which are gone reserved and did not settle."""
    theirs = sa.select(usage_event).where(usage_event.c.status == UsageStatus.RESERVED, gone(usage_event.c.boot_id))
    return list(connection.execute(theirs.order_by(usage_event.c.event_id).with_for_update(of=usage_event)))


def change_call(connection: sa.Connection, event_id: str, **values: Any) -> None:
    """Change columns of a locked row."""
    connection.execute(_CHANGE, {"its_event": event_id, **values})


def note_output(connection: sa.Connection, event_id: str, output_tokens: int) -> None:
    """Record the generated tokens of an open call; a lower number than the recorded one changes nothing."""
    connection.execute(_CHECKPOINT, {"its_event": event_id, "noted": output_tokens, "output_tokens": output_tokens})


def forget_shares(connection: sa.Connection, event_id: str) -> None:
    """Set the documents' shares of a call that read nothing to 0 tokens."""
    connection.execute(_NOT_READ, {"its_event": event_id, "tokens": 0})


def scale_shares(connection: sa.Connection, event_id: str, context_tokens: int) -> None:
    """Let the documents' shares of a settled call, which only shrink, sum to its context of `context_tokens`."""
    rows = connection.execute(_SHARES, {"its_event": event_id}).all()
    before = {row.document_id: DocumentShare(row.document_id, row.chunks, row.tokens) for row in rows}
    changed = [
        {"its_event": event_id, "its_document": share.document_id, "tokens": share.tokens}
        for share in (shares_of(before.values(), context_tokens) if before else ())
        if share != before[share.document_id]
    ]
    if changed:
        connection.execute(_SHARE, changed)


def is_unfinished(connection: sa.Connection, job_id: str) -> bool:
    """Whether this job is an ingestion that will continue."""
    mine = sa.select(job.c.id).where(job.c.id == job_id, job.c.status != JobStatus.DONE)
    return connection.execute(mine).scalar() is not None


def kept_tokens(connection: sa.Connection, event_id: str) -> int:
    """The tokens that the checkpoints of an ingestion's attempt keep."""
    kept = sa.func.coalesce(sa.func.sum(embedding_checkpoint.c.tokens), 0)
    return int(connection.execute(sa.select(kept).where(embedding_checkpoint.c.event_id == event_id)).scalar_one())
