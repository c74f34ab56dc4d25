"""OpenAI's protocol: files."""

from typing import Annotated, Literal

import anyio
from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse

from app.api.contents import original_response
from app.api.dependencies import AccessDep, CorpusDep, PrincipalDep, RequestId, SettingsDep
from app.api.openai.schemas.files import FileBody, FileDeleted
from app.api.schemas.bounds import Id
from app.api.schemas.shape import ListBody, problems
from app.api.upload import received_form
from app.db.openai_files import UnattachedFile
from app.db.paging import PageRequest
from app.documents.openai_files import PURPOSE
from app.errors import InvalidRequest, NotFound, UnsupportedParameter

router = APIRouter(tags=["openai"])

_PURPOSES = ("assistants", "user_data")
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "additionalProperties": False,
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "The file."},
                        "purpose": {
                            "type": "string",
                            "enum": list(_PURPOSES),
                            "description": "The purpose of the file.",
                        },
                    },
                }
            }
        },
    }
}


@router.post(
    "/v1/files",
    summary="Upload a file, in OpenAI's protocol",
    openapi_extra=_FORM,
    responses=problems(400, 413, 415, 422, 503),
)
async def create_file(request: Request, corpus: CorpusDep, settings: SettingsDep, principal: PrincipalDep) -> FileBody:
    """Store a file. It is searched once it is added to a vector store, as a document with the same id."""
    fields, filename, received = await received_form(request, corpus.files.spool, limit=settings.max_upload_mb << 20)
    try:
        for name in fields:
            if name != "purpose":
                raise UnsupportedParameter(f"The parameter '{name[:40]}' is not supported.", param=name[:40])
        purpose = fields.get("purpose")
        if purpose is None:
            raise InvalidRequest("The field 'purpose' is missing.", param="purpose")
        if purpose not in _PURPOSES:
            raise UnsupportedParameter("Files are for 'assistants' or 'user_data' here.", param="purpose")
    except BaseException:
        corpus.files.spool.discard(received)
        raise
    file = await anyio.to_thread.run_sync(
        lambda: corpus.openai_files.upload(received, filename=filename, purpose=str(purpose), principal=principal)
    )
    return FileBody.of(file)


@router.get("/v1/files", summary="List files", responses=problems(422))
def list_files(
    corpus: CorpusDep,
    principal: PrincipalDep,
    purpose: Annotated[str | None, Query(max_length=100, description="Only files with this purpose.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Maximum number of items on a page.")] = 1000,
    order: Annotated[Literal["asc", "desc"], Query(description="`desc`: newest first; `asc`: oldest first.")] = "desc",
    after: Annotated[str | None, Query(max_length=100, description="`last_id` of the previous page.")] = None,
) -> ListBody[FileBody]:
    """Every document that this key can access, and files in no vector store."""
    place = PageRequest(limit=limit, order=order, after=after)
    listed = corpus.openai_files.rows.files(principal, place, purpose=purpose, of_documents=PURPOSE)
    return ListBody[FileBody].of(listed, FileBody.of)


@router.get("/v1/files/{file_id}", summary="Read a file", responses=problems(404))
def read_file_object(file_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> FileBody:
    """A file, also by the `file_id` of a citation."""
    return FileBody.of(corpus.openai_files.find(file_id, principal=principal))


@router.delete("/v1/files/{file_id}", summary="Delete a file", responses=problems(404))
def delete_file(
    file_id: Id, corpus: CorpusDep, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> FileDeleted:
    """Delete the file, also from its vector store; no search finds it once this returns."""
    corpus.openai_files.delete(
        file_id,
        principal=principal,
        record=access.audit.recording(principal, "file.deleted", request_id=request_id),
        record_document=access.audit.recording(principal, "document.deleted", request_id=request_id),
    )
    return FileDeleted(id=file_id)


@router.get(
    "/v1/files/{file_id}/content",
    summary="Download a file",
    response_class=FileResponse,
    responses={200: {"description": "The bytes as uploaded."}, **problems(404)},
)
def read_file_content(file_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> FileResponse:
    """The original file, as an attachment."""
    file = corpus.openai_files.find(file_id, principal=principal)
    response = original_response(
        corpus.files.store,
        corpus.openai_files.original_of(file),
        filename=file.filename,
        media_type=None if isinstance(file, UnattachedFile) else file.media_type or "application/octet-stream",
    )
    if response is None:
        raise NotFound("There is no such file.")
    return response
