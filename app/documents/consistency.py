"""Whether SQL, the files on disk and the vector index agree, and mending what is safe to mend.

SQL is the truth. What is derived from it may be mended by machine: strays on disk, the index, the full-text
rows. What only a person can decide is reported. The server may run meanwhile: a difference between two places that are
written one after the other counts only when it is still there at a second look.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from app.db.chunks import ChunkRepository
from app.db.consistency import ConsistencyRepository, StoredVersion
from app.db.documents import DocumentRepository
from app.db.session import Database
from app.documents.originals import FileStore
from retrieval.ports import Keys, VectorIndex, Vectors

_SETTLED_SECONDS = 600.0  # a file this old is no upload whose row is about to be committed
_SECOND_LOOK_SECONDS = 2.0


class Kind(StrEnum):
    """What can be wrong."""

    MISSING_ORIGINALS = "missing_originals"
    STRAY_ORIGINALS = "stray_originals"
    RESIZED_ORIGINALS = "resized_originals"
    STUCK_DOCUMENTS = "stuck_documents"
    MISPLACED_CHUNKS = "misplaced_chunks"
    MISCOUNTED_VERSIONS = "miscounted_versions"
    HIDDEN_CHUNKS = "hidden_chunks"
    CHUNKS_WITHOUT_VECTOR = "chunks_without_vector"
    VECTORS_WITHOUT_CHUNK = "vectors_without_chunk"
    FULL_TEXT_ROWS = "full_text_rows"
    INDEX_MISSING = "index_missing"
    INDEX_SURPLUS = "index_surplus"


_SAYS = {
    Kind.MISSING_ORIGINALS: "originals of document versions are missing; their text stays searchable. Restore them "
    "from a backup or upload them again.",
    Kind.STRAY_ORIGINALS: "originals on disk belong to no document.",
    Kind.RESIZED_ORIGINALS: "originals have another size than was uploaded. Restore them from a backup or upload "
    "them again.",
    Kind.STUCK_DOCUMENTS: "documents wait for a job that no longer exists. Delete them or upload them again.",
    Kind.MISPLACED_CHUNKS: "chunks differ from the text at their offsets. Upload their documents again.",
    Kind.MISCOUNTED_VERSIONS: "document versions have other chunks than they say. Upload them again.",
    Kind.HIDDEN_CHUNKS: "chunks belong to no visible document version.",
    Kind.CHUNKS_WITHOUT_VECTOR: "visible chunks have no vector and are found by their words alone. Upload their "
    "documents again.",
    Kind.VECTORS_WITHOUT_CHUNK: "stored vectors belong to no chunk.",
    Kind.FULL_TEXT_ROWS: "full-text rows and chunks do not match.",
    Kind.INDEX_MISSING: "visible chunks are missing in the vector index.",
    Kind.INDEX_SURPLUS: "vectors in the index belong to no visible chunk.",
}
_SAFE = frozenset(
    {
        Kind.STRAY_ORIGINALS,
        Kind.HIDDEN_CHUNKS,
        Kind.VECTORS_WITHOUT_CHUNK,
        Kind.FULL_TEXT_ROWS,
        Kind.INDEX_MISSING,
        Kind.INDEX_SURPLUS,
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """`count` things of one kind are wrong; `mendable` when a repair mends them, `mended` when this one did."""

    kind: Kind
    count: int
    mended: bool = False

    @property
    def mendable(self) -> bool:
        """Whether a repair may touch it: nothing that cannot be made again from SQL is."""
        return self.kind in _SAFE

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do where a repair does not."""
        return f"{self.count} {_SAYS[self.kind]}"


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found; `versions` and `chunks` say how much was looked at."""

    findings: tuple[Finding, ...]
    versions: int
    chunks: int

    @property
    def open(self) -> tuple[Finding, ...]:
        """What is still wrong."""
        return tuple(finding for finding in self.findings if not finding.mended)


class SearchedIndex(Protocol):
    """The vector index of a running server."""

    @property
    def generation(self) -> int:
        """The embedder generation of its vectors."""
        ...

    def current(self) -> VectorIndex:
        """What is searched now."""
        ...

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add or replace vectors."""
        ...

    def forget(self, keys: Keys) -> None:
        """Drop vectors."""
        ...


def examine(
    database: Database,
    files: FileStore,
    *,
    index: SearchedIndex | None = None,
    repair: bool = False,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Findings:
    """Compare what is recorded with what is there.

    Args:
        database: Migrated.
        files: The originals.
        index: The one in use; None where no server runs: the next start compares it with SQL and mends it.
        repair: Mend what is safe to mend.
        clock: Unix seconds.
        pause: Waits so many seconds between two looks at the index.

    Raises:
        StoreUnavailable: The database cannot be read, or not written to for a repair.
    """
    rows, chunks = ConsistencyRepository(database), ChunkRepository(database)
    old = files.placed_before(clock() - _SETTLED_SECONDS)  # before the rows: what is placed from now on is no stray
    versions = rows.versions()
    known = {(each.document_id, each.version) for each in versions}
    strays = old - known
    gone, resized = _compare_originals(files, rows, versions)
    defects = rows.text_defects()
    missing, surplus = _index_differences(index, chunks, pause) if index is not None else (_NONE, _NONE)
    counts = {
        Kind.MISSING_ORIGINALS: gone,
        Kind.STRAY_ORIGINALS: len(strays),
        Kind.RESIZED_ORIGINALS: resized,
        Kind.STUCK_DOCUMENTS: rows.stuck_documents(),
        Kind.MISPLACED_CHUNKS: defects.misplaced_chunks,
        Kind.MISCOUNTED_VERSIONS: defects.miscounted_versions,
        Kind.HIDDEN_CHUNKS: rows.hidden_chunks(),
        Kind.CHUNKS_WITHOUT_VECTOR: rows.chunks_without_vector(),
        Kind.VECTORS_WITHOUT_CHUNK: rows.vectors_without_chunk(),
        Kind.FULL_TEXT_ROWS: rows.full_text_rows(),
        Kind.INDEX_MISSING: len(missing),
        Kind.INDEX_SURPLUS: len(surplus),
    }
    found = {kind: count for kind, count in counts.items() if count}
    if repair:
        _mend(found, rows, files, strays)
        if index is not None:
            _mend_index(index, chunks, missing=missing, surplus=surplus)
    findings = tuple(Finding(kind, count, mended=repair and kind in _SAFE) for kind, count in found.items())
    return Findings(findings, versions=len(versions), chunks=len(chunks.visible_keys()))


def remove_strays(files: FileStore, documents: DocumentRepository) -> int:
    """Delete originals no row names: left by a crash between the file and its row, or after a deletion.

    Only at start, before any upload.
    """
    strays = files.document_versions() - documents.known_versions()
    for document_id, number in strays:
        files.remove(document_id, number)
    return len(strays)


_NONE: Keys = np.empty(0, np.int64)


def _compare_originals(
    files: FileStore, rows: ConsistencyRepository, versions: Sequence[StoredVersion]
) -> tuple[int, int]:
    """How many originals are not there, and how many have another size than their row says."""
    sizes = {each: files.size(each.document_id, each.version) for each in versions}
    suspects = {each for each, size in sizes.items() if size != each.bytes}
    if suspects:
        suspects &= set(rows.versions())  # what was deleted since is as it should be
    gone = sum(sizes[each] is None for each in suspects)
    return gone, len(suspects) - gone


def _mend(found: dict[Kind, int], rows: ConsistencyRepository, files: FileStore, strays: set[tuple[str, int]]) -> None:
    for document_id, number in strays:
        files.remove(document_id, number)
    if Kind.VECTORS_WITHOUT_CHUNK in found:
        rows.drop_vectors_without_chunk()
    if Kind.HIDDEN_CHUNKS in found:
        rows.drop_hidden_chunks()
    if Kind.FULL_TEXT_ROWS in found:
        rows.rebuild_full_text()


def _index_differences(
    index: SearchedIndex, chunks: ChunkRepository, pause: Callable[[float], None]
) -> tuple[Keys, Keys]:
    """Keys the index lacks and keys it should not have, at two looks: a commit reaches SQL first, the index next."""
    missing, surplus = _look(index, chunks)
    if len(missing) or len(surplus):
        pause(_SECOND_LOOK_SECONDS)
        missing_still, surplus_still = _look(index, chunks)
        missing, surplus = np.intersect1d(missing, missing_still), np.intersect1d(surplus, surplus_still)
    return missing, surplus


def _look(index: SearchedIndex, chunks: ChunkRepository) -> tuple[Keys, Keys]:
    held, wanted = index.current().keys(), chunks.visible_keys()
    absent = np.setdiff1d(wanted, held, assume_unique=True)
    found = [keys for keys, _ in chunks.iter_vectors(generation=index.generation, keys=absent)]
    missing = np.concatenate(found) if found else _NONE  # a chunk without a stored vector is another finding
    return missing, np.setdiff1d(held, wanted, assume_unique=True)


def _mend_index(index: SearchedIndex, chunks: ChunkRepository, *, missing: Keys, surplus: Keys) -> None:
    if len(surplus):
        index.forget(surplus)
    for keys, vectors in chunks.iter_vectors(generation=index.generation, keys=missing):
        index.add(keys, vectors)
    if len(missing):  # some may have been deleted while they were added
        index.forget(np.setdiff1d(missing, chunks.visible_keys(), assume_unique=True))
