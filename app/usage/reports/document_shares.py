"""Which document a line of the ledger was for: what read it for an answer, and what embedded it."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.db.tables.documents import job
from app.db.tables.ledger import usage_event, usage_event_document
from app.db.tables.prices import usage_adjustment
from app.types import Operation
from app.usage.rollups.sums import ADJUSTMENTS, EVENTS, Source

_share, _event = usage_event_document.c, usage_event.c


@dataclass(frozen=True, slots=True)
class DocumentLines:
    """Lines of one source joined to their documents, a row for each; `cost_pico` is what of its cost is the document's.

    `calls` and `tokens` are what the row counts as calls of the document and tokens of it, `priced` is 1 where it has a
    price, else 0; `ingests` says whether it was embedded or read.
    """

    source: Source
    rows: sa.FromClause
    document_id: sa.ColumnElement[str]
    calls: sa.ColumnElement[int]
    tokens: sa.ColumnElement[int]
    cost_pico: sa.ColumnElement[int]
    priced: sa.ColumnElement[int]
    condition: sa.ColumnElement[bool]
    ingests: bool


def document_lines() -> tuple[DocumentLines, ...]:
    """Calls and adjustments, as read and as embedded.

    Of a call that read documents each bears the share that its tokens are of the prompt, rounded down to whole
    pico-units. What was read of no document, and embedding many at once again (`reembed`), belongs to none.
    """
    one, none = (sa.literal_column(number, sa.BigInteger) for number in ("1", "0"))
    found = []
    for source, cost, tokens, is_call in (
        (EVENTS, _event.cost_pico, _event.input_tokens, True),
        (ADJUSTMENTS, usage_adjustment.c.cost_pico, usage_adjustment.c.input_tokens, False),
    ):
        found += [
            DocumentLines(
                source=source,
                rows=source.rows.join(usage_event_document, _share.event_id == _event.event_id),
                document_id=_share.document_id,
                calls=one if is_call else none,
                tokens=_share.tokens if is_call else none,
                cost_pico=_part(sa.func.coalesce(cost, 0), _share.tokens, _event.input_tokens),
                priced=sa.case((cost.is_not(None), one), else_=none),
                condition=sa.and_(_share.tokens > 0, _event.input_tokens > 0),
                ingests=False,
            ),
            DocumentLines(
                source=source,
                rows=source.rows.join(job, job.c.id == _event.request_id),
                document_id=job.c.document_id,
                calls=one if is_call else none,
                tokens=tokens,
                cost_pico=sa.func.coalesce(cost, 0),
                priced=sa.case((cost.is_not(None), one), else_=none),
                condition=_event.operation == Operation.EMBED_DOC,
                ingests=True,
            ),
        ]
    return tuple(found)


def _part(
    cost: sa.ColumnElement[int], tokens: sa.ColumnElement[int], of: sa.ColumnElement[int]
) -> sa.ColumnElement[int]:
    """`cost * tokens / of` in whole pico-units, without a product that 64 bits might not hold."""
    return cost // of * tokens + cost % of * tokens // of
