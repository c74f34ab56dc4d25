"""Writes the rows of ingested versions, inside the caller's transaction: texts, chunks, vectors and end of the job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa

from app.db.cited_passages import keep_text
from app.db.contents import to_block_list, to_page_list
from app.db.document_rows import ClaimedJob
from app.db.job_queue import not_before
from app.db.lexical import keep_words
from app.db.originals import condemn
from app.db.tables.documents import chunk, chunk_vector, document, document_version, job, key_counter
from app.types import DocumentStatus, Job, JobStatus
from ingestion.types import ChunkDraft, Extraction
from retrieval.ports import Keys

Halves: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float16]]
"""`(n, dim)` float16 vectors as they are stored."""

_TAKE = (
    sa.update(key_counter)
    .where(key_counter.c.name == "chunk")
    .values(next_key=key_counter.c.next_key + sa.bindparam("taken"))
    .returning(key_counter.c.next_key)
)
_NOTE = sa.update(job).where(job.c.id == sa.bindparam("its_id")).values(first_key=sa.bindparam("first"))


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of a running job, with one chunk key per passage."""

    job: Job
    extraction: Extraction
    passages: Sequence[ChunkDraft]
    keys: Keys
    halves: Halves
    generation: int
    embedding_tokens: int


def take_keys(connection: sa.Connection, counts: Mapping[ClaimedJob, int]) -> dict[ClaimedJob, Keys]:
    """Take so many chunk keys for each locked job, consecutive and never used before, and note them with the job.

    The counter is locked until the transaction ends, so it comes last and nothing slow may follow.
    """
    taken = sum(counts.values())
    end = connection.execute(_TAKE, {"taken": taken}).scalar_one()
    runs = np.split(np.arange(end - taken, end, dtype=np.int64), np.cumsum(list(counts.values()))[:-1])
    keys = dict(zip(counts, runs, strict=True))
    noted = [{"its_id": each.id, "first": int(mine[0])} for each, mine in keys.items() if len(mine)]
    if noted:
        connection.execute(_NOTE, noted)
    return keys


def keys_taken(connection: sa.Connection, counts: Mapping[ClaimedJob, int]) -> dict[ClaimedJob, Keys]:
    """The keys that running jobs took, as `take_keys` returned them for the same counts."""
    query = sa.select(job.c.id, job.c.first_key).where(job.c.id.in_([each.id for each in counts]))
    first = {row.id: row.first_key for row in connection.execute(query)}
    assert all(first[each.id] is not None for each, count in counts.items() if count), "keys are taken before a commit"
    return {
        each: np.arange(first[each.id], first[each.id] + count, dtype=np.int64) if count else np.empty(0, np.int64)
        for each, count in counts.items()
    }


def write_texts(connection: sa.Connection, indexed: Sequence[Indexed], *, now: float) -> None:
    """Write the versions' canonical texts, pages, blocks and counts."""
    mine = (
        document_version.c.document_id == sa.bindparam("its_document"),
        document_version.c.version == sa.bindparam("its_version"),
    )
    connection.execute(
        sa.update(document_version).where(*mine),
        [
            {
                "its_document": each.job.document_id,
                "its_version": each.job.version,
                "media_type": each.extraction.media_type.value,
                "title": each.extraction.title,
                "text": each.extraction.text,
                "pages": to_page_list(each.extraction.pages),
                "blocks": to_block_list(each.extraction.blocks),
                "page_count": len(each.extraction.pages),
                "first_key": int(each.keys[0]) if len(each.keys) else None,
                "chunk_count": len(each.passages),
                "token_count": sum(passage.token_count for passage in each.passages),
                "generation": each.generation,
                "embedding_tokens": each.embedding_tokens,
                "indexed_at": now,
            }
            for each in indexed
        ],
    )


def write_chunks(connection: sa.Connection, indexed: Sequence[Indexed]) -> None:
    """Insert the versions' chunks, their vectors and their words."""
    chunks = [
        chunk_row(key, passage, document_id=each.job.document_id, version=each.job.version)
        for each in indexed
        for key, passage in zip(each.keys.tolist(), each.passages, strict=True)
    ]
    vectors = [
        {"key": key, "generation": each.generation, "vector": half.tobytes()}
        for each in indexed
        for key, half in zip(each.keys.tolist(), each.halves, strict=True)
    ]
    if chunks:
        connection.execute(sa.insert(chunk), chunks)
        connection.execute(sa.insert(chunk_vector), vectors)
        keep_words(connection, [key for each in indexed for key in each.keys.tolist()])


def chunk_row(key: int, passage: ChunkDraft, *, document_id: str, version: int) -> dict[str, object]:
    """The row of a passage in `chunk`."""
    return {
        "key": key,
        "document_id": document_id,
        "version": version,
        "ordinal": passage.ordinal,
        "start_char": passage.start_char,
        "end_char": passage.end_char,
        "page_start": passage.page_start,
        "page_end": passage.page_end,
        "token_count": passage.token_count,
        "heading_path": list(passage.heading_path),
        "heading": " > ".join(passage.heading_path),
        "table_header": passage.table_header,
        "text": passage.text,
    }


def finish_indexed(connection: sa.Connection, indexed: Sequence[Indexed], *, now: float) -> None:
    """End the jobs and make their versions live."""
    connection.execute(
        sa.update(document).where(document.c.job_id == sa.bindparam("its_job")),
        [
            {
                "its_job": each.job.id,
                "status": DocumentStatus.INDEXED,
                "live_version": each.job.version,
                "done": len(each.passages),
                "total": len(each.passages),
                "updated_at": now,
            }
            for each in indexed
        ],
    )
    ended = sa.update(job).where(job.c.id.in_([each.job.id for each in indexed]))
    connection.execute(ended.values(status=JobStatus.DONE, finished_at=not_before(now)))


def drop_older(connection: sa.Connection, running: Job, *, now: float) -> tuple[str, ...]:
    """Delete the versions before that of the job; returns the names of the originals to delete after the commit."""
    keep_text(connection, running.document_id, below=running.version)
    dropped = connection.execute(
        sa.delete(document_version)
        .where(document_version.c.document_id == running.document_id, document_version.c.version < running.version)
        .returning(document_version.c.object)
    ).scalars()
    return condemn(connection, list(dropped), now=now)
