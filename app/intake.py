"""Accepting, replacing and deleting documents: bytes on disk and rows in SQL, always in that order."""

from collections.abc import Callable
from typing import Literal

from app.db.collections import CollectionRepository
from app.db.documents import DocumentRepository
from app.db.removal import Removal
from app.files import FileStore, Received
from app.identifiers import new_id
from app.types import Deleted, Document, NewDocument, Principal
from ingestion.errors import EmptyDocument
from ingestion.sniff import sniff
from retrieval.ports import Keys
from retrieval.types import Metadata


class Intake:
    """Every change to which documents exist.

    A file gets its final name inside the transaction that makes the row, just before its commit:
    a job's file is always where the job says, and a crash leaves at most a file no row names,
    which the next start removes.
    """

    def __init__(
        self,
        *,
        documents: DocumentRepository,
        collections: CollectionRepository,
        files: FileStore,
        wake: Callable[[], None],
        forget: Callable[[Keys], None],
    ) -> None:
        """Take collaborators.

        Args:
            documents: Their rows.
            collections: The collections' rows.
            files: The bytes.
            wake: Called when there is new work.
            forget: Called with the keys of chunks that are gone, to drop their vectors.
        """
        self._documents = documents
        self._collections = collections
        self._files = files
        self._wake = wake
        self._forget = forget

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
    ) -> tuple[Document, bool]:
        """Queue an upload; returns the document, and whether there is a new version to ingest.

        Raises:
            EmptyDocument: No bytes.
            UnsupportedFormat: Bytes we do not read, or a name that belies them.
            Conflict: A duplicate, and `on_duplicate` is "error".
        """
        name = display_name(filename)
        try:
            self._check(received, name)
            new = NewDocument(
                id=new_id("doc"),
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
                before_commit=lambda made: self._files.place(received, document_id=made.id, version=made.version),
            )
            if not created and not self._files.path(document.id, document.version).exists():
                self._files.place(received, document_id=document.id, version=document.version)
        finally:
            self._files.discard(received)
        self._wake()
        return document, created

    def replace(self, document_id: str, received: Received, *, filename: str, principal: Principal) -> Document:
        """Queue new bytes as the document's next version; the old one stays visible until the swap.

        Raises:
            NotFound: No such document.
            EmptyDocument: No bytes.
            UnsupportedFormat: As in `accept`.
        """
        name = display_name(filename)
        try:
            self._check(received, name)
            document = self._documents.add_version(
                document_id,
                tenant_id=principal.tenant_id,
                collections=principal.collections,
                filename=name,
                size=received.bytes,
                sha256=received.sha256,
                user_id=principal.user_id,
                key_id=principal.key_id,
                before_commit=lambda made: self._files.place(received, document_id=made.id, version=made.version),
            )
        finally:
            self._files.discard(received)
        self._wake()
        return document

    def retry(self, document_id: str, *, principal: Principal) -> Document:
        """Queue a failed document again.

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
        )
        self._wake()
        return document

    def delete(self, document_id: str, *, principal: Principal) -> Deleted:
        """Remove a document; no search sees it once this returns.

        Raises:
            NotFound: No such document.
        """
        removal = self._documents.delete(document_id, tenant_id=principal.tenant_id, collections=principal.collections)
        self._finish(removal)
        return removal.deleted

    def delete_collection(self, collection_id: str, *, principal: Principal, force: bool) -> Removal:
        """Remove a collection; with `force` the documents in it too.

        Raises:
            NotFound: No such collection.
            Conflict: It holds documents, and `force` is false.
        """
        removal = self._collections.delete(
            collection_id, tenant_id=principal.tenant_id, allowed=principal.collections, force=force
        )
        self._finish(removal)
        return removal

    def _finish(self, removal: Removal) -> None:
        """SQL has forgotten; now vectors and files."""
        self._forget(removal.keys)
        for document_id, version in removal.files:
            self._files.remove(document_id, version)

    def _check(self, received: Received, name: str) -> None:
        if received.bytes == 0:
            raise EmptyDocument("The file is empty.")
        sniff(received.path, filename=name)


def display_name(filename: str) -> str:
    """A file name as metadata: the last path component, without control or direction characters, at most 255 long."""
    last = filename.replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(char for char in last if char.isprintable() and char not in "\u202a\u202b\u202c\u202d\u202e")
    name = name.strip()[-255:]
    if not name or set(name) <= {"."}:
        return "untitled"
    return name
