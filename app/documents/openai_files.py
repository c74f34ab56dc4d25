"""OpenAI's files and vector stores, mapped to documents and collections (docs/adr/0058).

A vector store is a collection. An uploaded file is kept unattached until it is attached to a vector store; there it
becomes a document with the same id. A detached file is kept unattached again.
"""

import time
from collections.abc import Callable, Sequence
from threading import Lock

from app.db.audit import Record
from app.db.documents import DocumentRepository
from app.db.jobs import JobRepository
from app.db.openai_files import FileBatch, FileState, OpenAIFileRepository, UnattachedFile
from app.db.paging import PageRequest
from app.documents.files import DocumentFiles
from app.documents.intake import Intake, display_name
from app.documents.ports import ObjectName, new_object_name
from app.documents.spool import Spooled
from app.errors import Conflict, NotFound
from app.ids import new_id
from app.types import Document, Principal
from retrieval.types import Metadata

PURPOSE = "assistants"
"""The OpenAI `purpose` of every document."""

_PAGE = 500


class OpenAIFiles:
    """Uploads, attaches, detaches and deletes files. One instance serves every request.

    Example:
        >>> file = openai_files.upload(received, filename="a.pdf", purpose="assistants", principal=principal)
        >>> openai_files.attach(file.id, "col_1", attributes=None, principal=principal)
    """

    def __init__(
        self,
        *,
        rows: OpenAIFileRepository,
        documents: DocumentRepository,
        jobs: JobRepository,
        files: DocumentFiles,
        intake: Intake,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives Unix seconds."""
        self._clock = clock
        self.rows = rows
        self._documents = documents
        self._jobs = jobs
        self._files = files
        self._intake = intake
        self._moving = Lock()  # held while a file becomes a document or the reverse

    def upload(self, received: Spooled, *, filename: str, purpose: str, principal: Principal) -> UnattachedFile:
        """Keep an upload as an unattached file.

        Raises:
            EmptyDocument, UnsupportedFormat, Encrypted: It could not become a document.
        """
        name = display_name(filename)
        file = UnattachedFile(
            id=new_id("doc"),
            tenant_id=principal.tenant_id,
            key_id=principal.key_id,
            filename=name,
            bytes=received.bytes,
            sha256=received.sha256,
            purpose=purpose,
            created_at=self._clock(),
            object=new_object_name(),
        )
        try:
            self._intake.check(received, filename=name)
            with self._files.put(received, name=file.object):
                self.rows.add(file)
        finally:
            self._files.spool.discard(received)
        return file

    def original_of(self, file: Document | UnattachedFile) -> ObjectName | None:
        """The name of a file's original, of a document that of the live version; None when it is gone."""
        if isinstance(file, UnattachedFile):
            return file.object
        return self._files.original_of(file.id, file.live_version or file.version)

    def find(self, file_id: str, *, principal: Principal) -> Document | UnattachedFile:
        """A file: a document, or an unattached file.

        Raises:
            NotFound: No such file.
        """
        try:
            return self._documents.get(file_id, tenant_id=principal.tenant_id, collections=principal.collections)
        except NotFound:
            return self.rows.unattached(file_id, principal=principal)

    def delete(
        self,
        file_id: str,
        *,
        principal: Principal,
        record: Record | None = None,
        record_document: Record | None = None,
    ) -> None:
        """Delete a file for good, also from its collection.

        The audit entry of a document is written by `record_document`, that of an unattached file by `record`.

        Raises:
            NotFound: No such file.
        """
        with self._moving:
            if isinstance(self.find(file_id, principal=principal), Document):
                self._intake.delete(file_id, principal=principal, record=record_document)
                record = None  # one act, one entry
            self._files.drop(self.rows.delete(file_id, tenant_id=principal.tenant_id, record=record))

    def attach(
        self, file_id: str, collection_id: str, *, attributes: Metadata | None, principal: Principal
    ) -> Document:
        """Turn a file into a document of a collection and queue its ingestion.

        The caller must have checked access to the collection. A file that is attached already gets the attributes, if
        any are given.

        Raises:
            NotFound: No such file.
            Conflict: It is in another collection.
        """
        with self._moving:
            found = self.find(file_id, principal=principal)
            if isinstance(found, Document):
                if found.collection_id != collection_id:
                    raise Conflict(f"The file is in {found.collection_id}; a file is in one vector store at a time.")
                if attributes is None:
                    return found
                return self._documents.update_metadata(file_id, attributes, tenant_id=principal.tenant_id)
            document = self._intake.adopt(
                found, principal=principal, collection_id=collection_id, metadata=attributes or {}
            )
            self._files.drop(self.rows.remove(file_id))
        return document

    def attach_batch(
        self, wanted: Sequence[tuple[str, Metadata | None]], collection_id: str, *, principal: Principal
    ) -> FileBatch:
        """Attach several files, given as (file id, attributes); none if one is missing or in another store.

        Raises:
            NotFound: No such file.
            Conflict: A file is in another collection.
        """
        for file_id, _ in wanted:
            found = self.find(file_id, principal=principal)
            if isinstance(found, Document) and found.collection_id != collection_id:
                raise Conflict(f"The file {file_id} is in another vector store; a file is in one at a time.")
        for file_id, attributes in wanted:
            self.attach(file_id, collection_id, attributes=attributes, principal=principal)
        ids = tuple(dict.fromkeys(file_id for file_id, _ in wanted))
        batch = FileBatch(new_id("vsfb"), collection_id, self._clock(), None, ids)
        self.rows.add_batch(batch)
        return batch

    def cancel(self, batch: FileBatch, *, principal: Principal) -> None:
        """Cancel the ingestion of those files of a batch that are not indexed yet."""
        place = PageRequest(limit=len(batch.file_ids))
        for document in self.rows.documents(
            batch.collection_id, place, state=FileState.IN_PROGRESS, among=batch.file_ids
        ).items:
            try:
                self._intake.cancel(document.job_id, principal=principal, jobs=self._jobs)
            except (Conflict, NotFound):
                continue  # it ended, or was deleted, in between
        self.rows.cancel_batch(batch.id)

    def detach(self, document: Document, *, principal: Principal, record: Record | None = None) -> None:
        """Remove a document from its collection and from search; its newest original is kept as an unattached file.

        `record` writes the audit entry.

        Raises:
            NotFound: It is gone.
        """
        with self._moving:
            self._keep([document], principal=principal)
            self._intake.delete(document.id, principal=principal, record=record)

    def delete_store(
        self,
        collection_id: str,
        *,
        principal: Principal,
        record: Record | None = None,
        record_document: Record | None = None,
    ) -> None:
        """Delete a collection; the newest originals of its documents are kept as unattached files.

        `record` writes the audit entry of the collection, `record_document` that of each document.

        Raises:
            NotFound: It is gone.
        """
        with self._moving:
            place = PageRequest(limit=_PAGE, order="asc")
            while True:
                page = self.rows.documents(collection_id, place)
                self._keep(page.items, principal=principal)
                if not page.has_more:
                    break
                place = PageRequest(limit=_PAGE, order="asc", after=page.items[-1].id)
            self._intake.delete_collection(
                collection_id, principal=principal, force=True, record=record, record_document=record_document
            )

    def _keep(self, documents: Sequence[Document], *, principal: Principal) -> None:
        """Keep originals as unattached files, which name them before the documents go."""
        ids = [document.id for document in documents]
        self._files.drop(self.rows.keep(ids, key_id=principal.key_id, purpose=PURPOSE))
