"""Reads uploads: a multipart file streamed to disk, a text in JSON, or a web page fetched by its address."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import SecretStr, TypeAdapter, ValidationError
from starlette.datastructures import UploadFile

from app.api.gate.idempotency import take
from app.api.schemas.bounds import MOST_ID, MOST_METADATA
from app.api.schemas.uploads import PROTECTED, FileFields, TextDocument, UploadFields, WebDocument
from app.documents.spool import Spool, Spooled, read_blocks
from app.errors import InvalidRequest, UrlNotAllowed
from app.ids import new_id
from app.outbound.web_pages import WebPages
from app.server.state import DocumentsState
from app.settings import Settings
from app.types import Principal

_FIELDS = ("collection_id", "external_id", "metadata", "on_duplicate", "wait")
_FIELD_BYTES = 256 << 10  # metadata of 64,000 characters fits in any encoding
_FILENAME_CHARS = 1024
_Body = TypeVar("_Body", bound=UploadFields)

MULTIPART: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "additionalProperties": False,
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "The document, or a zip archive of documents.",
                        },
                        "collection_id": {
                            "type": "string",
                            "maxLength": MOST_ID,
                            "description": "The collection to put it into.",
                        },
                        "external_id": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": 512,
                            "description": "Your own id, unique in the collection; for the files of an archive the "
                            "prefix to their path.",
                        },
                        "metadata": {
                            "type": "string",
                            "maxLength": MOST_METADATA,
                            "description": "A JSON object with your own fields; every file of an archive gets them.",
                            "example": '{"year": 2025}',
                        },
                        "on_duplicate": {
                            "type": "string",
                            "enum": ["skip", "replace", "version", "error"],
                            "description": "What to do when the collection already holds these bytes.",
                        },
                        "password": {
                            "type": "string",
                            "format": "password",
                            "maxLength": 1024,
                            "description": PROTECTED,
                        },
                        "wait": {
                            "type": "number",
                            "minimum": 0,
                            "maximum": 30,
                            "description": "Seconds to wait for indexing before answering.",
                        },
                    },
                }
            },
            "application/json": {
                "schema": {"anyOf": [TextDocument.model_json_schema(), WebDocument.model_json_schema()]}
            },
        },
    }
}


@dataclass(frozen=True, slots=True)
class ReceivedUpload:
    """Received bytes on disk, and the fields sent with them. `is_file`: the bytes are a file, not a text in JSON."""

    received: Spooled
    filename: str
    fields: UploadFields
    password: SecretStr | None = None
    is_file: bool = True


async def read_upload(
    request: Request, corpus: DocumentsState, settings: Settings, principal: Principal
) -> ReceivedUpload:
    """Store the upload under a temporary name.

    Raises:
        TooLarge: The upload is larger than `max_upload_mb`.
        StorageFull: The disk is full.
        InvalidRequest: There is no file, or `metadata` is not a JSON object.
        UrlNotAllowed, UrlNotFetched: The page may not or could not be fetched.
        ServerFull: Too many pages are being fetched.
        RequestValidationError: A field is invalid.
        Replay: The request has an idempotency key and ran before; do not catch it.
    """
    limit = settings.max_upload_mb << 20
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await _read_form(request, corpus.files.spool, limit=limit)
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise InvalidRequest("Send multipart/form-data with a 'file', or a JSON object with 'text'.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object with 'text' and 'filename', or with 'url'.")
    if "url" in body:
        return await fetched_page(_validated(WebDocument, body), corpus, settings, principal)
    return await received_text(_validated(TextDocument, body), corpus, settings)


async def fetched_page(
    page: WebDocument, corpus: DocumentsState, settings: Settings, principal: Principal
) -> ReceivedUpload:
    """A web page under a temporary name.

    Raises:
        TooLarge, StorageFull, UrlNotAllowed, UrlNotFetched, ServerFull: As in `read_upload`.
    """
    limit = settings.max_upload_mb << 20
    return await corpus.page_threads.run(
        lambda: _fetch(page, corpus.web_pages, corpus.files.spool, limit=limit), party=principal.tenant_id
    )


async def received_text(document: TextDocument, corpus: DocumentsState, settings: Settings) -> ReceivedUpload:
    """A text under a temporary name.

    Raises:
        TooLarge, StorageFull: As in `read_upload`.
    """
    limit = settings.max_upload_mb << 20
    data = document.text.encode("utf-8", errors="replace")
    received = await anyio.to_thread.run_sync(
        lambda: corpus.files.spool.receive([data], name=new_id("in"), limit=limit)
    )
    return ReceivedUpload(received, document.filename, document, is_file=False)


async def _read_form(request: Request, spool: Spool, *, limit: int) -> ReceivedUpload:
    raw, filename, received = await received_form(request, spool, limit=limit)
    try:
        fields = _form_fields(raw, request.query_params)
    except BaseException:
        spool.discard(received)
        raise
    return ReceivedUpload(received, filename, fields, fields.password)


async def received_form(request: Request, spool: Spool, *, limit: int) -> tuple[Mapping[str, object], str, Spooled]:
    """The fields of a multipart form without `file`, the file's name, and its bytes under a temporary name.

    Raises:
        TooLarge, StorageFull, InvalidRequest, Replay: As in `read_upload`.
    """
    async with request.form(max_files=1, max_fields=16, max_part_size=_FIELD_BYTES) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise InvalidRequest("Send the document as the multipart field 'file'.", param="file")
        raw = {key: value for key, value in form.items() if key != "file"}
        filename = (file.filename or "untitled")[:_FILENAME_CHARS]
        blocks = read_blocks(file.file)
        received = await anyio.to_thread.run_sync(lambda: spool.receive(blocks, name=new_id("in"), limit=limit))
    try:
        said = json.dumps([filename, sorted((key, str(value)) for key, value in raw.items())])
        await take(request, said.encode(), received.sha256.encode())
    except BaseException:
        spool.discard(received)
        raise
    return raw, filename, received


def _fetch(page: WebDocument, web_pages: WebPages | None, spool: Spool, *, limit: int) -> ReceivedUpload:
    if web_pages is None:
        raise UrlNotAllowed("This server does not fetch web pages; its operator can turn that on.", param="url")
    with web_pages.open(page.url) as found:
        received = spool.receive(found.blocks, name=new_id("in"), limit=limit)
        filename = page.filename or found.filename[:_FILENAME_CHARS]
    fields = page.model_copy(update={"metadata": {"url": page.url, **page.metadata}})
    return ReceivedUpload(received, filename, fields, page.password)


def _form_fields(raw: Mapping[str, object], query: Mapping[str, str]) -> FileFields:
    """Form fields and query parameters of the same names, validated like a JSON body."""
    values: dict[str, object] = {key: query[key] for key in _FIELDS if key in query}
    values.update(raw)
    if "metadata" in values:
        if len(str(values["metadata"])) > MOST_METADATA:
            raise InvalidRequest(f"'metadata' must have at most {MOST_METADATA:,} characters.", param="metadata")
        try:
            values["metadata"] = json.loads(str(values["metadata"]))
        except (ValueError, RecursionError):
            raise InvalidRequest("'metadata' must be a JSON object.", param="metadata") from None
    return _validated(FileFields, values)


def _validated(kind: type[_Body], values: Mapping[str, object]) -> _Body:
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        raise RequestValidationError(
            [{**item, "loc": ("body", *item["loc"])} for item in error.errors(include_url=False, include_input=False)]
        ) from None
