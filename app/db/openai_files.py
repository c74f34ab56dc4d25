"""OpenAI's files and vector stores in SQL: unattached uploads, file states, sizes of stores, and batches."""

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum

import sqlalchemy as sa

from app.db.audit import Record
from app.db.cancellation import CANCELLED
from app.db.dialect import insert_or_ignore
from app.db.document_rows import DOCUMENTS, to_document
from app.db.idempotency import forget_answers, note_effect
from app.db.originals import condemn, named
from app.db.paging import Listed, PageRequest
from app.db.session import Database
from app.db.tables.documents import collection, document, document_version, file_batch, job, unattached_file
from app.errors import NotFound
from app.types import Collection, Document, DocumentStatus, Principal
from retrieval.types import Metadata

WORKING = (DocumentStatus.QUEUED, DocumentStatus.EXTRACTING, DocumentStatus.CHUNKING, DocumentStatus.EMBEDDING)
"""The statuses of a document whose newest version is being ingested."""


class FileState(StrEnum):
    """The status of a file in a vector store."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @classmethod
    def of(cls, document: Document) -> "FileState":
        """The state of a document's newest version."""
        if document.status in WORKING:
            return cls.IN_PROGRESS
        if document.status is DocumentStatus.INDEXED:
            return cls.COMPLETED
        return cls.CANCELLED if document.error_code == CANCELLED else cls.FAILED


@dataclass(frozen=True, slots=True)
class UnattachedFile:
    """An upload that is in no collection: neither searched nor billed.

    `created_at` is Unix seconds, `object` the name of its original.
    """

    id: str
    tenant_id: str
    key_id: str
    filename: str
    bytes: int
    sha256: str
    purpose: str
    created_at: float
    object: str


@dataclass(frozen=True, slots=True)
class StoreSize:
    """The number of files by state, the bytes of their originals, and the time of the last change (Unix seconds)."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    other: int = 0
    bytes: int = 0
    updated_at: float | None = None

    @property
    def total(self) -> int:
        """The number of all files."""
        return self.in_progress + self.completed + self.failed + self.cancelled + self.other

    def with_files(self, state: str, files: int, *, size: int, updated_at: float) -> "StoreSize":
        """A copy with the number of files in a state that had none."""
        latest = updated_at if self.updated_at is None else max(updated_at, self.updated_at)
        return replace(self, **{state or "other": files}, bytes=self.bytes + size, updated_at=latest)


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Files that were attached together. Times are Unix seconds."""

    id: str
    collection_id: str
    created_at: float
    cancelled_at: float | None
    file_ids: tuple[str, ...]

    def state(self, size: StoreSize) -> FileState:
        """The status of the batch; `size` counts its files."""
        if self.cancelled_at is not None:
            return FileState.CANCELLED
        if size.in_progress:
            return FileState.IN_PROGRESS
        return FileState.FAILED if size.total and size.failed == size.total else FileState.COMPLETED


_ADD = insert_or_ignore(unattached_file)
_is_document = sa.exists().where(document.c.id == unattached_file.c.id)
_CANCELLED = sa.and_(document.c.status == DocumentStatus.FAILED, job.c.error_code == CANCELLED)
_STATES: Mapping[FileState, sa.ColumnElement[bool]] = {
    FileState.IN_PROGRESS: document.c.status.in_(WORKING),
    FileState.COMPLETED: document.c.status == DocumentStatus.INDEXED,
    FileState.CANCELLED: _CANCELLED,
    FileState.FAILED: sa.and_(
        document.c.status == DocumentStatus.FAILED, sa.func.coalesce(job.c.error_code, "") != CANCELLED
    ),
}
_STATE = sa.case(*((condition, state.value) for state, condition in _STATES.items()), else_="")


class OpenAIFileRepository:
    """Files of all tenants. A file outside the principal's tenant or collections raises NotFound.

    Example:
        >>> rows = OpenAIFileRepository(database)
        >>> rows.unattached("doc_1", principal=principal).filename
        'a.pdf'
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def add(self, file: UnattachedFile) -> None:
        """Insert an unattached file, unless it exists."""
        with self._database.write() as connection:
            row = {column.name: getattr(file, column.name) for column in unattached_file.c}
            connection.execute(_ADD.on(connection), row)
            named(connection, file.object)
            note_effect(connection)

    def keep(self, document_ids: Sequence[str], *, key_id: str, purpose: str) -> tuple[str, ...]:
        """Insert documents as unattached files with their newest originals, in one transaction, before their deletion.

        Those that are gone are left out. Returns the names of the originals that files of the same ids had before,
        which the caller deletes.
        """
        of_newest = sa.and_(
            document_version.c.document_id == document.c.id, document_version.c.version == document.c.version
        )
        query = (
            sa.select(
                document.c.id,
                document.c.tenant_id,
                sa.literal(key_id).label("key_id"),
                document_version.c.filename,
                document_version.c.bytes,
                document_version.c.sha256,
                sa.literal(purpose).label("purpose"),
                document.c.created_at,
                document_version.c.object,
            )
            .join(document_version, of_newest)
            .where(document.c.id.in_(document_ids))
            .order_by(document.c.id)
            .with_for_update(of=document)  # a deletion then sees that the originals are named here, too
        )
        with self._database.write() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
            if not rows:
                return ()
            gone = sa.delete(unattached_file).where(unattached_file.c.id.in_([row["id"] for row in rows]))
            before = connection.execute(gone.returning(unattached_file.c.object)).scalars().all()
            connection.execute(sa.insert(unattached_file), rows)
            return condemn(connection, before, now=self._clock())

    def unattached(self, file_id: str, *, principal: Principal) -> UnattachedFile:
        """Find an unattached file.

        Raises:
            NotFound: No such file.
        """
        query = sa.select(unattached_file).where(unattached_file.c.id == file_id, *_reached(principal), ~_is_document)
        with self._database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise NotFound("There is no such file.")
        return UnattachedFile(**row)

    def remove(self, file_id: str) -> tuple[str, ...]:
        """Delete the row of an unattached file, if it exists: it is a document now.

        Returns the name of its original, if no other row has it; the caller deletes it.
        """
        gone = sa.delete(unattached_file).where(unattached_file.c.id == file_id).returning(unattached_file.c.object)
        with self._database.write() as connection:
            return condemn(connection, connection.execute(gone).scalars().all(), now=self._clock())

    def delete(self, file_id: str, *, tenant_id: str, record: Record | None = None) -> tuple[str, ...]:
        """Delete an unattached file of a tenant for good, if it exists; `record` then writes the audit entry.

        Returns the name of its original as `remove`.
        """
        mine = unattached_file.c.id == file_id, unattached_file.c.tenant_id == tenant_id
        with self._database.write() as connection:
            gone = sa.delete(unattached_file).where(*mine)
            row = connection.execute(gone.returning(unattached_file.c.filename, unattached_file.c.object)).one_or_none()
            if row is None:
                return ()
            if record is not None:
                record(connection, file_id, {"name": row.filename, "id": file_id})
            forget_answers(connection, tenant_id)
            return condemn(connection, [row.object], now=self._clock())

    def files(
        self, principal: Principal, place: PageRequest, *, purpose: str | None, of_documents: str
    ) -> Listed[Document | UnattachedFile]:
        """A page of documents, whose purpose is `of_documents`, and of unattached files."""
        documents = sa.select(document.c.id).where(*_held(principal))
        others = sa.select(unattached_file.c.id).where(*_reached(principal), ~_is_document)
        if purpose is not None:
            documents = documents.where(sa.literal(purpose) == of_documents)
            others = others.where(unattached_file.c.purpose == purpose)
        both = sa.union_all(documents, others).subquery()
        with self._database.read() as connection:
            ids = connection.execute(place.applied(sa.select(both.c.id), both.c.id)).scalars().all()
            found: dict[str, Document | UnattachedFile] = {
                row.id: to_document(row) for row in connection.execute(DOCUMENTS.where(document.c.id.in_(ids)))
            }
            rest = [file_id for file_id in ids if file_id not in found]
            in_rest = sa.select(unattached_file).where(unattached_file.c.id.in_(rest))
            for values in connection.execute(in_rest).mappings():
                found[values["id"]] = UnattachedFile(**values)
        return place.listed([found[file_id] for file_id in ids if file_id in found])

    def documents(
        self,
        collection_id: str,
        place: PageRequest,
        *,
        state: FileState | None = None,
        among: Sequence[str] | None = None,
    ) -> Listed[Document]:
        """A page of a collection's documents, optionally by state and `among` given ids. Access is not checked."""
        query = DOCUMENTS.where(document.c.collection_id == collection_id)
        if state is not None:
            query = query.where(_STATES[state])
        if among is not None:
            query = query.where(document.c.id.in_(among))
        with self._database.read() as connection:
            return place.listed([to_document(row) for row in connection.execute(place.applied(query, document.c.id))])

    def metadata_of(self, document_ids: Set[str]) -> dict[str, Metadata]:
        """The metadata of documents by id. Access is not checked."""
        query = sa.select(document.c.id, document.c.metadata).where(document.c.id.in_(document_ids))
        with self._database.read() as connection:
            return {row.id: row.metadata for row in connection.execute(query)}

    def stores(self, principal: Principal, place: PageRequest) -> Listed[Collection]:
        """A page of the collections that the principal may access, without counts; see `sizes`."""
        query = sa.select(collection).where(collection.c.tenant_id == principal.tenant_id)
        if principal.collections is not None:
            query = query.where(collection.c.id.in_(principal.collections))
        with self._database.read() as connection:
            rows = connection.execute(place.applied(query, collection.c.id)).mappings().all()
        return place.listed([Collection(**row, documents=0) for row in rows])

    def sizes(self, collection_ids: Sequence[str], *, among: Sequence[str] | None = None) -> dict[str, StoreSize]:
        """The sizes of collections by id, optionally of the documents `among` given ids."""
        newest = document_version
        query = (
            sa.select(
                document.c.collection_id,
                _STATE.label("state"),
                sa.func.count().label("files"),
                sa.func.coalesce(sa.func.sum(newest.c.bytes), 0).label("bytes"),
                sa.func.max(document.c.updated_at).label("updated_at"),
            )
            .join(newest, sa.and_(newest.c.document_id == document.c.id, newest.c.version == document.c.version))
            .join(job, job.c.id == document.c.job_id)
            .where(document.c.collection_id.in_(collection_ids))
            .group_by(document.c.collection_id, sa.literal_column("state"))
        )
        if among is not None:
            query = query.where(document.c.id.in_(among))
        found = {collection_id: StoreSize() for collection_id in collection_ids}
        with self._database.read() as connection:
            for row in connection.execute(query):
                found[row.collection_id] = found[row.collection_id].with_files(
                    row.state, row.files, size=int(row.bytes), updated_at=row.updated_at
                )
        return found

    def add_batch(self, batch: FileBatch) -> None:
        """Insert a batch."""
        with self._database.write() as connection:
            connection.execute(
                sa.insert(file_batch).values(
                    id=batch.id,
                    collection_id=batch.collection_id,
                    created_at=batch.created_at,
                    file_ids=list(batch.file_ids),
                )
            )
            note_effect(connection)

    def batch(self, batch_id: str, *, collection_id: str) -> FileBatch:
        """Find a batch of a collection. Access is not checked.

        Raises:
            NotFound: No such batch.
        """
        query = sa.select(file_batch).where(file_batch.c.id == batch_id, file_batch.c.collection_id == collection_id)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFound("There is no such batch.")
        return FileBatch(row.id, row.collection_id, row.created_at, row.cancelled_at, tuple(row.file_ids))

    def cancel_batch(self, batch_id: str) -> None:
        """Mark a batch as cancelled, unless it is."""
        with self._database.write() as connection:
            connection.execute(
                sa.update(file_batch)
                .where(file_batch.c.id == batch_id, file_batch.c.cancelled_at.is_(None))
                .values(cancelled_at=self._clock())
            )


def _held(principal: Principal) -> list[sa.ColumnElement[bool]]:
    mine = [document.c.tenant_id == principal.tenant_id]
    if principal.collections is not None:
        mine.append(document.c.collection_id.in_(principal.collections))
    return mine


def _reached(principal: Principal) -> list[sa.ColumnElement[bool]]:
    """Conditions on unattached files; a key limited to collections accesses only files that it uploaded itself."""
    mine = [unattached_file.c.tenant_id == principal.tenant_id]
    if principal.collections is not None:
        mine.append(unattached_file.c.key_id == principal.key_id)
    return mine
