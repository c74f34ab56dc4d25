"""Joins lines of the ledger to their documents: those read for an answer, and those embedded."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.db.tables.documents import job
from app.db.tables.ledger import usage_event, usage_event_document
from app.db.tables.prices import usage_adjustment
from app.types import Operation, UsageStatus
from app.usage.rollups.sums import ADJUSTMENTS, EVENTS, SummedTable

_share, _event = usage_event_document.c, usage_event.c

_READ_WHOLE = sa.or_(_event.operation != Operation.JUDGE, _event.status == UsageStatus.COMPLETED)
"""Calls that only read have the tokens that they were to read as shares; whose they read before they ended early is not
known."""


@dataclass(frozen=True, slots=True)
class DocumentLines:
    """The lines of one source joined to their documents: one row for each document of a line.

    `cost_pico` is the document's share of the cost; `calls` and `tokens` count for the document; `priced` is 1 if the
    line has a price, else 0. `ingests` is true if the document was embedded, false if it was read.
    """

    source: SummedTable
    rows: sa.FromClause
    document_id: sa.ColumnElement[str]
    calls: sa.ColumnElement[int]
    tokens: sa.ColumnElement[int]
    cost_pico: sa.ColumnElement[int]
    priced: sa.ColumnElement[int]
    condition: sa.ColumnElement[bool]
    ingests: bool


def document_lines() -> tuple[DocumentLines, ...]:
    """The calls and the adjustments, each for read and for embedded documents.

    A document bears the share of a call's cost that its tokens are of the prompt, rounded down to whole pico-units. The
    rest of the prompt, and embedding many documents again at once (`reembed`), belongs to no document.
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
                condition=sa.and_(_share.tokens > 0, _event.input_tokens > 0, _READ_WHOLE),
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
    """`cost * tokens / of` in whole pico-units, without overflow of 64 bits."""
    return cost // of * tokens + cost % of * tokens // of
