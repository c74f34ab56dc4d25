"""OpenAI's protocol: files in vector stores, which are documents, and file batches."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.dependencies import AccessDep, CorpusDep, PrincipalDep, RequestId
from app.api.openai.schemas.vector_store_files import (
    BatchBody,
    ContentPage,
    NewBatch,
    NewStoreFile,
    StoreFileBody,
    StoreFileDeleted,
    StoreFilePatch,
)
from app.api.openai.schemas.vector_stores import TextContent
from app.api.openai.vector_stores import PlaceDep, StoreDep, StoreFileDep
from app.api.schemas.bounds import Id
from app.api.schemas.shape import ListBody, problems
from app.db.openai_files import FileBatch, FileState
from app.errors import NotFound
from app.server.state import DocumentsState

router = APIRouter(tags=["openai"])

_POLL_HEADER, _POLL_MS = "openai-poll-after-ms", "250"
StateFilter = Annotated[FileState | None, Query(alias="filter", description="Only files with this status.")]


@router.post(
    "/v1/vector_stores/{vector_store_id}/files",
    summary="Add a file to a vector store",
    responses=problems(400, 404, 409, 422, 503),
)
def create_store_file(
    store: StoreDep, body: NewStoreFile, response: Response, corpus: CorpusDep, principal: PrincipalDep
) -> StoreFileBody:
    """Make the file a document of the collection, and queue its ingestion."""
    document = corpus.openai_files.attach(body.file_id, store.id, attributes=body.attributes, principal=principal)
    shown = StoreFileBody.of(document)
    _ask_again_soon(response, shown.status)
    return shown


@router.get(
    "/v1/vector_stores/{vector_store_id}/files", summary="List a vector store's files", responses=problems(404, 422)
)
def list_store_files(
    store: StoreDep, corpus: CorpusDep, place: PlaceDep, status: StateFilter = None
) -> ListBody[StoreFileBody]:
    """The documents of the collection."""
    listed = corpus.openai_files.rows.documents(store.id, place, state=status)
    return ListBody[StoreFileBody].of(listed, StoreFileBody.of)


@router.get(
    "/v1/vector_stores/{vector_store_id}/files/{file_id}", summary="Read a vector store's file", responses=problems(404)
)
def read_store_file(document: StoreFileDep, response: Response) -> StoreFileBody:
    """A file of the vector store, with the status of its ingestion."""
    shown = StoreFileBody.of(document)
    _ask_again_soon(response, shown.status)
    return shown


@router.post(
    "/v1/vector_stores/{vector_store_id}/files/{file_id}",
    summary="Change a file's attributes",
    responses=problems(400, 404, 422),
)
def patch_store_file(
    document: StoreFileDep, body: StoreFilePatch, corpus: CorpusDep, principal: PrincipalDep
) -> StoreFileBody:
    """Replace the document's metadata, without embedding it again."""
    changed = corpus.documents.update_metadata(document.id, body.attributes or {}, tenant_id=principal.tenant_id)
    return StoreFileBody.of(changed)


@router.delete(
    "/v1/vector_stores/{vector_store_id}/files/{file_id}",
    summary="Remove a file from a vector store",
    responses=problems(404),
)
def delete_store_file(
    document: StoreFileDep, corpus: CorpusDep, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> StoreFileDeleted:
    """No search finds it once this returns. The file is kept; delete it by `DELETE /v1/files/{id}`."""
    record = access.audit.recording(principal, "document.detached", request_id=request_id)
    corpus.openai_files.detach(document, principal=principal, record=record)
    return StoreFileDeleted(id=document.id)


@router.get(
    "/v1/vector_stores/{vector_store_id}/files/{file_id}/content", summary="Read a file's text", responses=problems(404)
)
def read_store_file_content(document: StoreFileDep, corpus: CorpusDep, principal: PrincipalDep) -> ContentPage:
    """The canonical text, which the offsets of citations refer to."""
    if document.live_version is None:
        raise NotFound("The file has no text yet.")
    text = corpus.contents.text(document.id, tenant_id=principal.tenant_id, version=document.live_version)
    return ContentPage(data=[TextContent(text=text)])


@router.post(
    "/v1/vector_stores/{vector_store_id}/file_batches",
    summary="Add files to a vector store",
    responses=problems(400, 404, 409, 422, 503),
)
def create_batch(
    store: StoreDep, body: NewBatch, response: Response, corpus: CorpusDep, principal: PrincipalDep
) -> BatchBody:
    """Queue the ingestion of all files, or of none when one is missing."""
    batch = corpus.openai_files.attach_batch(body.wanted, store.id, principal=principal)
    return _body(corpus, batch, response)


@router.get(
    "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}", summary="Read a file batch", responses=problems(404)
)
def read_batch(batch_id: Id, store: StoreDep, response: Response, corpus: CorpusDep) -> BatchBody:
    """A file batch, with the status of its files."""
    return _body(corpus, corpus.openai_files.rows.batch(batch_id, collection_id=store.id), response)


@router.post(
    "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel",
    summary="Cancel a file batch",
    responses=problems(404),
)
def cancel_batch(
    batch_id: Id, store: StoreDep, response: Response, corpus: CorpusDep, principal: PrincipalDep
) -> BatchBody:
    """Cancel the ingestion of the remaining files; ingested files stay."""
    rows = corpus.openai_files.rows
    corpus.openai_files.cancel(rows.batch(batch_id, collection_id=store.id), principal=principal)
    return _body(corpus, rows.batch(batch_id, collection_id=store.id), response)


@router.get(
    "/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files",
    summary="List the files of a batch",
    responses=problems(404, 422),
)
def list_batch_files(
    batch_id: Id, store: StoreDep, corpus: CorpusDep, place: PlaceDep, status: StateFilter = None
) -> ListBody[StoreFileBody]:
    """The files of the batch that are still in the vector store."""
    rows = corpus.openai_files.rows
    batch = rows.batch(batch_id, collection_id=store.id)
    listed = rows.documents(store.id, place, state=status, among=batch.file_ids)
    return ListBody[StoreFileBody].of(listed, StoreFileBody.of)


def _body(corpus: DocumentsState, batch: FileBatch, response: Response) -> BatchBody:
    size = corpus.openai_files.rows.sizes([batch.collection_id], among=batch.file_ids)[batch.collection_id]
    body = BatchBody.of(batch, size)
    _ask_again_soon(response, body.status)
    return body


def _ask_again_soon(response: Response, status: FileState) -> None:
    """Set the poll interval: without this header OpenAI's clients poll once per second."""
    if status is FileState.IN_PROGRESS:
        response.headers[_POLL_HEADER] = _POLL_MS
