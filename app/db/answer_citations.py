"""Which documents answers cite: written once an answer is whole, and kept when a document is deleted."""

import time
from collections.abc import Callable, Mapping

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.db.session import Database
from app.db.tables.ledger import answer_citation

# Composed once: every answer runs one of them.
_NEW = {
    "sqlite": sqlite.insert(answer_citation).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(answer_citation).on_conflict_do_nothing(),
}
# The lock an insert takes anyhow, taken before the clock is read: see `Ledger.moment`.
_BEFORE_THE_CLOCK = sa.text("LOCK TABLE answer_citation IN ROW EXCLUSIVE MODE")


class AnswerCitationRepository:
    """Citations of all tenants. `clock` gives Unix seconds and never goes back: the ledger's."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def record(self, request_id: str, *, tenant_id: str, citations: Mapping[str, int]) -> None:
        """Write down how often an answer cites each document, by document id; what is written down stays as it is.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written.
        """
        assert citations, "an answer without citations needs no row"
        with self._database.write_shortly() as connection:  # on SQLite writers take turns
            if connection.dialect.name == "postgresql":
                connection.execute(_BEFORE_THE_CLOCK)
            shared = {
                "request_id": request_id,
                "tenant_id": tenant_id,
                "cited_at": round(self._clock() * 1_000_000),
            }
            rows = [
                {**shared, "document_id": document_id, "num_citations": citations[document_id]}
                for document_id in sorted(citations)  # in one order, so that no two wait for each other
            ]
            connection.execute(_NEW[connection.dialect.name], rows)
