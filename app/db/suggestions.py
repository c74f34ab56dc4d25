"""The questions that were found for a document version, kept in its row: they are deleted with it."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.db.document_rows import find_document
from app.db.session import Database
from app.db.tables.documents import document_version


@dataclass(frozen=True, slots=True)
class KeptQuestion:
    """A question that a document version answers.

    `start_char` and `end_char` bound the quote that answers it in the version's canonical text, `answer` are the words
    in the quote that answer. `confirmed` is whether its answer was confirmed when it was asked; those that were kept
    before this was noted were.
    """

    question: str
    start_char: int
    end_char: int
    answer: str
    confirmed: bool = True


class SuggestionRepository:
    """Suggested questions of all tenants.

    Example:
        >>> repository.keep("doc_1", tenant_id="acme", version=1, questions=())
        >>> repository.read("doc_1", tenant_id="acme", version=1)
        ()
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, document_id: str, *, tenant_id: str, version: int) -> tuple[KeptQuestion, ...] | None:
        """The questions of a version; None where they were never made.

        Raises:
            NotFound: The tenant has no such document.
        """
        with self._database.read() as connection:
            find_document(connection, document_id, tenant_id=tenant_id, collections=None)
            stored = connection.execute(
                sa.select(document_version.c.suggestions).where(
                    document_version.c.document_id == document_id, document_version.c.version == version
                )
            ).scalar()
        return None if stored is None else tuple(KeptQuestion(*question) for question in stored)

    def keep(self, document_id: str, *, tenant_id: str, version: int, questions: Sequence[KeptQuestion]) -> None:
        """Keep the questions of a version; one that was deleted meanwhile keeps none.

        Raises:
            NotFound: The tenant has no such document any more.
            StoreUnavailable, StorageFull: Nothing was written.
        """
        rows = [[one.question, one.start_char, one.end_char, one.answer, one.confirmed] for one in questions]
        with self._database.write_shortly() as connection:
            find_document(connection, document_id, tenant_id=tenant_id, collections=None)
            connection.execute(
                sa.update(document_version)
                .where(document_version.c.document_id == document_id, document_version.c.version == version)
                .values(suggestions=rows)
            )
