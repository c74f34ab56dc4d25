"""Documents that are stored nowhere: the tables that a search reads, in a database in memory.

The repositories of stored documents read them, so a question is answered from them by the same statements.

Example:
    >>> database = Database.in_memory()
    >>> keys = write_passing(database, [document], tenant_id="acme")
    >>> ChunkRepository(database).search_text("notice period", scope=Scope("acme"), k=10)
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from app.db import fts5
from app.db.contents import to_block_list, to_page_list
from app.db.published_rows import chunk_row
from app.db.session import Database
from app.db.tables.documents import (
    chunk,
    collection,
    document,
    document_version,
    index_generation,
    job,
    key_counter,
    metadata,
    tenant,
)
from app.types import DocumentStatus, JobStatus
from ingestion.types import ChunkDraft, Extraction
from retrieval.ports import Keys

VERSION = 1
"""The version that each of them has."""

_TABLES = (tenant, collection, index_generation, document, document_version, chunk, key_counter, job)
_COLLECTION = "sent"


@dataclass(frozen=True, slots=True)
class PassingDocument:
    """A document that was read and cut into passages; `filename` is what it is called."""

    id: str
    filename: str
    extraction: Extraction
    passages: Sequence[ChunkDraft]


def write_passing(database: Database, documents: Sequence[PassingDocument], *, tenant_id: str) -> Keys:
    """Make the tables in an empty database, and write the documents: all can be searched from then on.

    Returns:
        `(n,)` int64: the keys of their passages, in order.
    """
    counts = [len(each.passages) for each in documents]
    firsts = np.cumsum([1, *counts]).tolist()
    with database.write() as connection:
        metadata.create_all(connection, tables=_TABLES)
        for statement in fts5.SCHEMA:
            connection.exec_driver_sql(statement)
        now = time.time()
        named = {"tenant_id": tenant_id, "created_at": now}
        connection.execute(sa.insert(tenant).values(id=tenant_id, created_at=now))
        connection.execute(sa.insert(collection).values(id=_COLLECTION, name=_COLLECTION, metadata={}, **named))
        connection.execute(sa.insert(key_counter).values(name="chunk", next_key=firsts[-1]))
        for each, first in zip(documents, firsts, strict=False):
            _write(connection, each, first_key=first, named=named)
        fts5.rebuild(connection)
    return np.arange(1, firsts[-1], dtype=np.int64)


def _write(connection: sa.Connection, each: PassingDocument, *, first_key: int, named: dict[str, object]) -> None:
    count, text, now = len(each.passages), each.extraction, named["created_at"]
    connection.execute(
        sa.insert(document).values(
            id=each.id,
            collection_id=_COLLECTION,
            version=VERSION,
            live_version=VERSION,
            status=DocumentStatus.INDEXED.value,
            done=count,
            total=count,
            job_id=each.id,
            updated_at=now,
            metadata={},
            **named,
        )
    )
    connection.execute(
        sa.insert(job).values(
            id=each.id,
            document_id=each.id,
            version=VERSION,
            status=JobStatus.DONE.value,
            attempts=1,
            replace=False,
            user_id="",
            key_id="",
            **named,
        )
    )
    connection.execute(
        sa.insert(document_version).values(
            document_id=each.id,
            version=VERSION,
            filename=each.filename,
            bytes=0,
            sha256="",
            media_type=text.media_type.value,
            page_count=len(text.pages),
            first_key=first_key,
            chunk_count=count,
            token_count=sum(passage.token_count for passage in each.passages),
            embedding_tokens=0,
            created_at=now,
            indexed_at=now,
            title=text.title,
            text=text.text,
            pages=to_page_list(text.pages),
            blocks=to_block_list(text.blocks),
        )
    )
    rows = [
        chunk_row(key, passage, document_id=each.id, version=VERSION)
        for key, passage in enumerate(each.passages, start=first_key)
    ]
    connection.execute(sa.insert(chunk), rows)
