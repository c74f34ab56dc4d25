"""Routes of documents: upload, replace, list, change, delete, retry, versions and ingestion events."""

import json
import time
from collections.abc import Callable
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from app.api.dependencies import (
    AccessDep,
    CorpusDep,
    Cursor,
    Limit,
    PrincipalDep,
    RequestId,
    SettingsDep,
    visible_collection,
    visible_document,
)
from app.api.document_events import wait_for_ingestion
from app.api.schemas.bounds import MOST_FIELDS, MOST_METADATA, MOST_QUERY, Id
from app.api.schemas.documents import (
    ArchiveBody,
    DeleteByFilter,
    DeletedBody,
    DocumentBody,
    MemberBody,
    MetadataPatch,
    RetryRequest,
    SkippedBody,
    VersionBody,
)
from app.api.schemas.search import FILTER
from app.api.schemas.shape import Page, problems
from app.api.upload import MULTIPART, ReceivedUpload, read_upload
from app.documents.archives import Unpacked, UnpackingLimits, is_archive, unpack
from app.documents.spool import Spooled
from app.errors import InvalidRequest
from app.server.state import DocumentsState
from app.settings import Settings
from app.types import Document, DocumentStatus, Principal
from retrieval.filters import parse_filter
from retrieval.types import Metadata

router = APIRouter(tags=["documents"])
_SEARCHABLE = "True: only documents with a version that is searched now. False: only documents without one."


@router.post(
    "/v1/documents",
    status_code=202,
    response_model=DocumentBody | ArchiveBody,
    summary="Upload a document",
    openapi_extra=MULTIPART,
    responses={
        200: {
            "model": DocumentBody | ArchiveBody,
            "description": "A duplicate: `duplicate_of` is the existing document.",
        },
        **problems(404, 409, 413, 415, 422, 503),
    },
)
async def upload_document(
    request: Request, response: Response, corpus: CorpusDep, settings: SettingsDep, principal: PrincipalDep
) -> DocumentBody | ArchiveBody:
    """Store a file and queue its ingestion; both are on disk when this returns.

    Each file of a zip archive becomes a document, and the response lists them.
    """
    upload = await read_upload(request, corpus, settings, principal)
    fields = upload.fields
    result = await accepted(upload, corpus, settings, principal)
    if isinstance(result, Unpacked):
        return await _archive_body(corpus, result, response, wait=fields.wait)
    document, created = result
    if fields.wait:
        document = await wait_for_ingestion(corpus, document, seconds=fields.wait)
    if not created:
        response.status_code = 200
    return DocumentBody.of(document, duplicate=not created)


async def accepted(
    upload: ReceivedUpload, corpus: DocumentsState, settings: Settings, principal: Principal
) -> Unpacked | tuple[Document, bool]:
    """Queue a received upload: an archive's files, or a document and whether it has a new version.

    Raises:
        NotFound: Its collection does not exist for this caller.
        InvalidRequest: It names no collection of a limited key, or its metadata cannot be stored.
        IngestionError, Conflict: As `Intake.accept`.
    """
    fields = upload.fields
    try:
        collection_id = await anyio.to_thread.run_sync(_target, corpus, principal, fields.collection_id)
        metadata = checked_metadata(fields.metadata)
    except BaseException:
        corpus.files.spool.discard(upload.received)
        raise

    def accept(received: Spooled, filename: str, external_id: str | None) -> tuple[Document, bool]:
        return corpus.intake.accept(
            received,
            filename=filename,
            principal=principal,
            collection_id=collection_id,
            external_id=external_id,
            metadata=metadata,
            on_duplicate=fields.on_duplicate,
            password=upload.password,
        )

    def accept_all() -> Unpacked | tuple[Document, bool]:
        if upload.is_file and is_archive(upload.received, filename=upload.filename):
            return _unpack(corpus, settings, upload, accept)
        return accept(upload.received, upload.filename, fields.external_id)

    return await anyio.to_thread.run_sync(accept_all)


@router.put(
    "/v1/documents/{document_id}",
    status_code=202,
    response_model=DocumentBody,
    summary="Replace a document's content",
    openapi_extra=MULTIPART,
    responses=problems(404, 413, 415, 422, 503),
)
async def replace_document(
    document_id: Id, request: Request, corpus: CorpusDep, settings: SettingsDep, principal: PrincipalDep
) -> DocumentBody:
    """Queue a new version; the old one is searched until the new one is indexed, then replaced in one step.

    With `on_duplicate=replace` the old versions are then deleted. The metadata stay.
    """
    await anyio.to_thread.run_sync(visible_document, corpus, principal, document_id)
    upload = await read_upload(request, corpus, settings, principal)
    try:
        checked_metadata(upload.fields.metadata)
    except BaseException:
        corpus.files.spool.discard(upload.received)
        raise
    document = await anyio.to_thread.run_sync(
        lambda: corpus.intake.replace(
            document_id,
            upload.received,
            filename=upload.filename,
            principal=principal,
            drop_older=upload.fields.on_duplicate == "replace",
            password=upload.password,
        )
    )
    if upload.fields.wait:
        document = await wait_for_ingestion(corpus, document, seconds=upload.fields.wait)
    return DocumentBody.of(document)


@router.get("/v1/documents", summary="List documents", responses=problems(404, 422))
def list_documents(
    corpus: CorpusDep,
    principal: PrincipalDep,
    collection_id: Annotated[Id | None, Query(description="Only in this collection.")] = None,
    status: Annotated[DocumentStatus | None, Query(description="Only with this status.")] = None,
    searchable: Annotated[bool | None, Query(description=_SEARCHABLE)] = None,
    q: Annotated[str | None, Query(max_length=500, description="Only documents whose file name contains this.")] = None,
    filter: Annotated[str | None, Query(max_length=MOST_QUERY, description=f"JSON. {FILTER}")] = None,  # noqa: A002 - the contract's name
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[DocumentBody]:
    """Documents, newest first."""
    if collection_id is not None:
        visible_collection(corpus, principal, collection_id)
    documents, next_cursor = corpus.documents.list(
        tenant_id=principal.tenant_id,
        collections=principal.collections,
        collection_id=collection_id,
        status=status,
        searchable=searchable,
        q=q,
        filter=parse_filter(_json(filter, "filter")) if filter else None,
        limit=limit,
        cursor=cursor,
    )
    return Page(
        data=[DocumentBody.of(item) for item in documents], has_more=next_cursor is not None, next_cursor=next_cursor
    )


@router.post("/v1/documents/delete", summary="Delete documents by filter", responses=problems(404, 422))
def delete_documents(
    body: DeleteByFilter, corpus: CorpusDep, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> DeletedBody:
    """Delete all documents that match now. The deletion is complete and final when this returns."""
    if body.collection_id is not None:
        visible_collection(corpus, principal, body.collection_id)
    condition = parse_filter(body.filter)
    assert condition is not None, "the schema asks for a field at least"
    record = access.audit.recording(principal, "document.deleted", request_id=request_id)
    deleted, documents = corpus.intake.delete_matching(
        condition, principal=principal, collection_id=body.collection_id, record=record
    )
    return DeletedBody.of(deleted, documents=documents)


@router.get("/v1/documents/{document_id}", summary="Read a document", responses=problems(404))
def read_document(document_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> DocumentBody:
    """A document, with status, counts and metadata."""
    return DocumentBody.of(visible_document(corpus, principal, document_id))


@router.patch("/v1/documents/{document_id}", summary="Change metadata", responses=problems(404, 422))
def patch_document(document_id: Id, body: MetadataPatch, corpus: CorpusDep, principal: PrincipalDep) -> DocumentBody:
    """Replace the metadata, without embedding the document again."""
    visible_document(corpus, principal, document_id)
    metadata = checked_metadata(body.metadata)
    return DocumentBody.of(corpus.documents.update_metadata(document_id, metadata, tenant_id=principal.tenant_id))


@router.delete("/v1/documents/{document_id}", summary="Delete a document", responses=problems(404))
def delete_document(
    document_id: Id, corpus: CorpusDep, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> DeletedBody:
    """Delete the document, its chunks and vectors; no search finds it once this returns."""
    visible_document(corpus, principal, document_id)
    record = access.audit.recording(principal, "document.deleted", request_id=request_id)
    return DeletedBody.of(corpus.intake.delete(document_id, principal=principal, record=record), documents=1)


@router.post(
    "/v1/documents/{document_id}/retry",
    status_code=202,
    summary="Retry a failed document",
    responses=problems(404, 409, 422),
)
def retry_document(
    document_id: Id, corpus: CorpusDep, principal: PrincipalDep, body: RetryRequest | None = None
) -> DocumentBody:
    """Queue a failed document again; send the password for one that failed as `encrypted`."""
    visible_document(corpus, principal, document_id)
    password = body.password if body is not None else None
    return DocumentBody.of(corpus.intake.retry(document_id, principal=principal, password=password))


@router.get("/v1/documents/{document_id}/versions", summary="List versions", responses=problems(404, 422))
def list_versions(
    document_id: Id, corpus: CorpusDep, principal: PrincipalDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[VersionBody]:
    """Versions, newest first; indexed ones can be read by `/content?version=`."""
    document = visible_document(corpus, principal, document_id)
    versions, next_cursor = corpus.contents.versions(
        document_id, tenant_id=principal.tenant_id, limit=limit, cursor=cursor
    )
    data = [VersionBody.of(version, live=version.version == document.live_version) for version in versions]
    return Page(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


def checked_metadata(raw: object) -> Metadata:
    """Metadata whose values filters can compare: strings, numbers, booleans, null, and lists of these.

    Raises:
        InvalidRequest: It is not an object, or holds something else, or is too large.
    """
    if not isinstance(raw, dict) or len(json.dumps(raw)) > MOST_METADATA:
        raise InvalidRequest(
            f"'metadata' must be a JSON object of at most {MOST_METADATA:,} characters.", param="metadata"
        )
    for key, value in raw.items():
        if isinstance(value, list) and len(value) > MOST_FIELDS:
            raise InvalidRequest(
                f"metadata field '{key[:64]}' must be a list of at most {MOST_FIELDS} values.", param="metadata"
            )
        for item in value if isinstance(value, list) else [value]:
            if not (item is None or isinstance(item, str | int | float)):
                raise InvalidRequest(
                    f"metadata field '{key[:64]}' must be a string, number, boolean, null or a list of these.",
                    param="metadata",
                )
    return raw


def _target(corpus: DocumentsState, principal: Principal, collection_id: str | None) -> str:
    """The id of the collection for an upload."""
    if collection_id is not None:
        return visible_collection(corpus, principal, collection_id).id
    default = corpus.collections.default(principal.tenant_id).id
    if principal.collections is not None and default not in principal.collections:
        raise InvalidRequest("Name a collection of this key as 'collection_id'.", param="collection_id")
    return default


def _unpack(
    corpus: DocumentsState,
    settings: Settings,
    upload: ReceivedUpload,
    accept: Callable[[Spooled, str, str | None], tuple[Document, bool]],
) -> Unpacked:
    prefix = upload.fields.external_id
    password = upload.password.get_secret_value() if upload.password is not None else None
    return unpack(
        upload.received,
        spool=corpus.files.spool,
        limits=UnpackingLimits(members=settings.archive_members, member_bytes=settings.max_upload_mb << 20),
        password=password,
        accept=lambda received, member: accept(
            received, member.name, f"{prefix}/{member.name}" if prefix is not None else None
        ),
    )


async def _archive_body(corpus: DocumentsState, unpacked: Unpacked, response: Response, *, wait: float) -> ArchiveBody:
    deadline = time.monotonic() + wait
    data = []
    for member in unpacked.accepted:
        left = deadline - time.monotonic()
        document = await wait_for_ingestion(corpus, member.document, seconds=left) if wait else member.document
        data.append(MemberBody.of(document, duplicate=not member.created, archive_path=member.name))
    if not any(member.created for member in unpacked.accepted):
        response.status_code = 200
    return ArchiveBody(data=data, skipped=[SkippedBody.of(skipped) for skipped in unpacked.skipped])


def _json(text: str, param: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"'{param}' must be JSON.", param=param) from None
