"""Accepts, replaces, retries and deletes documents: the file on disk and the rows in SQL together."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from pydantic import SecretStr

from app.db.audit import Record
from app.db.collections import CollectionRepository
from app.db.documents import DocumentRepository
from app.db.jobs import JobRepository
from app.db.removal import Removal
from app.documents.originals import FileStore, Received
from app.documents.passwords import Passwords
from app.errors import StorageFull
from app.ids import new_id
from app.types import Deleted, Document, Job, NewDocument, Principal
from ingestion.errors import EmptyDocument
from ingestion.sniff import sniff
from retrieval.ports import Keys
from retrieval.types import Filter, Metadata

_BATCH = 100  # documents removed in one transaction


class Intake:
    """Creates, replaces and deletes documents.

    A file gets its final name inside the transaction that inserts its row, just before the commit. So the file of a
    job always exists, and a crash leaves at most a file without a row, which the next start deletes.

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
        files: FileStore,
        passwords: Passwords,
        wake: Callable[[], None],
        forget: Callable[[Keys], None],
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
            forget: Called with the keys of deleted chunks, to remove them from the indexes.
            on_queued: Called with the id of each job in the transaction that queues it.
            with_office: Whether LibreOffice is installed, so that legacy Office formats are accepted.
        """
        self._documents = documents
        self._collections = collections
        self._files = files
        self._passwords = passwords
        self._wake = wake
        self._forget = forget
        self._on_queued = on_queued
        self._with_office = with_office

    def accept(
        self,
        received: Received,
        *,
        filename: str,
        principal: Principal,
        collection_id: str,
        external_id: str | None,
        metadata: Metadata,
        on_duplicate: Literal["skip", "replace", "version", "error"] | None,
        password: SecretStr | None = None,
        document_id: str | None = None,
    ) -> tuple[Document, bool]:
        """Queue an upload for ingestion; returns the document, and whether it has a new version.

        A new document gets `document_id`, or a generated id.

        Raises:
            EmptyDocument: The file has no bytes.
            UnsupportedFormat: The format is not supported, or does not fit the file name.
            Encrypted: The file needs a password, and none was given.
            Conflict: A duplicate, and `on_duplicate` is "error".
        """
        name = display_name(filename)
        with self._placing(received) as place:
            _check(received, name, password, with_office=self._with_office)
            new = NewDocument(
                id=document_id or new_id("doc"),
                tenant_id=principal.tenant_id,
                collection_id=collection_id,
                filename=name,
                bytes=received.bytes,
                sha256=received.sha256,
                external_id=external_id,
                metadata=metadata,
            )
            document, created = self._documents.create(
                new,
                on_duplicate=on_duplicate,
                user_id=principal.user_id,
                key_id=principal.key_id,
                before_commit=place,
                while_queued=lambda queued: self._keep(password, queued),
            )
            if not created and not self._files.path(document.id, document.version).exists():
                self._files.place(received, document_id=document.id, version=document.version)
        self._wake()
        return document, created

    def check(self, received: Received, *, filename: str) -> None:
        """Check that an upload could become a document.

        Raises:
            EmptyDocument, UnsupportedFormat, Encrypted: As in `accept`.
        """
        _check(received, filename, None, with_office=self._with_office)

    def replace(
        self,
        document_id: str,
        received: Received,
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
        with self._placing(received) as place:

            def prepare(made: Document) -> None:
                place(made)
                self._keep(password, made)

            _check(received, name, password, with_office=self._with_office)
            document = self._documents.add_version(
                document_id,
                tenant_id=principal.tenant_id,
                collections=principal.collections,
                filename=name,
                size=received.bytes,
                sha256=received.sha256,
                replace=drop_older,
                user_id=principal.user_id,
                key_id=principal.key_id,
                before_commit=prepare,
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
            before_commit=lambda queued: self._keep(password, queued),
        )
        self._wake()
        return document

    def cancel(self, job_id: str, *, principal: Principal, jobs: JobRepository) -> Job:
        """Cancel a queued or running job; the document returns to its indexed version, or fails if it has none.

        Raises:
            NotFound: No such job.
            Conflict: It has ended.
        """
        job = jobs.cancel(job_id, tenant_id=principal.tenant_id, remove=self._files.remove)
        self._passwords.forget(job_id)
        return job

    def delete(self, document_id: str, *, principal: Principal, record: Record | None = None) -> Deleted:
        """Delete a document; no search returns it after this. `record` writes the audit entry.

        Raises:
            NotFound: No such document.
        """
        removal = self._documents.delete(
            document_id, tenant_id=principal.tenant_id, collections=principal.collections, record=record
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
        )
        self._finish(removal)
        return removal

    @contextmanager
    def _placing(self, received: Received) -> Iterator[Callable[[Document], None]]:
        """Yields a function that gives an upload its final name; what was not placed is deleted at exit.

        A full disk rolls the rows back. Then the file is deleted too: it would take the room that is missing.
        """
        placed: list[Document] = []

        def place(made: Document) -> None:
            self._files.place(received, document_id=made.id, version=made.version)
            placed.append(made)

        try:
            yield place
        except StorageFull:
            for made in placed:
                self._files.remove(made.id, made.version)
            raise
        finally:
            self._files.discard(received)

    def _finish(self, removal: Removal) -> None:
        """Delete from the indexes and the disk the chunks and files deleted from SQL."""
        self._forget(removal.keys)
        for document_id, version in removal.files:
            self._files.remove(document_id, version)

    def _keep(self, password: SecretStr | None, queued: Document) -> None:
        if password is not None:
            self._passwords.put(queued.job_id, password)
        if self._on_queued is not None:
            self._on_queued(queued.job_id)


def _check(received: Received, name: str, password: SecretStr | None, *, with_office: bool) -> None:
    if received.bytes == 0:
        raise EmptyDocument("The file is empty.")
    sniff(received.path, filename=name, with_password=password is not None, with_office=with_office)


def display_name(filename: str) -> str:
    """The last component of a file name, without control or bidirectional characters, at most 255 characters."""
    last = filename.replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(char for char in last if char.isprintable() and char not in "\u202a\u202b\u202c\u202d\u202e")
    name = name.strip()[-255:]
    if not name or set(name) <= {"."}:
        return "untitled"
    return name
