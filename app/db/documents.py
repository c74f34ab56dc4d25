"""Documents: created without duplicates, replaced version by version, deleted for good."""

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.audit import Record
from app.db.document_rows import (
    DOCUMENTS,
    FILENAME,
    OnDuplicate,
    duplicates,
    find_document,
    find_duplicate,
    lock_document,
    read_document,
    stays,
    to_document,
)
from app.db.filters import compile_filter
from app.db.idempotency import forget_answers
from app.db.paging import cut, decode_cursor
from app.db.removal import FollowRemoval, Removal, remove_documents
from app.db.session import Database
from app.db.tables.documents import collection, document
from app.db.values import require_metadata, require_text
from app.db.versions import Upload, insert_document, insert_version, requeue
from app.db.watch_changes import note_changes
from app.errors import Conflict, NotFound
from app.types import Document, DocumentStatus, NewDocument
from retrieval.types import Filter, Metadata

WhileQueued: TypeAlias = Callable[[sa.Connection, Document], None]
"""Called in the transaction in which a job waits for a document."""

_Result = TypeVar("_Result")
_READ_AT_ONCE = 500  # documents in one statement
_RACES = 5  # attempts after a lost race for a unique index, before it is an error


class DocumentRepository:
    """Documents of all tenants.

    `collections` are those that the key may access; None means all. A document outside the tenant or the collections
    raises NotFound, as one that does not exist.

    Example:
        >>> documents = DocumentRepository(database)
        >>> document, is_new = documents.create(new, on_duplicate="skip", user_id="ann", key_id="key_1")
        >>> documents.get(document.id, tenant_id="acme").status
        <DocumentStatus.QUEUED: 'queued'>
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        new: NewDocument,
        *,
        on_duplicate: OnDuplicate | None = None,
        user_id: str,
        key_id: str,
        while_queued: WhileQueued | None = None,
    ) -> tuple[Document, bool]:
        """Register an upload and queue its ingestion; returns the document, and whether it or a version is new.

        A duplicate is a document of the same collection with the same external id, if one is given, otherwise one
        whose newest version has the same bytes. A duplicate with the same bytes is returned as it is, and queued again
        if it had failed. A duplicate with other bytes gets a new version, and the new metadata unless they are empty.

        Args:
            new: The upload, whose original is stored; its id is used only when the document is new.
            on_duplicate: "skip" keeps a duplicate as it is, "replace" deletes its older versions once the new one is
                indexed, "error" refuses it. Otherwise older versions are kept.
            user_id: The user who uploads.
            key_id: The key of the upload.
            while_queued: Called in the transaction whenever a job waits for the document, new or not.

        Raises:
            NotFound: No such collection.
            Conflict: A duplicate, and `on_duplicate` is "error".
            InvalidRequest: Metadata or a name that cannot be stored.
        """
        upload = _checked(new, user_id=user_id, key_id=key_id)

        def register(connection: sa.Connection) -> tuple[Document, bool]:
            created, is_new = self._register(connection, new, upload, on_duplicate)
            if created.status == DocumentStatus.QUEUED and while_queued is not None:
                while_queued(connection, created)
            return created, is_new

        return self._racing(register)

    def known(
        self,
        new: NewDocument,
        *,
        on_duplicate: OnDuplicate | None = None,
        user_id: str,
        key_id: str,
        while_queued: WhileQueued | None = None,
    ) -> Document | None:
        """The duplicate that `create` would return without a new version; None when `new` needs its original stored.

        Looked for before the bytes are stored, which need not be then. A failed one is queued again. Arguments and
        errors as in `create`.
        """
        upload = _checked(new, user_id=user_id, key_id=key_id)
        with self._database.read() as connection:  # most uploads are new: they do not take the write lock twice
            row = connection.execute(duplicates(new)).one_or_none()
        if row is None or not stays(to_document(row), new, on_duplicate):
            return None
        with self._database.write() as connection:
            existing = find_duplicate(connection, new)
            if existing is None or not stays(existing, new, on_duplicate):
                return None
            found = self._keep(connection, existing, upload)
            if found.status == DocumentStatus.QUEUED and while_queued is not None:
                while_queued(connection, found)
            return found

    def _register(
        self, connection: sa.Connection, new: NewDocument, upload: Upload, on_duplicate: OnDuplicate | None
    ) -> tuple[Document, bool]:
        mine = collection.c.id == new.collection_id, collection.c.tenant_id == new.tenant_id
        if connection.execute(sa.select(collection.c.id).where(*mine)).scalar() is None:
            raise NotFound("There is no such collection.")
        existing, now = find_duplicate(connection, new), self._clock()
        if existing is None:
            insert_document(connection, new, upload, now=now)
            return read_document(connection, new.id), True
        if stays(existing, new, on_duplicate):
            return self._keep(connection, existing, upload), False
        insert_version(connection, existing, upload, replace=on_duplicate == "replace", now=now)
        if new.metadata:
            _set_metadata(connection, existing.id, new.metadata, now=now)
        return read_document(connection, existing.id), True

    def _keep(self, connection: sa.Connection, existing: Document, upload: Upload) -> Document:
        """A locked duplicate that gets no version; one with the same bytes is queued again if it had failed."""
        if existing.sha256 != upload.sha256 or existing.status != DocumentStatus.FAILED:
            return existing
        requeue(connection, existing, user_id=upload.user_id, key_id=upload.key_id, now=self._clock())
        return read_document(connection, existing.id)

    def add_version(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        original: str,
        filename: str,
        size: int,
        sha256: str,
        replace: bool = False,
        user_id: str,
        key_id: str,
        while_queued: WhileQueued | None = None,
    ) -> Document:
        """Queue a file of `size` bytes as the next version; search returns the present one until it is indexed.

        `original` names it in the store. With `replace` the older versions are deleted then. The job of a version that
        is not indexed yet is cancelled. `while_queued` as in `create`.

        Raises:
            NotFound: No such document.
            InvalidRequest: A name that cannot be stored.
        """
        require_text(filename, param="filename")
        upload = Upload(original=original, filename=filename, size=size, sha256=sha256, user_id=user_id, key_id=key_id)

        def add(connection: sa.Connection) -> Document:
            existing = lock_document(connection, document_id, tenant_id=tenant_id, collections=collections)
            insert_version(connection, existing, upload, replace=replace, now=self._clock())
            updated = read_document(connection, document_id)
            if while_queued is not None:
                while_queued(connection, updated)
            return updated

        return self._racing(add)

    def get(self, document_id: str, *, tenant_id: str, collections: tuple[str, ...] | None = None) -> Document:
        """The document.

        Raises:
            NotFound: No such document.
        """
        with self._database.read() as connection:
            return find_document(connection, document_id, tenant_id=tenant_id, collections=collections)

    def read_many(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Document]:
        """The documents with these tenants' ids and ids of their own, without those that do not exist."""
        found: dict[tuple[str, str], Document] = {}
        with self._database.read() as connection:
            for start in range(0, len(keys), _READ_AT_ONCE):
                wanted = sa.tuple_(document.c.tenant_id, document.c.id).in_(keys[start : start + _READ_AT_ONCE])
                rows = connection.execute(DOCUMENTS.where(wanted))
                found |= {(row.tenant_id, row.id): to_document(row) for row in rows}
        return found

    def list(
        self,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        collection_id: str | None = None,
        status: DocumentStatus | None = None,
        searchable: bool | None = None,
        q: str | None = None,
        filter: Filter | None = None,  # noqa: A002 - the API's own word
        limit: int,
        cursor: str | None = None,
    ) -> tuple[tuple[Document, ...], str | None]:
        """At most `limit` documents, newest first, and the cursor of the next page (None: no more).

        `searchable` selects documents with a version that is searched (true), or without one (false). `q` is a part of
        the file name, ASCII letters in either case.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        query = DOCUMENTS.where(document.c.tenant_id == tenant_id)
        if collections is not None:
            query = query.where(document.c.collection_id.in_(collections))
        if collection_id is not None:
            query = query.where(document.c.collection_id == collection_id)
        if status is not None:
            query = query.where(document.c.status == status)
        if searchable is not None:
            live = document.c.live_version
            query = query.where(live.is_not(None) if searchable else live.is_(None))
        if q:
            require_text(q, param="q")
            query = query.where(FILENAME.icontains(q, autoescape=True))
        if cursor is not None:
            created_at, last_id = decode_cursor(cursor, float, str)
            query = query.where(sa.tuple_(document.c.created_at, document.c.id) < sa.tuple_(created_at, last_id))
        query = query.order_by(document.c.created_at.desc(), document.c.id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            if filter is not None:
                query = query.where(compile_filter(filter, connection))
            found = tuple(to_document(row) for row in connection.execute(query))
        return cut(found, limit, lambda row: (row.created_at, row.id))

    def update_metadata(
        self, document_id: str, metadata: Metadata, *, tenant_id: str, collections: tuple[str, ...] | None = None
    ) -> Document:
        """Replace the metadata; the next search filters by them.

        Raises:
            NotFound: No such document.
            InvalidRequest: Metadata that cannot be stored.
        """
        require_metadata(metadata)
        with self._database.write() as connection:
            lock_document(connection, document_id, tenant_id=tenant_id, collections=collections)
            now = self._clock()
            _set_metadata(connection, document_id, metadata, now=now, updated_at=now)
            return read_document(connection, document_id)

    def retry(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        user_id: str,
        key_id: str,
        while_queued: WhileQueued | None = None,
    ) -> Document:
        """Queue a failed document again, as a new job. `while_queued` as in `create`.

        Raises:
            NotFound: No such document.
            Conflict: It has not failed.
        """
        with self._database.write() as connection:
            existing = lock_document(connection, document_id, tenant_id=tenant_id, collections=collections)
            if existing.status != DocumentStatus.FAILED:
                raise Conflict(f"Only a failed document can be retried; this one is {existing.status}.")
            requeue(connection, existing, user_id=user_id, key_id=key_id, now=self._clock())
            queued = read_document(connection, document_id)
            if while_queued is not None:
                while_queued(connection, queued)
            return queued

    def delete(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        record: Record | None = None,
        follow: FollowRemoval | None = None,
    ) -> Removal:
        """Delete the document with all its versions. Final: no search returns it after this.

        `record` writes the audit entry in the same transaction, and `follow` tells the indexes.

        Raises:
            NotFound: No such document.
        """
        with self._database.write() as connection:
            lock_document(connection, document_id, tenant_id=tenant_id, collections=collections)
            removal = remove_documents(connection, [document_id], now=self._clock(), record=record, follow=follow)
            forget_answers(connection, tenant_id)
            return removal

    def newest(self, *, tenant_id: str) -> float:
        """When the tenant's newest document was uploaded, Unix seconds; 0 without one."""
        latest = sa.select(sa.func.max(document.c.created_at)).where(document.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            return connection.execute(latest).scalar() or 0.0

    def delete_matching(
        self,
        filter: Filter,  # noqa: A002 - the API's own word
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        collection_id: str | None = None,
        created_until: float,
        limit: int,
        record: Record | None = None,
        follow: FollowRemoval | None = None,
    ) -> tuple[Removal, int]:
        """Delete at most `limit` matching documents in one transaction; returns what to delete elsewhere, and how many.

        `created_until` (Unix seconds) excludes later uploads, so that a loop over this call ends. `record` and
        `follow` as in `delete`, the audit entry of each document.
        """
        query = (
            sa.select(document.c.id)
            .where(document.c.tenant_id == tenant_id, document.c.created_at <= created_until)
            .order_by(document.c.id)
            .limit(limit)
            .with_for_update()
        )
        if collections is not None:
            query = query.where(document.c.collection_id.in_(collections))
        if collection_id is not None:
            query = query.where(document.c.collection_id == collection_id)
        with self._database.write() as connection:
            matching = query.where(compile_filter(filter, connection))
            ids = connection.execute(matching).scalars().all()
            removal = remove_documents(connection, ids, now=self._clock(), record=record, follow=follow)
            if ids:
                forget_answers(connection, tenant_id)
            return removal, len(ids)

    def _racing(self, body: Callable[[sa.Connection], _Result]) -> _Result:
        """Run `body` in a write transaction; retry it after a violation of a unique index."""
        for _ in range(_RACES - 1):
            try:
                with self._database.write() as connection:
                    return body(connection)
            except exc.IntegrityError:
                continue  # PostgreSQL: another transaction committed first; the retry finds its row
        with self._database.write() as connection:
            return body(connection)


def _checked(new: NewDocument, *, user_id: str, key_id: str) -> Upload:
    require_text(new.filename, param="filename")
    require_text(new.external_id or "", param="external_id")
    require_metadata(new.metadata)
    return Upload(
        original=new.original,
        filename=new.filename,
        size=new.bytes,
        sha256=new.sha256,
        user_id=user_id,
        key_id=key_id,
    )


def _set_metadata(
    connection: sa.Connection, document_id: str, metadata: Metadata, *, now: float, **changes: float
) -> None:
    note_changes(connection, [document_id], now=now)
    connection.execute(
        sa.update(document).where(document.c.id == document_id).values(metadata=dict(metadata), **changes)
    )
