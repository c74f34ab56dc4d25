"""Bodies of files in OpenAI's protocol."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import NamedBody, ResponseBody
from app.db.openai_files import FileState, UnattachedFile
from app.documents.openai_files import PURPOSE
from app.types import Document

_STATUS: dict[FileState, Literal["uploaded", "processed", "error"]] = {
    FileState.IN_PROGRESS: "uploaded",
    FileState.COMPLETED: "processed",
    FileState.CANCELLED: "error",
    FileState.FAILED: "error",
}


class FileBody(NamedBody):
    """A file: a document, or an upload that is in no vector store."""

    id: str = Field(description="The file's id; in a vector store the document's.", examples=["doc_01k9"])
    object: Literal["file"] = Field(default="file", description="Always `file`.")
    bytes: int = Field(description="Size of the original.", examples=[81234])
    created_at: int = Field(description="Unix seconds.")
    filename: str = Field(description="The name it was uploaded under.", examples=["report.pdf"])
    purpose: str = Field(description="The purpose of the upload; `assistants` for documents.", examples=["assistants"])
    status: Literal["uploaded", "processed", "error"] = Field(
        description="`uploaded` while a vector store ingests it, `error` when that failed, else `processed`."
    )
    status_details: str | None = Field(default=None, description="Why it failed.")
    expires_at: int | None = Field(default=None, description="Always null: files do not expire.")

    @classmethod
    def of(cls, file: Document | UnattachedFile) -> "FileBody":
        """The body for a file."""
        if isinstance(file, UnattachedFile):
            status: Literal["uploaded", "processed", "error"] = "processed"
            purpose, details = file.purpose, None
        else:
            status, purpose, details = _STATUS[FileState.of(file)], PURPOSE, file.error_detail
        return cls(
            id=file.id,
            bytes=file.bytes,
            created_at=int(file.created_at),
            filename=file.filename,
            purpose=purpose,
            status=status,
            status_details=details,
        )


class FileDeleted(ResponseBody):
    """A deleted file."""

    id: str = Field(description="The file's id.")
    object: Literal["file"] = Field(default="file", description="Always `file`.")
    deleted: Literal[True] = Field(default=True, description="Always true.")
