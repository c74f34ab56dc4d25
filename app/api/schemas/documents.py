"""Bodies of documents."""

from typing import Literal, Self

from pydantic import Field, SecretStr

from app.api.schemas.bounds import Described, Id
from app.api.schemas.shape import Metadata, NewMetadata, RequestBody, ResponseBody, rfc3339
from app.api.schemas.uploads import PROTECTED
from app.documents.archives import Skipped
from app.types import Deleted, Document, DocumentStatus, DocumentVersion


class RetryRequest(RequestBody):
    """Options for a retry."""

    password: SecretStr | None = Field(default=None, max_length=1024, description=PROTECTED)


class MetadataPatch(RequestBody):
    """Metadata to set."""

    metadata: NewMetadata = Field(description="Replaces the document's metadata.", examples=[{"year": 2025}])


class DeleteByFilter(RequestBody):
    """The documents to delete."""

    filter: Described = Field(
        min_length=1, description="A metadata filter, as in search.", examples=[{"year": {"$lt": 2020}}]
    )
    collection_id: Id | None = Field(default=None, description="Only in this collection.")


class Progress(ResponseBody):
    """Progress of the current ingestion stage."""

    stage: str = Field(description="The stage, as in `status`.", examples=["embedding"])
    done: int = Field(description="Finished units, such as chunks while embedding.", examples=[120])
    total: int = Field(description="Total units; 0 while unknown.", examples=[400])


class Counts(ResponseBody):
    """Size of the live version."""

    pages: int = Field(description="Pages, slides or sheets; 0 where the format has none.", examples=[31])
    chunks: int = Field(description="Chunks that can be found and cited.", examples=[400])
    tokens: int = Field(description="Embedder tokens of all chunks.", examples=[98211])


class Embedding(ResponseBody):
    """The embedding model of the live version's vectors."""

    model: str = Field(description="The embedding model.", examples=["all-MiniLM-L6-v2"])
    dim: int = Field(description="Number of dimensions.", examples=[384])
    generation: int = Field(description="The index generation.", examples=[1])


class DocumentError(ResponseBody):
    """Why a document failed."""

    code: str = Field(description="Stable code.", examples=["no-text"])
    detail: str = Field(description="The reason in a sentence.", examples=["The PDF holds no text."])


class DocumentUsage(ResponseBody):
    """Token usage of the ingestion."""

    embedding_tokens: int = Field(description="Tokens that the embedder read.", examples=[98211])


class DocumentBody(ResponseBody):
    """A document."""

    id: str = Field(description="The document's id.", examples=["doc_01k9"])
    object: Literal["document"] = Field(default="document", description="Always `document`.")
    status: DocumentStatus = Field(description="Ingestion status of the newest version.")
    filename: str = Field(description="The name it was uploaded under.", examples=["report.pdf"])
    media_type: str | None = Field(description="Media type, detected from the bytes; null before extraction.")
    bytes: int = Field(description="Size of the original.", examples=[81234])
    sha256: str = Field(description="SHA-256 of the original, hexadecimal.")
    version: int = Field(description="The newest version.", examples=[1])
    live_version: int | None = Field(description="The version that is searched; null until the first is indexed.")
    collection_id: str = Field(description="The collection it belongs to.", examples=["col_01k9"])
    external_id: str | None = Field(description="Your own id.")
    duplicate_of: str | None = Field(
        default=None, description="Set when the upload was a duplicate: the id of the existing document."
    )
    metadata: Metadata = Field(description="Your own fields.")
    job_id: str = Field(description="The newest ingestion job.", examples=["job_01k9"])
    progress: Progress | None = Field(description="Progress of a running job; null without one.")
    counts: Counts = Field(description="Size of the live version.")
    embedding: Embedding | None = Field(description="Null before the first version is indexed.")
    attempts: int = Field(description="Number of ingestion attempts of the newest version.", examples=[1])
    error: DocumentError | None = Field(description="Why the newest version failed, or why its last attempt did.")
    next_attempt_at: str | None = Field(
        description="Time of the next ingestion attempt, RFC 3339 UTC; null unless it waits for a retry."
    )
    usage: DocumentUsage = Field(description="Token usage of the ingestion.")
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, document: Document, *, duplicate: bool = False, **more: str) -> Self:
        """The body for a document; `more`: the additional fields of a derived body."""
        working = document.status in {
            DocumentStatus.QUEUED,
            DocumentStatus.EXTRACTING,
            DocumentStatus.CHUNKING,
            DocumentStatus.EMBEDDING,
        }
        embedding = None
        if document.embedding_model and document.embedding_dim and document.embedding_generation is not None:
            embedding = Embedding(
                model=document.embedding_model, dim=document.embedding_dim, generation=document.embedding_generation
            )
        return cls(
            id=document.id,
            status=document.status,
            filename=document.filename,
            media_type=document.media_type,
            bytes=document.bytes,
            sha256=document.sha256,
            version=document.version,
            live_version=document.live_version,
            collection_id=document.collection_id,
            external_id=document.external_id,
            duplicate_of=document.id if duplicate else None,
            metadata=dict(document.metadata),
            job_id=document.job_id,
            progress=Progress(stage=document.status, done=document.done, total=document.total) if working else None,
            counts=Counts(pages=document.pages, chunks=document.chunks, tokens=document.tokens),
            embedding=embedding,
            attempts=document.attempts,
            error=DocumentError(code=document.error_code, detail=document.error_detail or "")
            if document.error_code
            else None,
            next_attempt_at=rfc3339(document.next_attempt_at) if document.next_attempt_at is not None else None,
            usage=DocumentUsage(embedding_tokens=document.embedding_tokens),
            created_at=rfc3339(document.created_at),
            updated_at=rfc3339(document.updated_at),
            **more,
        )


class MemberBody(DocumentBody):
    """A document from an archive."""

    archive_path: str = Field(description="Its path in the archive.", examples=["2025/report.pdf"])


class SkippedBody(ResponseBody):
    """A file of an archive that was skipped."""

    name: str = Field(description="Its path in the archive.", examples=["logo.png"])
    code: str = Field(description="Stable code.", examples=["unsupported-format"])
    detail: str = Field(description="The reason in a sentence.", examples=["This looks like an image."])

    @classmethod
    def of(cls, skipped: Skipped) -> "SkippedBody":
        """The body for a skipped file."""
        return cls(name=skipped.name, code=skipped.code, detail=skipped.detail)


class ArchiveBody(ResponseBody):
    """The documents that a zip archive was unpacked into, one per file, and the skipped files."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[MemberBody] = Field(description="The documents, in the archive's order.")
    skipped: list[SkippedBody] = Field(description="Files that became no document, and why.")


class VersionBody(ResponseBody):
    """A version of a document that can still be read, or is on its way."""

    version: int = Field(description="Its number, from 1.", examples=[1])
    live: bool = Field(description="Whether it is the one search returns.")
    filename: str = Field(description="The name it was uploaded under.", examples=["report.pdf"])
    bytes: int = Field(description="Size of the original.", examples=[81234])
    sha256: str = Field(description="SHA-256 of the original, hexadecimal.")
    media_type: str | None = Field(description="Media type, detected from the bytes; null before extraction.")
    title: str | None = Field(description="Its title, as it declares or shows it, else the words of its name.")
    counts: Counts = Field(description="Its size; 0 until it is indexed.")
    usage: DocumentUsage = Field(description="Token usage of the ingestion.")
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    indexed_at: str | None = Field(description="RFC 3339 UTC; null until it is indexed, and when it failed.")

    @classmethod
    def of(cls, version: DocumentVersion, *, live: bool) -> "VersionBody":
        """The body for a version."""
        return cls(
            version=version.version,
            live=live,
            filename=version.filename,
            bytes=version.bytes,
            sha256=version.sha256,
            media_type=version.media_type,
            title=version.title,
            counts=Counts(pages=version.pages, chunks=version.chunks, tokens=version.tokens),
            usage=DocumentUsage(embedding_tokens=version.embedding_tokens),
            created_at=rfc3339(version.created_at),
            indexed_at=rfc3339(version.indexed_at) if version.indexed_at is not None else None,
        )


class DeletedBody(ResponseBody):
    """The result of a deletion, which is complete and final."""

    deleted: Literal[True] = Field(default=True, description="Always true.")
    documents: int = Field(description="Documents removed.", examples=[1])
    chunks_removed: int = Field(description="Chunks removed from search.", examples=[400])
    vectors_removed: int = Field(description="Vectors removed from the index.", examples=[400])

    @classmethod
    def of(cls, deleted: Deleted, *, documents: int) -> "DeletedBody":
        """The body for a deletion."""
        return cls(documents=documents, chunks_removed=deleted.chunks, vectors_removed=deleted.vectors)
