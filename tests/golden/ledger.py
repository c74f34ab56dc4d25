"""The ledger rows that a request wrote, in the order in which they were written, once all of them are settled."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.ledger import answer_citation, answer_outcome, api_request, usage_event, usage_event_document
from tests.generation.fakes import wait_until

_DOCUMENTS = (
    sa.select(usage_event_document)
    .join(usage_event, usage_event.c.event_id == usage_event_document.c.event_id)
    .order_by(usage_event.c.accepted_at, usage_event.c.event_id, usage_event_document.c.document_id)
)
_TABLES: tuple[tuple[str, sa.Select[Any], sa.ColumnElement[str]], ...] = (
    ("api_request", sa.select(api_request), api_request.c.request_id),
    (
        "usage_event",
        sa.select(usage_event).order_by(usage_event.c.accepted_at, usage_event.c.event_id),
        usage_event.c.request_id,
    ),
    ("usage_event_document", _DOCUMENTS, usage_event.c.request_id),
    (
        "answer_citation",
        sa.select(answer_citation).order_by(answer_citation.c.document_id),
        answer_citation.c.request_id,
    ),
    ("answer_outcome", sa.select(answer_outcome), answer_outcome.c.request_id),
)


def rows_of(database: Database, request_id: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The rows of a request with the names of their tables, all columns."""
    with database.read() as connection:
        found = [
            (name, [dict(row) for row in connection.execute(select.where(column == request_id)).mappings()])
            for name, select, column in _TABLES
        ]
    return [(name, row) for name, rows in found for row in sorted(rows, key=_choice)]


def _choice(row: Mapping[Any, Any]) -> str:
    """The choice whose call a row is of: choices are generated at once, so their order among each other is chance."""
    return str(row.get("event_id", "")).rpartition(":")[2].partition(".")[2]


def settled_rows(database: Database, request_id: str, *, outcome: bool) -> list[tuple[str, Mapping[str, Any]]]:
    """The rows of a request when no call of it is reserved any more; `outcome` waits for how it ended too."""

    def settled() -> bool:
        rows = rows_of(database, request_id)
        ended = not outcome or any(name == "answer_outcome" for name, _ in rows)
        return ended and not any(row.get("status") == "reserved" for _, row in rows)

    wait_until(settled)
    return rows_of(database, request_id)
