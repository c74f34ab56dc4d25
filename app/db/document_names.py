"""The names of searchable documents, kept in memory by tenant, and the documents that a question names in a scope."""

import threading
from dataclasses import dataclass, field

import sqlalchemy as sa
from cachetools import LRUCache

from app.db.scopes import KeyMarks, documents_in
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version
from app.types import DocumentStatus
from ingestion.titles import words_of_name
from retrieval.name_index import MOST_NAMED, NamedDocument, NameIndex, name_words
from retrieval.types import Scope

LEAST_CHUNKS = 8
"""Chunks of a document from which on its name counts: the passages of a short one are found by its headings."""

_MOST_DOCUMENTS = 2_000_000  # held over all tenants: about 1 kB each
_MOST_CHECKED = 500  # documents that are named as surely, of which some may be deleted or out of scope
_LIVE = sa.and_(document_version.c.document_id == document.c.id, document_version.c.version == document.c.live_version)
_NAMES = (
    sa.select(
        document.c.id,
        document.c.collection_id,
        document_version.c.filename,
        document_version.c.title,
        document_version.c.chunk_count,
    )
    .select_from(document)
    .join(document_version, _LIVE)
)


@dataclass(slots=True)
class _Names:
    """The names of a tenant's documents that were visible at these marks; None: none are read yet."""

    marks: KeyMarks | None = None
    index: NameIndex = field(default_factory=NameIndex)


class DocumentNames:
    """Implements `NamedDocuments`. Safe to call from several threads.

    As of scopes, `KeyMarks` tell whether names are missing, and from which chunk on they are read. What is found is
    read from SQL: a document that was deleted is left out, and forgotten then. Where more documents are held than
    allowed, the tenants that asked longest ago are forgotten.

    Example:
        >>> DocumentNames(database).named("What did Acme earn in 2018?", scope=Scope(tenant_id="acme"))
        [NamedDocument(id='doc_1', share=1.0, words=frozenset({'acme', '2018'}))]
    """

    def __init__(
        self, database: Database, *, most_documents: int = _MOST_DOCUMENTS, most_named: int = MOST_NAMED
    ) -> None:
        """Hold the names of `most_documents`; where a question names more than `most_named` in scope, it names none."""
        self._database = database
        self._most_named = most_named
        self._tenants: LRUCache[str, _Names] = LRUCache(
            most_documents,
            getsizeof=lambda names: min(len(names.index), most_documents),  # one tenant is held, whatever its size
        )
        self._lock = threading.Lock()

    def named(self, question: str, *, scope: Scope) -> list[NamedDocument]:
        """The documents in scope that a question names, the surest first.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
            StoreUnavailable: The database cannot be read.
        """
        collections = None if scope.collection_ids is None else frozenset(scope.collection_ids)
        documents = None if scope.document_ids is None else frozenset(scope.document_ids)

        def allowed(document_id: str, collection_id: str) -> bool:
            return (collections is None or collection_id in collections) and (
                documents is None or document_id in documents
            )

        with self._database.read() as connection:
            with self._lock:
                index = self._names(connection, scope.tenant_id).index
                found = index.named(question, allowed=allowed, most=_MOST_CHECKED)
            if not found:
                return []
            there = sa.select(document.c.id).where(
                document.c.id.in_([one.id for one in found]),
                document.c.live_version.is_not(None),
                document.c.status != DocumentStatus.DELETING.value,
            )
            present = set(connection.execute(there).scalars())
            inside = set(connection.execute(there.where(*documents_in(scope, connection))).scalars())
        with self._lock:
            for one in found:
                if one.id not in present:
                    index.remove(one.id)
        shown = [one for one in found if one.id in inside]
        return shown if len(shown) <= self._most_named else []

    def _names(self, connection: sa.Connection, tenant_id: str) -> _Names:
        """The names of a tenant, with those that were added since they were read; the lock is held."""
        names = self._tenants.get(tenant_id, _Names())
        marks = KeyMarks.read(connection)
        if names.marks == marks:
            return names
        if names.marks is not None and names.marks.given > marks.given:  # the data of an older backup
            names = _Names()
        wanted = _NAMES.where(document.c.tenant_id == tenant_id)
        if names.marks is not None:
            new = sa.select(chunk.c.document_id).where(chunk.c.key >= names.marks.settled, chunk.c.ordinal == 0)
            wanted = wanted.where(document.c.id.in_(new))
        for row in connection.execute(wanted):
            if row.chunk_count < LEAST_CHUNKS:
                names.index.remove(row.id)  # a former version may have been longer
                continue
            called = name_words(words_of_name(row.filename)), name_words(row.title or "")
            names.index.add(row.id, group=row.collection_id, names=called)
        names.marks = marks
        self._tenants[tenant_id] = names  # it may have grown, and others make room
        return names
