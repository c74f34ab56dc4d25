"""Bodies of files in vector stores, and of file batches, in OpenAI's protocol."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.api.openai.schemas.vector_stores import (
    ATTRIBUTES,
    CHUNKING,
    Attributes,
    AutoChunking,
    FileCounts,
    FileIds,
    TextContent,
    WithChunking,
    attributes_of,
)
from app.api.schemas.shape import NamedBody, RequestBody, ResponseBody
from app.db.openai_files import FileBatch, FileState, StoreSize
from app.types import Document
from retrieval.types import Metadata


class NewStoreFile(WithChunking):
    """A file to add to a vector store."""

    file_id: str = Field(max_length=100, description="The file's id.", examples=["doc_01k9"])
    attributes: Attributes | None = Field(default=None, description=ATTRIBUTES)
    chunking_strategy: AutoChunking | None = Field(default=None, description=CHUNKING)


class StoreFilePatch(RequestBody):
    """Changes to a file's attributes."""

    attributes: Attributes | None = Field(description=f"{ATTRIBUTES} They replace the current ones; null removes them.")


class NewBatch(WithChunking):
    """Files to add to a vector store together: `file_ids`, or `files` with individual attributes."""

    file_ids: FileIds | None = Field(default=None, description="The files' ids.")
    files: Annotated[list[NewStoreFile], Field(max_length=500, fail_fast=True)] | None = Field(
        default=None, description="The files, each with its own attributes."
    )
    attributes: Attributes | None = Field(default=None, description=f"{ATTRIBUTES} For all `file_ids`.")
    chunking_strategy: AutoChunking | None = Field(default=None, description=CHUNKING)

    @model_validator(mode="after")
    def _names_files(self) -> Self:
        if bool(self.file_ids) == bool(self.files):
            raise ValueError("give either file_ids or files")
        return self

    @property
    def wanted(self) -> list[tuple[str, Metadata | None]]:
        """(file id, attributes) of each file."""
        if self.files:
            return [(file.file_id, file.attributes) for file in self.files]
        return [(file_id, self.attributes) for file_id in self.file_ids or ()]


class LastError(ResponseBody):
    """Why a file failed."""

    code: Literal["server_error", "unsupported_file", "invalid_file"] = Field(description="OpenAI's code.")
    message: str = Field(description="The reason in one sentence.")


class OtherChunking(ResponseBody):
    """A chunking strategy that OpenAI's protocol does not name."""

    type: Literal["other"] = Field(default="other", description="Always `other`.")


_ERRORS: dict[str, Literal["server_error", "unsupported_file", "invalid_file"]] = {
    "unsupported-format": "unsupported_file",
    **dict.fromkeys(
        ("empty-document", "no-text", "encrypted", "malformed", "parser-limit", "parser-crashed"), "invalid_file"
    ),
}


class StoreFileBody(NamedBody):
    """A file in a vector store: a document."""

    id: str = Field(description="The file's id, and the document's.", examples=["doc_01k9"])
    object: Literal["vector_store.file"] = Field(default="vector_store.file", description="Always `vector_store.file`.")
    created_at: int = Field(description="When it was added, Unix seconds.")
    vector_store_id: str = Field(description="The vector store.", examples=["col_01k9"])
    status: FileState = Field(description="Status of its ingestion.")
    usage_bytes: int = Field(description="Size of the original in bytes.")
    last_error: LastError | None = Field(description="Why it failed.")
    attributes: dict[str, str | bool | float] = Field(
        description="The document's metadata: strings, numbers and booleans."
    )
    chunking_strategy: OtherChunking = Field(description="The chunking strategy: a setting of the server.")

    @classmethod
    def of(cls, document: Document) -> "StoreFileBody":
        """The body for a document."""
        state = FileState.of(document)
        error = None
        if state is FileState.FAILED:
            code = _ERRORS.get(document.error_code or "", "server_error")
            error = LastError(code=code, message=document.error_detail or "")
        return cls(
            id=document.id,
            created_at=int(document.created_at),
            vector_store_id=document.collection_id,
            status=state,
            usage_bytes=document.bytes,
            last_error=error,
            attributes=attributes_of(document.metadata),
            chunking_strategy=OtherChunking(),
        )


class StoreFileDeleted(ResponseBody):
    """A file that was removed from a vector store. The file itself is kept."""

    id: str = Field(description="Its id.")
    object: Literal["vector_store.file.deleted"] = Field(
        default="vector_store.file.deleted", description="Always `vector_store.file.deleted`."
    )
    deleted: Literal[True] = Field(default=True, description="Always true: no search finds it.")


class BatchBody(ResponseBody):
    """Files that were added to a vector store together."""

    id: str = Field(description="The batch's id.", examples=["vsfb_01k9"])
    object: Literal["vector_store.files_batch"] = Field(
        default="vector_store.files_batch", description="Always `vector_store.files_batch`."
    )
    created_at: int = Field(description="Unix seconds.")
    vector_store_id: str = Field(description="The vector store.", examples=["col_01k9"])
    status: FileState = Field(description="`failed` when no file could be read.")
    file_counts: FileCounts = Field(description="Its files that are still in the vector store, by status.")

    @classmethod
    def of(cls, batch: FileBatch, size: StoreSize) -> "BatchBody":
        """The body for a batch."""
        return cls(
            id=batch.id,
            created_at=int(batch.created_at),
            vector_store_id=batch.collection_id,
            status=batch.state(size),
            file_counts=FileCounts.of(size),
        )


class ContentPage(ResponseBody):
    """The extracted text of a file."""

    object: Literal["vector_store.file_content.page"] = Field(
        default="vector_store.file_content.page", description="Always `vector_store.file_content.page`."
    )
    data: list[TextContent] = Field(description="The whole text as one item.")
    has_more: Literal[False] = Field(default=False, description="Always false.")
    next_page: None = Field(default=None, description="Always null.")
