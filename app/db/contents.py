"""Reads the canonical text of document versions, its pages and blocks, and the live version's chunks."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from app.db.chunks import CHUNKS, to_chunk
from app.db.document_rows import find_document
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version
from app.errors import NotFound
from app.types import DocumentVersion
from ingestion.types import Block, BlockKind, PageRange
from retrieval.types import Chunk, Span

_VERSION: tuple[sa.ColumnElement[Any], ...] = (  # in the order of `DocumentVersion`
    document_version.c.version,
    document_version.c.filename,
    document_version.c.bytes,
    document_version.c.sha256,
    document_version.c.media_type,
    document_version.c.title,
    document_version.c.page_count,
    document_version.c.chunk_count,
    document_version.c.token_count,
    document_version.c.embedding_tokens,
    document_version.c.created_at,
    document_version.c.indexed_at,
)


class ContentRepository:
    """Texts of all tenants. `collections` are those that the key may access; None means all.

    Example:
        >>> ContentRepository(database).text("doc_1", tenant_id="acme", start=0, end=80)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def text(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        version: int | None = None,
        start: int = 0,
        end: int | None = None,
    ) -> str:
        """Characters `[start, end)` (code points) of a version's canonical text, the live version by default.

        Raises:
            NotFound: No such document, or the version was deleted or is not indexed yet.
        """
        assert start >= 0, "offsets count from 0"
        length = () if end is None else (max(end - start, 0),)
        part = sa.func.substr(document_version.c.text, start + 1, *length, type_=sa.Text).label("part")
        row = self._version(document_id, tenant_id, collections, version, part)
        text: str = row.part
        return text

    def title(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        version: int | None = None,
    ) -> str | None:
        """The title that was found for a version; None where it was read before every document had one.

        Raises:
            NotFound: As `text`.
        """
        row = self._version(document_id, tenant_id, collections, version, document_version.c.title)
        title: str | None = row.title
        return title

    def media_type(self, document_id: str, *, tenant_id: str, version: int | None = None) -> str | None:
        """The media type of a version's file.

        Raises:
            NotFound: As `text`.
        """
        row = self._version(document_id, tenant_id, None, version, document_version.c.media_type)
        media_type: str | None = row.media_type
        return media_type

    def version(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        version: int | None = None,
    ) -> DocumentVersion:
        """A version, without its text.

        Raises:
            NotFound: As `text`.
        """
        return _to_version(self._version(document_id, tenant_id, collections, version, *_VERSION))

    def structure(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        version: int | None = None,
    ) -> tuple[tuple[PageRange, ...], tuple[Block, ...]]:
        """The pages and blocks of a version's canonical text.

        Raises:
            NotFound: As `text`.
        """
        columns = document_version.c.pages, document_version.c.blocks
        row = self._version(document_id, tenant_id, collections, version, *columns)
        return tuple(PageRange(*page) for page in row.pages), tuple(_block(block) for block in row.blocks)

    def versions(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> tuple[tuple[DocumentVersion, ...], str | None]:
        """At most `limit` remaining versions, newest first, and the cursor of the next page (None: no more).

        Raises:
            NotFound: No such document.
            InvalidRequest: A cursor that this list did not give out.
        """
        table = document_version.c
        query = sa.select(*_VERSION).where(table.document_id == document_id).order_by(table.version.desc())
        if cursor is not None:
            (last,) = decode_cursor(cursor, int)
            query = query.where(table.version < last)
        with self._database.read() as connection:
            find_document(connection, document_id, tenant_id=tenant_id, collections=collections)
            found = tuple(_to_version(row) for row in connection.execute(query.limit(limit + 1)))
        return cut(found, limit, lambda row: (row.version,))

    def chunks(
        self,
        document_id: str,
        *,
        tenant_id: str,
        collections: tuple[str, ...] | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> tuple[tuple[Chunk, ...], str | None]:
        """At most `limit` visible chunks in document order, and the cursor of the next page (None: no more).

        Raises:
            NotFound: No such document.
            InvalidRequest: A cursor that this list did not give out.
        """
        query = CHUNKS.where(document.c.id == document_id).order_by(chunk.c.ordinal).limit(limit + 1)
        if cursor is not None:
            (ordinal,) = decode_cursor(cursor, int)
            query = query.where(chunk.c.ordinal > ordinal)
        with self._database.read() as connection:
            find_document(connection, document_id, tenant_id=tenant_id, collections=collections)
            found = tuple(to_chunk(row) for row in connection.execute(query))
        return cut(found, limit, lambda row: (row.ordinal,))

    def chunks_over(
        self, document_id: str, spans: Sequence[Span], *, tenant_id: str, version: int
    ) -> tuple[Chunk, ...]:
        """The visible chunks that hold a character of `spans`, in document order; none of another version.

        Args:
            document_id: The document.
            spans: Characters of the version's canonical text, a few dozen spans at most.
            tenant_id: Its tenant.
            version: The version; where it is no longer live, nothing is found.
        """
        if not spans:
            return ()
        overlaps = [sa.and_(chunk.c.start_char < span.end_char, chunk.c.end_char > span.start_char) for span in spans]
        query = (
            CHUNKS.where(document.c.tenant_id == tenant_id, document.c.id == document_id)
            .where(chunk.c.version == version, sa.or_(*overlaps))
            .order_by(chunk.c.ordinal)
        )
        with self._database.read() as connection:
            return tuple(to_chunk(row) for row in connection.execute(query))

    def _version(
        self,
        document_id: str,
        tenant_id: str,
        collections: tuple[str, ...] | None,
        version: int | None,
        *columns: sa.ColumnElement[Any],
    ) -> sa.Row[Any]:
        with self._database.read() as connection:
            found = find_document(connection, document_id, tenant_id=tenant_id, collections=collections)
            wanted = found.live_version if version is None else version
            row = connection.execute(
                sa.select(*columns).where(
                    document_version.c.document_id == document_id,
                    document_version.c.version == wanted,
                    document_version.c.indexed_at.is_not(None),
                )
            ).one_or_none()
        if row is None:
            raise NotFound("There is no such version, or it is not indexed yet.")
        return row


def to_page_list(pages: tuple[PageRange, ...]) -> list[list[int]]:
    """Pages as their JSON column holds them."""
    return [[page.number, page.start_char, page.end_char] for page in pages]


def to_block_list(blocks: tuple[Block, ...]) -> list[list[object]]:
    """Blocks as their JSON column holds them: the cells last, where there are any."""
    return [
        [
            block.kind.value,
            block.start_char,
            block.end_char,
            block.page,
            list(block.heading_path),
            *([list(block.cells)] if block.cells else []),
        ]
        for block in blocks
    ]


def _to_version(row: Any) -> DocumentVersion:
    return DocumentVersion(*row)


def _block(stored: list[Any]) -> Block:
    kind, start_char, end_char, page, heading_path, *cells = stored
    return Block(BlockKind(kind), start_char, end_char, page, tuple(heading_path), tuple(*cells))
