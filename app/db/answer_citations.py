"""Stores the outcome of each question and the documents that its answer cites; rows are never deleted."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore, lock_tables
from app.db.session import Database
from app.db.tables.documents import document
from app.db.tables.ledger import answer_citation, answer_outcome


class AnswerResult(StrEnum):
    """The outcome of a question. `UNSURE` is an answer of the nearest passages, `REFUSED` one without any."""

    ANSWERED = "answered"
    UNSURE = "unsure"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"


ANSWERING = ("ask", "chat.completions", "responses", "messages", "mcp.ask")
"""The endpoints that answer questions, as the ledger names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutcome:
    """The outcome of a question, without its text or that of its answer.

    `reason` is `Answer.reason` or the class of an error, empty for an answer. `confirmed` says whether a citation of
    the answer is verified; None where nothing was to be cited, as in a refusal or the reply to a greeting. `total_us`
    are the microseconds from the start of the search to the end; None where the question failed before that.
    """

    request_id: str
    tenant_id: str
    user_id: str
    endpoint: str
    result: AnswerResult
    reason: str = ""
    confirmed: bool | None = None
    total_us: int | None = None


# composed once: composing a statement takes longer than running it
_LIVE = sa.select(document.c.id, document.c.live_version).where(
    document.c.tenant_id == sa.bindparam("its_tenant"), document.c.id.in_(sa.bindparam("its_documents", expanding=True))
)
_NEW = insert_or_ignore(answer_citation)
_ENDED = insert_or_ignore(answer_outcome)


class AnswerCitationRepository:
    """Outcomes and citations of all tenants. `clock` gives Unix seconds and never goes back, as the ledger's does."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def record(
        self,
        request_id: str,
        *,
        tenant_id: str,
        citations: Mapping[str, int],
        outcome: AnswerOutcome | None = None,
    ) -> None:
        """Record how often an answer cites each document, by document id, and how its question ended.

        Existing rows stay unchanged.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written.
        """
        assert citations or outcome is not None, "there is something to record"
        with self._database.write_shortly() as connection:  # on SQLite writers take turns
            # The lock of an INSERT, acquired before the clock is read: see `Ledger.moment`.
            lock_tables(connection, answer_citation, answer_outcome, mode="ROW EXCLUSIVE")
            now = round(self._clock() * 1_000_000)
            if outcome is not None:
                connection.execute(_ENDED.on(connection), {**asdict(outcome), "ended_at": now})
            shared = {"request_id": request_id, "tenant_id": tenant_id, "cited_at": now}
            rows = [
                {**shared, "document_id": document_id, "num_citations": citations[document_id]}
                for document_id in sorted(citations)  # in one order, so that two transactions cannot deadlock
            ]
            if rows:
                connection.execute(_NEW.on(connection), rows)

    def newer_versions(self, versions: Mapping[str, int], *, tenant_id: str) -> Mapping[str, int]:
        """The live versions of documents of which a newer one than that given is live, by document id.

        Raises:
            StoreUnavailable: The database cannot be read.
        """
        asked = {"its_tenant": tenant_id, "its_documents": list(versions)}
        with self._database.read() as connection:
            live = {row.id: row.live_version for row in connection.execute(_LIVE, asked)}
        return {one: version for one, version in live.items() if version is not None and version > versions[one]}
