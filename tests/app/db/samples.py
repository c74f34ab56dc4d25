"""Documents for the repositories' tests, and the shortest way to index one."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.db.collections import CollectionRepository
from app.db.document_rows import ClaimedJob
from app.db.documents import DocumentRepository
from app.db.index_generations import GenerationStatus, IndexGenerationRepository
from app.db.jobs import JobRepository
from app.db.publishing import CommitResult
from app.db.session import Database
from app.documents.ports import new_object_name
from app.ids import new_id
from app.types import Document, NewDocument
from ingestion.types import Block, BlockKind, ChunkDraft, Extraction, MediaType, PageRange
from retrieval.ports import Vectors
from retrieval.types import EmbedderInfo, Metadata

_TABLE_HEADER = "name | age"
EMBEDDER = EmbedderInfo(model="tiny", revision="r1", dim=4, max_tokens=64)


def new_document(
    collection_id: str,
    content: str = "text",
    *,
    tenant_id: str = "t1",
    filename: str = "a.txt",
    external_id: str | None = None,
    metadata: Metadata | None = None,
) -> NewDocument:
    data = content.encode()
    return NewDocument(
        id=new_id("doc"),
        original=new_object_name(),
        tenant_id=tenant_id,
        collection_id=collection_id,
        filename=filename,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        external_id=external_id,
        metadata=metadata or {},
    )


def extraction_of(texts: Sequence[str], *, title: str | None = None) -> tuple[Extraction, list[ChunkDraft]]:
    """An extraction whose passages are `texts`, one a paragraph, all on page 1; rows of cells have a table header."""
    text = "\n\n".join(texts)
    passages, blocks, start = [], [], 0
    for ordinal, passage in enumerate(texts):
        end = start + len(passage)
        blocks.append(Block(BlockKind.PARAGRAPH, start, end, 1, ("Part",)))
        passages.append(
            ChunkDraft(
                ordinal=ordinal,
                start_char=start,
                end_char=end,
                page_start=1,
                page_end=1,
                heading_path=("Part",),
                text=passage,
                embedding_text=f"Part\n{passage}",
                token_count=len(passage.split()) + 1,
                table_header=_TABLE_HEADER if " | " in passage else "",
            )
        )
        start = end + 2
    extraction = Extraction(MediaType.TEXT, title, text, (PageRange(1, 0, len(text)),), tuple(blocks))
    return extraction, passages


def vectors_of(count: int, *, first: float = 1.0) -> Vectors:
    """`(count, 4)` rows that float16 holds exactly."""
    rows = np.zeros((count, EMBEDDER.dim), np.float32)
    rows[:, 0] = first
    rows[:, 1] = np.arange(count)
    return rows


def generation_of(database: Database, embedder: EmbedderInfo) -> int:
    """The id of the active generation, which must be the embedder's; a new one while there are no vectors."""
    generations = IndexGenerationRepository(database)
    active = [
        found for found in generations.list() if found.status is GenerationStatus.ACTIVE and found.is_of(embedder)
    ]
    found = active[0] if active else generations.prepare(embedder, source="").active
    assert found.is_of(embedder), "there are vectors of another embedder"
    return found.id


class Library:
    """The repositories over one database, one tenant's default collection, and uploads in one call."""

    def __init__(self, database: Database, *, tenant_id: str = "t1") -> None:
        self.database = database
        self.tenant_id = tenant_id
        self.documents = DocumentRepository(database)
        self.jobs = JobRepository(database)
        self.collections = CollectionRepository(database)
        self.collection_id = self.collections.default(tenant_id).id
        self.generation = generation_of(database, EMBEDDER)

    def upload(
        self,
        content: str = "text",
        *,
        collection_id: str | None = None,
        filename: str = "a.txt",
        external_id: str | None = None,
        metadata: Metadata | None = None,
        original: str | None = None,
    ) -> Document:
        new = new_document(
            collection_id or self.collection_id,
            content,
            tenant_id=self.tenant_id,
            filename=filename,
            external_id=external_id,
            metadata=metadata,
        )
        if original is not None:
            new = replace(new, original=original)
        return self.documents.create(new, user_id="u1", key_id="k1")[0]

    def claim(self) -> ClaimedJob:
        """The oldest waiting job."""
        claimed = self.jobs.claim("boot-1")
        assert claimed is not None
        return claimed[0]

    def commit(self, job: ClaimedJob, texts: Sequence[str]) -> CommitResult:
        extraction, passages = extraction_of(texts)
        return self.jobs.commit(
            job,
            extraction=extraction,
            passages=passages,
            vectors=vectors_of(len(texts)),
            generation=self.generation,
            embedding_tokens=sum(passage.token_count for passage in passages),
        )

    def index(self, *texts: str, content: str | None = None, **upload: object) -> Document:
        """Upload a document and index `texts` as its passages."""
        created = self.upload("\n".join(texts) if content is None else content, **upload)  # type: ignore[arg-type]
        result = self.commit(self.claim(), texts)
        assert result.written
        return self.get(created.id)

    def index_again(self, document: Document, *texts: str, replace: bool = False) -> Document:
        """Index `texts` as the next version of a document; `replace` deletes the earlier ones."""
        new = new_document(document.collection_id, "\n".join(texts))
        self.documents.add_version(
            document.id,
            tenant_id=self.tenant_id,
            original=new.original,
            filename=document.filename,
            size=new.bytes,
            sha256=new.sha256,
            replace=replace,
            user_id="u1",
            key_id="k1",
        )
        assert self.commit(self.claim(), texts).written
        return self.get(document.id)

    def get(self, document_id: str) -> Document:
        return self.documents.get(document_id, tenant_id=self.tenant_id)
