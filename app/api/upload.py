"""Reading an upload: a multipart file streamed to disk, or JSON text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile

from app.api.schemas.documents import TextDocument
from app.errors import InvalidRequest
from app.files import FileStore, Received, read_blocks
from app.identifiers import new_id

_FIELDS = ("collection_id", "external_id", "metadata", "on_duplicate", "wait")
_FIELD_BYTES = 1 << 20

MULTIPART: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "The document."},
                        "collection_id": {"type": "string", "description": "Where it goes."},
                        "external_id": {"type": "string", "description": "Your own id, unique in the collection."},
                        "metadata": {
                            "type": "string",
                            "description": "A JSON object with your own fields.",
                            "example": '{"year": 2025}',
                        },
                        "on_duplicate": {
                            "type": "string",
                            "enum": ["skip", "replace", "version", "error"],
                            "description": "What to do when the collection already holds these bytes.",
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
            "application/json": {"schema": TextDocument.model_json_schema()},
        },
    }
}


@dataclass(frozen=True, slots=True)
class Upload:
    """Bytes on disk and the fields that came with them."""

    received: Received
    fields: TextDocument

    @property
    def filename(self) -> str:
        """The name the client gave."""
        return self.fields.filename


async def read_upload(request: Request, files: FileStore, *, limit: int) -> Upload:
    """Store the upload under a temporary name.

    Raises:
        TooLarge: More bytes than `limit`.
        StorageFull: No room.
        InvalidRequest: There is no file, or `metadata` is not a JSON object.
        RequestValidationError: A field is wrong.
    """
    name = new_id("in")
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        async with request.form(max_files=1, max_fields=16, max_part_size=_FIELD_BYTES) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise InvalidRequest("Send the document as the multipart field 'file'.", param="file")
            raw = {key: value for key, value in form.items() if key != "file"}
            fields = _fields(raw, request.query_params, filename=file.filename or "untitled", text="-")
            blocks = read_blocks(file.file)
            received = await anyio.to_thread.run_sync(lambda: files.receive(blocks, name=name, limit=limit))
            return Upload(received, fields)
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise InvalidRequest("Send multipart/form-data with a 'file', or a JSON object with 'text'.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object with 'text' and 'filename'.")
    fields = _validated(body)
    data = fields.text.encode("utf-8", errors="replace")
    received = await anyio.to_thread.run_sync(lambda: files.receive([data], name=name, limit=limit))
    return Upload(received, fields)


def _fields(raw: Mapping[str, object], query: Mapping[str, str], *, filename: str, text: str) -> TextDocument:
    """Form fields, or query parameters of the same names, as the JSON body would have them."""
    values: dict[str, object] = {key: query[key] for key in _FIELDS if key in query}
    values.update(raw)
    if "metadata" in values:
        try:
            values["metadata"] = json.loads(str(values["metadata"]))
        except (ValueError, RecursionError):
            raise InvalidRequest("'metadata' must be a JSON object.", param="metadata") from None
    return _validated({**values, "filename": filename[:1024], "text": text})


def _validated(values: Mapping[str, object]) -> TextDocument:
    try:
        return TypeAdapter(TextDocument).validate_python(values)
    except ValidationError as error:
        raise RequestValidationError(
            [{**item, "loc": ("body", *item["loc"])} for item in error.errors(include_url=False)]
        ) from None
