"""Visible chunks as they lie in SQL."""

from typing import Any

import sqlalchemy as sa

from app.db.scopes import is_live
from app.db.tables.documents import chunk, document, document_version
from retrieval.types import Chunk

CHUNKS: sa.Select[Any] = (
    sa.select(
        chunk.c.key,
        chunk.c.document_id,
        chunk.c.version,
        document.c.collection_id,
        document_version.c.filename,
        document.c.external_id,
        chunk.c.ordinal,
        chunk.c.text,
        chunk.c.start_char,
        chunk.c.end_char,
        chunk.c.page_start,
        chunk.c.page_end,
        chunk.c.heading_path,
        chunk.c.token_count,
    )
    .select_from(chunk)
    .join(document, is_live())
    .join(
        document_version,
        sa.and_(document_version.c.document_id == chunk.c.document_id, document_version.c.version == chunk.c.version),
    )
)
"""Every column `to_chunk` needs, of visible chunks only; add conditions on `chunk` or `document`."""


def to_chunk(row: sa.Row[Any]) -> Chunk:
    """A row of `CHUNKS` as a chunk. Its id says document, version and place, and is the same after a rebuild."""
    return Chunk(
        key=row.key,
        id=f"{row.document_id}.{row.version}.{row.ordinal}",
        document_id=row.document_id,
        version=row.version,
        collection_id=row.collection_id,
        filename=row.filename,
        external_id=row.external_id,
        ordinal=row.ordinal,
        text=row.text,
        start_char=row.start_char,
        end_char=row.end_char,
        page_start=row.page_start,
        page_end=row.page_end,
        heading_path=tuple(row.heading_path),
        token_count=row.token_count,
    )
