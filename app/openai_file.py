"""The nouns of OpenAI's files: an upload that is no document yet, a store's size, a batch."""

from dataclasses import dataclass, replace
from enum import StrEnum

from app.types import Document, DocumentStatus

WORKING = (DocumentStatus.QUEUED, DocumentStatus.EXTRACTING, DocumentStatus.CHUNKING, DocumentStatus.EMBEDDING)
"""What a document's status is while its newest version is being ingested."""

_CANCELLED = "cancelled"  # the code of an ingestion that was taken back


class FileState(StrEnum):
    """A vector store file's status."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @classmethod
    def of(cls, document: Document) -> "FileState":
        """The state of a document's newest version."""
        if document.status in WORKING:
            return cls.IN_PROGRESS
        if document.status is DocumentStatus.INDEXED:
            return cls.COMPLETED
        return cls.CANCELLED if document.error_code == _CANCELLED else cls.FAILED


@dataclass(frozen=True, slots=True)
class UnattachedFile:
    """An upload that is in no collection: neither searched nor billed. `created_at` is Unix seconds."""

    id: str
    tenant_id: str
    key_id: str
    filename: str
    bytes: int
    sha256: str
    purpose: str
    created_at: float


@dataclass(frozen=True, slots=True)
class StoreSize:
    """How many files are in each state, the bytes of their originals, and when one changed last (Unix seconds)."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    other: int = 0
    bytes: int = 0
    updated_at: float | None = None

    @property
    def total(self) -> int:
        """All files."""
        return self.in_progress + self.completed + self.failed + self.cancelled + self.other

    def with_files(self, state: str, files: int, *, size: int, updated_at: float) -> "StoreSize":
        """And so many more in a state that none are in yet."""
        latest = updated_at if self.updated_at is None else max(updated_at, self.updated_at)
        return replace(self, **{state or "other": files}, bytes=self.bytes + size, updated_at=latest)


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Files that were attached together. Times are Unix seconds."""

    id: str
    collection_id: str
    created_at: float
    cancelled_at: float | None
    file_ids: tuple[str, ...]

    def state(self, size: StoreSize) -> FileState:
        """Its status, `size` being that of its files."""
        if self.cancelled_at is not None:
            return FileState.CANCELLED
        if size.in_progress:
            return FileState.IN_PROGRESS
        return FileState.FAILED if size.total and size.failed == size.total else FileState.COMPLETED
