"""The documents that answers cite, written when an answer is complete and kept when a document is deleted."""

import time
from collections.abc import Callable, Mapping

from app.db.dialect import insert_or_ignore, lock_tables
from app.db.session import Database
from app.db.tables.ledger import answer_citation

_NEW = insert_or_ignore(answer_citation)


class AnswerCitationRepository:
    """Citations of all tenants. `clock` gives Unix seconds and never goes back, as the ledger's does."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def record(self, request_id: str, *, tenant_id: str, citations: Mapping[str, int]) -> None:
        """Record how often an answer cites each document, by document id. Existing rows stay unchanged.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written.
        """
        assert citations, "an answer without citations needs no row"
        with self._database.write_shortly() as connection:  # on SQLite writers take turns
            # The lock of an INSERT, acquired before the clock is read: see `Ledger.moment`.
            lock_tables(connection, answer_citation, mode="ROW EXCLUSIVE")
            shared = {
                "request_id": request_id,
                "tenant_id": tenant_id,
                "cited_at": round(self._clock() * 1_000_000),
            }
            rows = [
                {**shared, "document_id": document_id, "num_citations": citations[document_id]}
                for document_id in sorted(citations)  # in one order, so that two transactions cannot deadlock
            ]
            connection.execute(_NEW.on(connection), rows)
