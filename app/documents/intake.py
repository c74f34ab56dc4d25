"""Accepts, replaces, retries and deletes documents: the original in its store and the rows in SQL together."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from pydantic import SecretStr

from app.db.audit import Record
from app.db.collections import CollectionRepository
from app.db.documents import DocumentRepository
from app.db.jobs import JobRepository
from app.db.openai_files import UnattachedFile
from app.db.removal import Removal
from app.documents.files import DocumentFiles
from app.documents.index_ports import RemovesChunks
from app.documents.passwords import JobPasswords
from app.documents.ports import new_object_name
from app.documents.spool import Spooled
from app.errors import NotFound
from app.ids import new_id
from app.types import Deleted, Document, Job, NewDocument, Principal
from ingestion.errors import EmptyDocument
from ingestion.sniff import sniff
from retrieval.types import Filter, Metadata

_BATCH = 100  # documents removed in one transaction


class Intake:
    """Creates, replaces and deletes documents.

    An original is in its store before the transaction whose rows name it. So the original of a job always exists, and
    a crash leaves at most one that no row names, which the next start deletes (see `DocumentFiles`).

    Example:
        >>> document, created = intake.accept(
        ...     received, filename="a.pdf", principal=principal, collection_id="col_1",
        ...     external_id=None, metadata={}, on_duplicate="skip",
        ... )
    """

    def __init__(
        self,
        *,
        documents: DocumentRepository,
        collections: CollectionRepository,
        files: DocumentFiles,
        passwords: JobPasswords,
        wake: Callable[[], None],
        indexes: RemovesChunks,
        on_queued: Callable[[str], None] | None = None,
        with_office: bool = False,
    ) -> None:
        """Create the intake of one installation.

        Args:
            documents: The documents' rows.
            collections: The collections' rows.
            files: The originals.
            passwords: Receives the passwords of protected files, for the worker.
            wake: Called after a job was queued.
            indexes: Told of deleted chunks, in the transaction that deletes them and after it.
            on_queued: Called with the id of each job in the transaction that queues it.
            with_office: Whether LibreOffice is installed, so that legacy Office formats are accepted.
        """
        self._documents = documents
        self._collections = collections
        self._files = files
        self._passwords = passwords
        self._wake = wake
        self._indexes = indexes
        self._on_queued = on_queued
        self._with_office = with_office

    def accept(
        self,
        received: Spooled,
        *,
        filename: str,
        principal: Principal,
        collection_id: str,
        external_id: str | None,
        metadata: Metadata,
        on_duplicate: Literal["skip", "replace", "version", "error"] | None,
        password: SecretStr | None = None,
    ) -> tuple[Document, bool]:
        """Queue an upload for ingestion; returns the document, and whether it has a new version.

        Raises:
            EmptyDocument: The file has no bytes.
            UnsupportedFormat: The format is not supported, or does not fit the file name.
            Encrypted: The file needs a password, and none was given.
            Conflict: A duplicate, and `on_duplicate` is "error".
        """
        name = display_name(filename)
        new = NewDocument(
            id=new_id("doc"),
            original=new_object_name(),
            tenant_id=principal.tenant_id,
            collection_id=collection_id,
            filename=name,
            bytes=received.bytes,
            sha256=received.sha256,
            external_id=external_id,
            metadata=metadata,
        )

        with self._spooled(received):
            _check(received, name, password, with_office=self._with_office)
            uploader = {"user_id": principal.user_id, "key_id": principal.key_id}
            known = self._documents.known(
                new, on_duplicate=on_duplicate, while_queued=partial(self._keep, password), **uploader
            )
            if known is None:
                with self._files.put(received, name=new.original):
                    document, created = self._documents.create(
                        new, on_duplicate=on_duplicate, while_queued=partial(self._keep, password), **uploader
                    )
            else:
                document, created = known, False
                self._heal(known, received)
        self._wake()
        return document, created

    def adopt(self, file: UnattachedFile, *, principal: Principal, collection_id: str, metadata: Metadata) -> Document:
        """Queue an unattached file for ingestion, as a document of the same id with the same original.

        Raises:
            NotFound: Its original is gone.
            EmptyDocument, UnsupportedFormat, Encrypted: As in `accept`.
        """
        try:
            with self._files.store.local_copy(file.object) as path:
                _check_file(path, file.bytes, file.filename, None, with_office=self._with_office)
        except FileNotFoundError:
            raise NotFound("There is no such file.") from None
        new = NewDocument(
            id=file.id,
            original=file.object,
            tenant_id=principal.tenant_id,
            collection_id=collection_id,
            filename=file.filename,
            bytes=file.bytes,
            sha256=file.sha256,
            external_id=file.id,  # files with the same bytes stay separate documents; never shown
            metadata=metadata,
        )
        document, _ = self._documents.create(
            new,
            on_duplicate="skip",
            user_id=principal.user_id,
            key_id=principal.key_id,
            while_queued=partial(self._keep, None),
        )
        self._wake()
        return document

    def check(self, received: Spooled, *, filename: str) -> None:
        """Check that an upload could become a document.

        Raises:
            EmptyDocument, UnsupportedFormat, Encrypted: As in `accept`.
        """
        _check(received, filename, None, with_office=self._with_office)

    def replace(
        self,
        document_id: str,
        received: Spooled,
        *,
        filename: str,
        principal: Principal,
        drop_older: bool = False,
        password: SecretStr | None = None,
    ) -> Document:
        """Queue an upload as the document's next version; the old one stays searchable until it is indexed.

        With `drop_older` older versions are deleted then; otherwise their text stays readable.

        Raises:
            NotFound: No such document.
            EmptyDocument, UnsupportedFormat, Encrypted: As in `accept`.
        """
        name = display_name(filename)
        with self._spooled(received):
            _check(received, name, password, with_office=self._with_office)
            with self._files.put(received, name=new_object_name()) as original:
                document = self._documents.add_version(
                    document_id,
                    tenant_id=principal.tenant_id,
                    collections=principal.collections,
                    original=original,
                    filename=name,
                    size=received.bytes,
                    sha256=received.sha256,
                    replace=drop_older,
                    user_id=principal.user_id,
                    key_id=principal.key_id,
                    while_queued=partial(self._keep, password),
                )
        self._wake()
        return document

    def retry(self, document_id: str, *, principal: Principal, password: SecretStr | None = None) -> Document:
        """Queue a failed document again, with a password if it needs one.

        Raises:
            NotFound: No such document.
            Conflict: It has not failed.
        """
        document = self._documents.retry(
            document_id,
            tenant_id=principal.tenant_id,
            collections=principal.collections,
            user_id=principal.user_id,
            key_id=principal.key_id,
            while_queued=partial(self._keep, password),
        )
        self._wake()
        return document

    def cancel(self, job_id: str, *, principal: Principal, jobs: JobRepository) -> Job:
        """Cancel a queued or running job; the document returns to its indexed version, or fails if it has none.

        Raises:
            NotFound: No such job.
            Conflict: It has ended.
        """
        job, originals = jobs.cancel(job_id, tenant_id=principal.tenant_id)
        self._files.drop(originals)
        self._passwords.forget(job_id)
        return job

    def delete(self, document_id: str, *, principal: Principal, record: Record | None = None) -> Deleted:
        """Delete a document; no search returns it after this. `record` writes the audit entry.

        Raises:
            NotFound: No such document.
        """
        removal = self._documents.delete(
            document_id,
            tenant_id=principal.tenant_id,
            collections=principal.collections,
            record=record,
            follow=self._indexes.remove_in,
        )
        self._finish(removal)
        return removal.deleted

    def delete_matching(
        self, condition: Filter, *, principal: Principal, collection_id: str | None, record: Record | None = None
    ) -> tuple[Deleted, int]:
        """Delete every document whose metadata match now, in batches; returns what was deleted, and of how many.

        `record` writes the audit entry of each document. After a failure whole batches are deleted; call it again to
        delete the rest.
        """
        newest = self._documents.newest(tenant_id=principal.tenant_id)  # by the rows: clocks differ between starts
        chunks, vectors, documents = 0, 0, 0
        while True:
            removal, count = self._documents.delete_matching(
                condition,
                tenant_id=principal.tenant_id,
                collections=principal.collections,
                collection_id=collection_id,
                created_until=newest,
                limit=_BATCH,
                record=record,
                follow=self._indexes.remove_in,
            )
            if count == 0:
                return Deleted(chunks=chunks, vectors=vectors), documents
            self._finish(removal)
            chunks, vectors = chunks + removal.deleted.chunks, vectors + removal.deleted.vectors
            documents += count

    def delete_collection(
        self,
        collection_id: str,
        *,
        principal: Principal,
        force: bool,
        record: Record | None = None,
        record_document: Record | None = None,
    ) -> Removal:
        """Delete a collection; with `force` its documents too. Audit entries as in the repository's `delete`.

        Raises:
            NotFound: No such collection.
            Conflict: It holds documents, and `force` is false.
        """
        removal = self._collections.delete(
            collection_id,
            tenant_id=principal.tenant_id,
            allowed=principal.collections,
            force=force,
            record=record,
            record_document=record_document,
            follow=self._indexes.remove_in,
        )
        self._finish(removal)
        return removal

    @contextmanager
    def _spooled(self, received: Spooled) -> Iterator[None]:
        """Discards a spooled file at exit."""
        try:
            yield
        finally:
            self._files.spool.discard(received)

    def _heal(self, known: Document, received: Spooled) -> None:
        """Store the same bytes again for a document whose original is lost."""
        name = self._files.original_of(known.id, known.version)
        if name is not None and known.sha256 == received.sha256 and self._files.store.size(name) is None:
            with self._files.put(received, name=name):
                pass

    def _finish(self, removal: Removal) -> None:
        """Delete from the indexes and the store the chunks and originals deleted from SQL."""
        self._indexes.forget(removal.keys)
        self._files.drop(removal.originals)

    def _keep(self, password: SecretStr | None, connection: sa.Connection, queued: Document) -> None:
        if password is not None:
            self._passwords.put_in(connection, queued.job_id, password)
        if self._on_queued is not None:
            self._on_queued(queued.job_id)


def _check(received: Spooled, name: str, password: SecretStr | None, *, with_office: bool) -> None:
    _check_file(received.path, received.bytes, name, password, with_office=with_office)


def _check_file(path: Path, size: int, name: str, password: SecretStr | None, *, with_office: bool) -> None:
    if size == 0:
        raise EmptyDocument("The file is empty.")
    sniff(path, filename=name, with_password=password is not None, with_office=with_office)


def display_name(filename: str) -> str:
    """The last component of a file name, without control or bidirectional characters, at most 255 characters."""
    last = filename.replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(char for char in last if char.isprintable() and char not in "\u202a\u202b\u202c\u202d\u202e")
    name = name.strip()[-255:]
    if not name or set(name) <= {"."}:
        return "untitled"
    return name
