"""Reads the calls of a request from the ledger, and the bill that sums their costs."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.tables.ledger import usage_event, usage_event_document
from app.db.tables.usage_columns import Measures
from app.types import Components, DocumentShare, Operation, UsageStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvent:
    """One model call. Times are Unix microseconds; `cost_pico` is pico-units of money, None if unpriced.

    `count_quality` is `none` while the call is reserved, `exact`, or `checkpoint` (the process died: at least this much
    was generated).
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
    measures: Measures
    max_output_tokens: int
    cost_pico: int | None
    accepted_at: int
    settled_at: int | None
    documents: tuple[DocumentShare, ...]

    @property
    def components(self) -> Components:
        """The parts of the input."""
        return self.measures.components

    @property
    def input_tokens(self) -> int:
        """The tokens that it read."""
        return self.measures.input_tokens

    @property
    def cached_tokens(self) -> int:
        """Those of the `input_tokens` that came from the KV cache."""
        return self.measures.input_cached_tokens

    @property
    def output_tokens(self) -> int:
        """The tokens that it wrote."""
        return self.measures.output_tokens

    @property
    def delivered_tokens(self) -> int:
        """Those of the `output_tokens` that the client received."""
        return self.measures.output_delivered_tokens


def events_of(connection: sa.Connection, request_id: str) -> tuple[UsageEvent, ...]:
    """The calls of a request in the order they were reserved; empty if it has none."""
    of_request = usage_event.c.request_id == request_id
    events = sa.select(usage_event).where(of_request).order_by(usage_event.c.accepted_at, usage_event.c.event_id)
    shares = (
        sa.select(usage_event_document)
        .join(usage_event, usage_event.c.event_id == usage_event_document.c.event_id)
        .where(of_request)
        .order_by(usage_event_document.c.document_id)
    )
    rows = connection.execute(events).all()
    documents: dict[str, list[DocumentShare]] = {row.event_id: [] for row in rows}
    for share in connection.execute(shares):
        documents[share.event_id].append(DocumentShare(share.document_id, share.chunks, share.tokens))
    return tuple(_to_event(row, tuple(documents[row.event_id])) for row in rows)


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
        measures=Measures.of_row(row),
        max_output_tokens=row.max_output_tokens,
        cost_pico=row.cost_pico,
        accepted_at=row.accepted_at,
        settled_at=row.settled_at,
        documents=documents,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The cost of a request: the sum over its priced calls, None if none is; `unpriced` counts the other calls."""

    cost_pico: int | None
    unpriced: int
    currency: str


_COSTS = sa.select(usage_event.c.cost_pico).where(usage_event.c.request_id == sa.bindparam("its_request"))


def bill_of(connection: sa.Connection, request_id: str, *, currency: str) -> Bill:
    """The bill of a request."""
    costs = connection.execute(_COSTS, {"its_request": request_id}).scalars().all()
    priced = [cost for cost in costs if cost is not None]
    return Bill(cost_pico=sum(priced) if priced else None, unpriced=len(costs) - len(priced), currency=currency)
