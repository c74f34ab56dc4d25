"""Writing what an ingestion produced, inside the caller's transaction."""

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa

from app.db.contents import to_block_list, to_page_list
from app.db.tables import chunk, chunk_vector, document_version, key_counter
from app.types import Job
from ingestion.types import Extraction, Passage
from retrieval.ports import Keys


def take_keys(connection: sa.Connection, count: int) -> Keys:
    """The next `count` chunk keys, one after the other and never handed out before."""
    end = connection.execute(
        sa.update(key_counter)
        .where(key_counter.c.name == "chunk")
        .values(next_key=key_counter.c.next_key + count)
        .returning(key_counter.c.next_key)
    ).scalar_one()
    return np.arange(end - count, end, dtype=np.int64)


def write_text(
    connection: sa.Connection,
    running: Job,
    extraction: Extraction,
    passages: Sequence[Passage],
    *,
    first_key: int | None,
    generation: int,
    embedding_tokens: int,
    now: float,
) -> None:
    """The version's canonical text and structure, and its counts."""
    connection.execute(
        sa.update(document_version)
        .where(document_version.c.document_id == running.document_id, document_version.c.version == running.version)
        .values(
            media_type=extraction.media_type.value,
            title=extraction.title,
            text=extraction.text,
            pages=to_page_list(extraction.pages),
            blocks=to_block_list(extraction.blocks),
            page_count=len(extraction.pages),
            first_key=first_key,
            chunk_count=len(passages),
            token_count=sum(passage.token_count for passage in passages),
            generation=generation,
            embedding_tokens=embedding_tokens,
            indexed_at=now,
        )
    )


def write_chunks(
    connection: sa.Connection,
    running: Job,
    passages: Sequence[Passage],
    *,
    keys: Keys,
    halves: np.ndarray[tuple[int, ...], np.dtype[np.float16]],
    generation: int,
) -> None:
    """The version's chunks under `keys`, and their `(n, dim)` float16 vectors."""
    if not passages:
        return
    connection.execute(
        sa.insert(chunk),
        [
            {
                "key": key,
                "document_id": running.document_id,
                "version": running.version,
                "ordinal": passage.ordinal,
                "start_char": passage.start_char,
                "end_char": passage.end_char,
                "page_start": passage.page_start,
                "page_end": passage.page_end,
                "token_count": passage.token_count,
                "heading_path": list(passage.heading_path),
                "heading": " > ".join(passage.heading_path),
                "text": passage.text,
            }
            for key, passage in zip(keys.tolist(), passages, strict=True)
        ],
    )
    connection.execute(
        sa.insert(chunk_vector),
        [
            {"key": key, "generation": generation, "vector": half.tobytes()}
            for key, half in zip(keys.tolist(), halves, strict=True)
        ],
    )


def drop_older(connection: sa.Connection, running: Job) -> tuple[int, ...]:
    """Forget the versions before the job's; their numbers, ascending."""
    dropped = connection.execute(
        sa.delete(document_version)
        .where(document_version.c.document_id == running.document_id, document_version.c.version < running.version)
        .returning(document_version.c.version)
    ).scalars()
    return tuple(sorted(dropped))
