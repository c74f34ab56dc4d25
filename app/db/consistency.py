"""Finds rows that contradict each other, and repairs those that are derived from others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.lexical import full_text_defects, rebuild_full_text
from app.db.scopes import is_live
from app.db.session import Database
from app.db.tables.documents import (
    chunk,
    chunk_vector,
    document,
    document_version,
    index_generation,
    job,
    unattached_file,
)
from app.types import DocumentStatus, JobStatus

_Rows: TypeAlias = Sequence[Any]
_AT_ONCE = 16  # documents whose text is in memory together
_ENDED = (DocumentStatus.INDEXED, DocumentStatus.FAILED)

# A chunk that no search returns: its document was deleted or has another live version.
_HIDDEN = ~sa.exists().where(is_live()).correlate(chunk)
_WITHOUT_CHUNK = ~sa.exists().where(chunk.c.key == chunk_vector.c.key).correlate(chunk_vector)


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A document version or an unattached file: the name of its original, and the size of its upload in bytes."""

    original: str
    bytes: int


@dataclass(frozen=True, slots=True)
class TextDefects:
    """The number of chunks that differ from the text at their offsets, and of versions that lack chunks."""

    misplaced_chunks: int
    miscounted_versions: int


class ConsistencyRepository:
    """Checks the rows of all tenants. Nothing is locked: each check is a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(self) -> list[StoredVersion]:
        """Every version of every document, and the unattached files."""
        query = sa.union_all(
            sa.select(document_version.c.object, document_version.c.bytes),
            sa.select(unattached_file.c.object, unattached_file.c.bytes),
        )
        with self._database.read() as connection:
            return [StoredVersion(*row) for row in connection.execute(query)]

    def hidden_chunks(self) -> int:
        """The number of chunks that no search returns: without a document, or of a version that is not live."""
        return self._count(sa.select(sa.func.count()).select_from(chunk).where(_HIDDEN))

    def vectors_without_chunk(self) -> int:
        """The number of vectors without a chunk."""
        return self._count(sa.select(sa.func.count()).select_from(chunk_vector).where(_WITHOUT_CHUNK))

    def chunks_without_vector(self) -> int:
        """The number of visible chunks without a vector in the active generation; 0 when no generation is active."""
        active = sa.select(index_generation.c.id).where(index_generation.c.status == "active")
        has_vector = (
            sa.exists()
            .where(chunk_vector.c.key == chunk.c.key, chunk_vector.c.generation == active.scalar_subquery())
            .correlate(chunk)
        )
        query = sa.select(sa.func.count()).select_from(chunk).join(document, is_live()).where(~has_vector)
        with self._database.read() as connection:
            if connection.execute(active).scalar() is None:
                return 0
            return int(connection.execute(query).scalar_one())

    def stuck_documents(self) -> int:
        """The number of documents that wait for a job which has ended or does not exist."""
        works = (
            sa.exists()
            .where(job.c.id == document.c.job_id, job.c.status.in_((JobStatus.QUEUED, JobStatus.RUNNING)))
            .correlate(document)
        )
        query = sa.select(sa.func.count()).select_from(document).where(document.c.status.not_in(_ENDED), ~works)
        return self._count(query)

    def full_text_rows(self) -> int:
        """The number of chunks without a full-text row, and of such rows without a chunk."""
        with self._database.read() as connection:
            return full_text_defects(connection)

    def text_defects(self) -> TextDefects:
        """Compare the chunks of every live version with its text and its counts; reads all text."""
        misplaced = miscounted = 0
        for texts, chunks in self._live():
            for row in texts:
                its = chunks.get(row.document_id, [])
                text = row.text or ""
                misplaced += sum(text[each.start_char : each.end_char] != each.text for each in its)
                keys = [each.key for each in its]
                first = row.first_key
                miscounted += keys != ([] if first is None else list(range(first, first + row.chunk_count)))
        return TextDefects(misplaced, miscounted)

    def drop_hidden_chunks(self) -> int:
        """Delete the chunks that `hidden_chunks` counts, and their vectors; returns their number."""
        hidden = sa.select(chunk.c.key).where(_HIDDEN)
        with self._database.write() as connection:
            connection.execute(sa.delete(chunk_vector).where(chunk_vector.c.key.in_(hidden)))
            return int(connection.execute(sa.delete(chunk).where(_HIDDEN)).rowcount)

    def drop_vectors_without_chunk(self) -> int:
        """Delete the vectors that `vectors_without_chunk` counts; returns their number."""
        with self._database.write() as connection:
            return int(connection.execute(sa.delete(chunk_vector).where(_WITHOUT_CHUNK)).rowcount)

    def rebuild_full_text(self) -> None:
        """Make what `full_text_rows` counts right; on SQLite writers wait meanwhile."""
        rebuild_full_text(self._database)

    def _live(self) -> Iterator[tuple[_Rows, dict[str, list[Any]]]]:
        """Live versions in batches, and their chunks by document, ordered by key; one transaction a batch."""
        version = document_version.c
        texts = (
            sa.select(version.document_id, version.text, version.first_key, version.chunk_count)
            .join(document, sa.and_(document.c.id == version.document_id, document.c.live_version == version.version))
            .order_by(version.document_id)
            .limit(_AT_ONCE)
        )
        pieces = (
            sa.select(chunk.c.document_id, chunk.c.key, chunk.c.start_char, chunk.c.end_char, chunk.c.text)
            .join(document, is_live())
            .order_by(chunk.c.key)
        )
        last = ""
        while True:
            with self._database.read() as connection:
                found = connection.execute(texts.where(version.document_id > last)).all()
                if not found:
                    return
                first, last = found[0].document_id, found[-1].document_id
                by_document: dict[str, list[Any]] = {}
                for row in connection.execute(pieces.where(chunk.c.document_id.between(first, last))):
                    by_document.setdefault(row.document_id, []).append(row)
            yield found, by_document

    def _count(self, query: sa.Select[int]) -> int:
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())
