"""Bodies of documents, jobs and collections."""

from typing import Literal, Self

from pydantic import Field, SecretStr

from app.api.schemas.shape import Metadata, RequestBody, ResponseBody, rfc3339
from app.archives import Skipped
from app.types import Collection, Deleted, Document, DocumentStatus, DocumentVersion, Job

OnDuplicate = Literal["skip", "replace", "version", "error"]
ON_DUPLICATE = (
    "What to do when the collection already holds these bytes, or this `external_id`. `skip` returns what is there; "
    "`version` makes a new version and keeps the old text readable; `replace` makes a new version and removes the "
    "old ones; `error` answers 409. Default: `skip` for identical bytes, `version` for new bytes under a known "
    "`external_id`."
)


PROTECTED = (
    "Opens a protected file. It is held in memory until the document is indexed or failed, and written nowhere; after "
    "a restart in between the document fails as `encrypted`, and the password is sent again with a retry."
)


class UploadFields(RequestBody):
    """What goes with every upload."""

    collection_id: str | None = Field(default=None, description="Where it goes; default: the `default` collection.")
    external_id: str | None = Field(
        default=None, min_length=1, max_length=512, description="Your own id, unique in the collection."
    )
    metadata: Metadata = Field(default_factory=dict, description="Your own fields, usable in filters.")
    on_duplicate: OnDuplicate | None = Field(default=None, description=ON_DUPLICATE)
    wait: float = Field(default=0, ge=0, le=30, description="Seconds to wait for indexing before answering.")


class TextDocument(UploadFields):
    """A document given as text instead of a file."""

    text: str = Field(min_length=1, description="The document's text.", examples=["Revenue rose 12 % in 2025."])
    filename: str = Field(
        min_length=1, max_length=1024, description="Its name; `.md` makes it Markdown.", examples=["notes.md"]
    )


class WebDocument(UploadFields):
    """A document fetched from the web; only where `FOOTNOTE_WEB_PAGES` is on."""

    url: str = Field(
        min_length=1,
        max_length=2048,
        description="`http` or `https`, port 80 or 443, on the public internet. It becomes the metadata field `url` "
        "where that is not given.",
        examples=["https://example.com/report.html"],
    )
    filename: str | None = Field(
        default=None, min_length=1, max_length=1024, description="Its name; default: the last part of the address."
    )
    password: SecretStr | None = Field(default=None, max_length=1024, description=PROTECTED)


class FileFields(UploadFields):
    """The fields beside a multipart `file`."""

    password: SecretStr | None = Field(default=None, max_length=1024, description=PROTECTED)


class RetryRequest(RequestBody):
    """How to try again."""

    password: SecretStr | None = Field(default=None, max_length=1024, description=PROTECTED)


class MetadataPatch(RequestBody):
    """New metadata."""

    metadata: Metadata = Field(description="Replaces the document's metadata.", examples=[{"year": 2025}])


class DeleteByFilter(RequestBody):
    """Which documents to delete."""

    filter: dict[str, object] = Field(
        min_length=1, description="A metadata filter, as in search.", examples=[{"year": {"$lt": 2020}}]
    )
    collection_id: str | None = Field(default=None, description="Only in this collection.")


class Progress(ResponseBody):
    """How far the current stage is."""

    stage: str = Field(description="The stage, as in `status`.", examples=["embedding"])
    done: int = Field(description="Finished units: chunks while embedding.", examples=[120])
    total: int = Field(description="Units in all; 0 while unknown.", examples=[400])


class Counts(ResponseBody):
    """Size of the live version."""

    pages: int = Field(description="Pages, slides or sheets; 0 where the format has none.", examples=[31])
    chunks: int = Field(description="Chunks that can be found and cited.", examples=[400])
    tokens: int = Field(description="Embedder tokens of all chunks.", examples=[98211])


class Embedding(ResponseBody):
    """What the live version's vectors were made with."""

    model: str = Field(description="The embedding model.", examples=["all-MiniLM-L6-v2"])
    dim: int = Field(description="Dimensions.", examples=[384])
    generation: int = Field(description="The index generation.", examples=[1])


class DocumentError(ResponseBody):
    """Why a document failed."""

    code: str = Field(description="Stable code.", examples=["no-text"])
    detail: str = Field(description="The reason in a sentence.", examples=["The PDF holds no text."])


class DocumentUsage(ResponseBody):
    """What ingesting it cost."""

    embedding_tokens: int = Field(description="Tokens the embedder read.", examples=[98211])


class DocumentBody(ResponseBody):
    """A document."""

    id: str = Field(description="The document's id.", examples=["doc_01k9"])
    object: Literal["document"] = Field(default="document", description="Always `document`.")
    status: DocumentStatus = Field(description="Where its newest version stands.")
    filename: str = Field(description="The name it was uploaded under.", examples=["report.pdf"])
    media_type: str | None = Field(description="What its bytes are; null before extraction.")
    bytes: int = Field(description="Size of the original.", examples=[81234])
    sha256: str = Field(description="SHA-256 of the original, hexadecimal.")
    version: int = Field(description="The newest version.", examples=[1])
    live_version: int | None = Field(description="The version search returns; null before the first is indexed.")
    collection_id: str = Field(description="Where it lies.", examples=["col_01k9"])
    external_id: str | None = Field(description="Your own id.")
    duplicate_of: str | None = Field(
        default=None, description="Set when an upload was recognised: the id of the document that was there already."
    )
    metadata: Metadata = Field(description="Your own fields.")
    job_id: str = Field(description="The newest ingestion job.", examples=["job_01k9"])
    progress: Progress | None = Field(description="Set while a job works on it.")
    counts: Counts = Field(description="Size of the live version.")
    embedding: Embedding | None = Field(description="Null before the first version is indexed.")
    attempts: int = Field(description="How often the newest version was tried.", examples=[1])
    error: DocumentError | None = Field(description="Why the newest version failed, or waits to be tried again.")
    next_attempt_at: str | None = Field(
        description="When its ingestion is tried again, RFC 3339 UTC; null unless it was tried and waits."
    )
    usage: DocumentUsage = Field(description="What ingesting it cost.")
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    updated_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:03.000Z"])

    @classmethod
    def of(cls, document: Document, *, duplicate: bool = False, **more: str) -> Self:
        """The body for a document; `more` are the fields that a body made from this one adds."""
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
    """A document that came in an archive."""

    archive_path: str = Field(description="Its path in the archive.", examples=["2025/report.pdf"])


class SkippedBody(ResponseBody):
    """A file in an archive that became no document."""

    name: str = Field(description="Its path in the archive.", examples=["logo.png"])
    code: str = Field(description="Stable code.", examples=["unsupported-format"])
    detail: str = Field(description="The reason in a sentence.", examples=["This looks like an image."])

    @classmethod
    def of(cls, skipped: Skipped) -> "SkippedBody":
        """The body for a file left out."""
        return cls(name=skipped.name, code=skipped.code, detail=skipped.detail)


class ArchiveBody(ResponseBody):
    """What became of a zip archive: each file in it a document of its own."""

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
    media_type: str | None = Field(description="What its bytes are; null before extraction.")
    title: str | None = Field(description="The title it gives itself.")
    counts: Counts = Field(description="Its size; 0 before it is indexed.")
    usage: DocumentUsage = Field(description="What ingesting it cost.")
    created_at: str = Field(description="RFC 3339 UTC.", examples=["2026-11-21T10:00:00.000Z"])
    indexed_at: str | None = Field(description="RFC 3339 UTC; null where it is not indexed yet, or failed.")

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
    """What a deletion removed; it is final when you read this."""

    deleted: Literal[True] = Field(default=True, description="Always true.")
    documents: int = Field(description="Documents removed.", examples=[1])
    chunks_removed: int = Field(description="Chunks removed from search.", examples=[400])
    vectors_removed: int = Field(description="Vectors removed from the index.", examples=[400])

    @classmethod
    def of(cls, deleted: Deleted, *, documents: int) -> "DeletedBody":
        """The body for a deletion."""
        return cls(documents=documents, chunks_removed=deleted.chunks, vectors_removed=deleted.vectors)


class ContentBody(ResponseBody):
    """A slice of a document's canonical text."""

    document_id: str = Field(description="The document.")
    version: int = Field(description="The version the text belongs to.")
    start: int = Field(description="First character, inclusive.", examples=[0])
    end: int = Field(description="Last character, exclusive.", examples=[120])
    total: int = Field(description="Characters of the whole text.", examples=[20123])
    text: str = Field(description="The text; offsets count Unicode code points.")


class PageBody(ResponseBody):
    """One page's text and where it lies in the canonical text."""

    document_id: str = Field(description="The document.")
    version: int = Field(description="The version.")
    number: int = Field(description="The page, slide or sheet, from 1.", examples=[4])
    start_char: int = Field(description="First character of the page.")
    end_char: int = Field(description="One past its last character.")
    text: str = Field(description="Its text.")


class ChunkBody(ResponseBody):
    """A chunk of a document."""

    id: str = Field(description="The chunk's id.", examples=["chk_12"])
    ordinal: int = Field(description="Its place in the document, from 0.", examples=[0])
    version: int = Field(description="The version it belongs to.")
    start_char: int = Field(description="First character in the canonical text.")
    end_char: int = Field(description="One past its last character.")
    page_start: int | None = Field(description="First page it touches.")
    page_end: int | None = Field(description="Last page it touches.")
    heading_path: list[str] = Field(description="The headings above it, outermost first.")
    token_count: int = Field(description="Embedder tokens, heading path included.")
    text: str = Field(description="Exactly `content[start_char:end_char]`.")


class JobBody(ResponseBody):
    """An ingestion job."""

    id: str = Field(description="The job's id.", examples=["job_01k9"])
    object: Literal["job"] = Field(default="job", description="Always `job`.")
    kind: Literal["ingest"] = Field(default="ingest", description="What the job does.")
    status: str = Field(description="queued, running, done, failed or cancelled.", examples=["done"])
    document_id: str = Field(description="The document it works on.")
    version: int = Field(description="The version it makes.")
    attempts: int = Field(description="How often it was started.", examples=[1])
    error: DocumentError | None = Field(description="Why it failed, or was not finished at the last attempt.")
    next_attempt_at: str | None = Field(
        description="When it is tried again, RFC 3339 UTC; null unless it was tried and waits."
    )
    created_at: str = Field(description="RFC 3339 UTC.")
    started_at: str | None = Field(description="RFC 3339 UTC.")
    finished_at: str | None = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, job: Job) -> "JobBody":
        """The body for a job."""
        return cls(
            id=job.id,
            status=job.status,
            document_id=job.document_id,
            version=job.version,
            attempts=job.attempts,
            error=DocumentError(code=job.error_code, detail=job.error_detail or "") if job.error_code else None,
            next_attempt_at=rfc3339(job.next_attempt_at) if job.next_attempt_at is not None else None,
            created_at=rfc3339(job.created_at),
            started_at=rfc3339(job.started_at) if job.started_at is not None else None,
            finished_at=rfc3339(job.finished_at) if job.finished_at is not None else None,
        )


class NewCollection(RequestBody):
    """A collection to make."""

    name: str = Field(min_length=1, max_length=200, description="Unique per tenant.", examples=["contracts"])
    metadata: Metadata = Field(default_factory=dict, description="Your own fields.")


class CollectionPatch(RequestBody):
    """What to change; fields left out stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    metadata: Metadata | None = Field(default=None, description="Replaces the metadata.")


class CollectionBody(ResponseBody):
    """A collection."""

    id: str = Field(description="The collection's id.", examples=["col_01k9"])
    object: Literal["collection"] = Field(default="collection", description="Always `collection`.")
    name: str = Field(description="Its name.", examples=["default"])
    metadata: Metadata = Field(description="Your own fields.")
    documents: int = Field(description="Documents in it.", examples=[3])
    created_at: str = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, collection: Collection) -> "CollectionBody":
        """The body for a collection."""
        return cls(
            id=collection.id,
            name=collection.name,
            metadata=dict(collection.metadata),
            documents=collection.documents,
            created_at=rfc3339(collection.created_at),
        )
