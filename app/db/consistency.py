"""Questions that should have no answer: rows that contradict each other. Mending touches derived rows only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.document_rows import unattached_originals
from app.db.lexical import full_text_defects, rebuild_full_text
from app.db.scopes import is_live
from app.db.session import Database
from app.db.tables.documents import chunk, chunk_vector, document, document_version, index_generation, job
from app.types import DocumentStatus, JobStatus

_Rows: TypeAlias = Sequence[Any]
_AT_ONCE = 16  # documents whose text is in memory together
_ENDED = (DocumentStatus.INDEXED, DocumentStatus.FAILED)

# A chunk that no search shows: its document is gone, or shows another version.
_HIDDEN = ~sa.exists().where(is_live()).correlate(chunk)
_WITHOUT_CHUNK = ~sa.exists().where(chunk.c.key == chunk_vector.c.key).correlate(chunk_vector)


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A document version as SQL knows it, `bytes` as it was uploaded."""

    document_id: str
    version: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TextDefects:
    """Live versions' chunks that are not the slice of text they say, and versions whose chunks are not all there."""

    misplaced_chunks: int
    miscounted_versions: int


class ConsistencyRepository:
    """Reads all tenants' rows. Nothing is locked: each question is a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(self) -> list[StoredVersion]:
        """Every version of every document, and the files that are none."""
        kept = unattached_originals().subquery()
        query = sa.union_all(
            sa.select(document_version.c.document_id, document_version.c.version, document_version.c.bytes),
            sa.select(kept.c.document_id, kept.c.version, kept.c.bytes),
        )
        with self._database.read() as connection:
            return [StoredVersion(*row) for row in connection.execute(query)]

    def hidden_chunks(self) -> int:
        """Chunks no search shows: of no document, or of a version that is not live."""
        return self._count(sa.select(sa.func.count()).select_from(chunk).where(_HIDDEN))

    def vectors_without_chunk(self) -> int:
        """Vectors of chunks that are not there."""
        return self._count(sa.select(sa.func.count()).select_from(chunk_vector).where(_WITHOUT_CHUNK))

    def chunks_without_vector(self) -> int:
        """Visible chunks that the active generation has no vector of; 0 where no generation is active yet."""
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
        """Documents that wait for a job which has ended or is not there."""
        works = (
            sa.exists()
            .where(job.c.id == document.c.job_id, job.c.status.in_((JobStatus.QUEUED, JobStatus.RUNNING)))
            .correlate(document)
        )
        query = sa.select(sa.func.count()).select_from(document).where(document.c.status.not_in(_ENDED), ~works)
        return self._count(query)

    def full_text_rows(self) -> int:
        """Chunks without a row in a full-text index, and rows without a chunk. PostgreSQL's is a column: always 0."""
        with self._database.read() as connection:
            return full_text_defects(connection)

    def text_defects(self) -> TextDefects:
        """Compare every live version's chunks with its text and with what it says of them; reads all text."""
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
        """Delete what `hidden_chunks` counts, with its vectors."""
        hidden = sa.select(chunk.c.key).where(_HIDDEN)
        with self._database.write() as connection:
            connection.execute(sa.delete(chunk_vector).where(chunk_vector.c.key.in_(hidden)))
            return int(connection.execute(sa.delete(chunk).where(_HIDDEN)).rowcount)

    def drop_vectors_without_chunk(self) -> int:
        """Delete what `vectors_without_chunk` counts."""
        with self._database.write() as connection:
            return int(connection.execute(sa.delete(chunk_vector).where(_WITHOUT_CHUNK)).rowcount)

    def rebuild_full_text(self) -> None:
        """Make the full-text indexes anew; writers wait meanwhile. Nothing to do on PostgreSQL."""
        with self._database.write() as connection:
            rebuild_full_text(connection)

    def _live(self) -> Iterator[tuple[_Rows, dict[str, list[Any]]]]:
        """Live versions, some at a time, and their chunks by document in the order of their keys: one moment each."""
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
