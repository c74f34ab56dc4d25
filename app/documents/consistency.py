"""Checks that SQL, the files on disk and the indexes agree, and repairs what can be derived from SQL.

SQL is the source of truth. Stray files, the indexes and the full-text rows are repaired; everything else is only
reported, for an administrator to decide. The server may run meanwhile.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.db.chunks import ChunkRepository
from app.db.consistency import ConsistencyRepository, StoredVersion
from app.db.session import Database
from app.documents.files import DocumentFiles
from app.documents.index_ports import Differences, Repairable
from app.errors import Conflict
from app.telemetry.logs import logger
from app.telemetry.metrics import Metrics

_SETTLED_SECONDS = 600.0  # a younger file may belong to a row that is not committed yet


class Inconsistency(StrEnum):
    """The kinds of inconsistency."""

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
    Inconsistency.MISSING_ORIGINALS: "originals of document versions are missing; their text stays searchable. "
    "Restore them from a backup or upload them again.",
    Inconsistency.STRAY_ORIGINALS: "originals on disk belong to no document.",
    Inconsistency.RESIZED_ORIGINALS: "originals have another size than was uploaded. "
    "Restore them from a backup or upload them again.",
    Inconsistency.STUCK_DOCUMENTS: "documents wait for a job that no longer exists. Delete them or upload them again.",
    Inconsistency.MISPLACED_CHUNKS: "chunks differ from the text at their offsets. Upload their documents again.",
    Inconsistency.MISCOUNTED_VERSIONS: "document versions have other chunks than their rows state. Upload them again.",
    Inconsistency.HIDDEN_CHUNKS: "chunks belong to no visible document version.",
    Inconsistency.CHUNKS_WITHOUT_VECTOR: "visible chunks have no vector and are found by keyword search alone. "
    "Upload their documents again.",
    Inconsistency.VECTORS_WITHOUT_CHUNK: "stored vectors belong to no chunk.",
    Inconsistency.FULL_TEXT_ROWS: "full-text rows and chunks do not match.",
    Inconsistency.INDEX_MISSING: "visible chunks are missing from the vector index or the word index.",
    Inconsistency.INDEX_SURPLUS: "entries of the vector index or the word index belong to no visible chunk.",
}
_SAFE = frozenset(
    {
        Inconsistency.STRAY_ORIGINALS,
        Inconsistency.HIDDEN_CHUNKS,
        Inconsistency.VECTORS_WITHOUT_CHUNK,
        Inconsistency.FULL_TEXT_ROWS,
        Inconsistency.INDEX_MISSING,
        Inconsistency.INDEX_SURPLUS,
    }
)


@dataclass(frozen=True, slots=True)
class InconsistencyCount:
    """A number of inconsistencies of one kind; `mended` when this run repaired them."""

    kind: Inconsistency
    count: int
    mended: bool = False

    @property
    def mendable(self) -> bool:
        """Whether a repair fixes it: only data that can be rebuilt from SQL."""
        return self.kind in _SAFE

    @property
    def sentence(self) -> str:
        """The finding as a sentence, with advice when no repair fixes it."""
        return f"{self.count} {_SAYS[self.kind]}"


@dataclass(frozen=True, slots=True)
class Findings:
    """All findings, and the number of document versions and chunks that were checked."""

    findings: tuple[InconsistencyCount, ...]
    versions: int
    chunks: int

    @property
    def open(self) -> tuple[InconsistencyCount, ...]:
        """The findings that were not repaired."""
        return tuple(finding for finding in self.findings if not finding.mended)


def examine(
    database: Database,
    files: DocumentFiles,
    *,
    index: Repairable | None = None,
    repair: bool = False,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Findings:
    """Compare SQL with the files on disk and with the index.

    Args:
        database: Migrated.
        files: The originals.
        index: The indexes in use; None when no server runs, since each start compares them with SQL and repairs them.
        repair: Whether to repair everything that SQL determines.
        clock: Unix seconds.
        pause: Waits a number of seconds, between the two comparisons of an index.

    Raises:
        StoreUnavailable: The database cannot be read, or not be written for a repair.

    Example:
        >>> [finding.sentence for finding in examine(database, files).open]
        ['2 originals on disk belong to no document.']
    """
    rows, chunks = ConsistencyRepository(database), ChunkRepository(database)
    strays = files.unnamed(clock() - _SETTLED_SECONDS)
    versions = rows.versions()
    gone, resized = _compare_originals(files, rows, versions)
    defects = rows.text_defects()
    told = index.repair(only_tell=not repair, pause=pause) if index is not None else Differences()
    counts = {
        Inconsistency.MISSING_ORIGINALS: gone,
        Inconsistency.STRAY_ORIGINALS: len(strays),
        Inconsistency.RESIZED_ORIGINALS: resized,
        Inconsistency.STUCK_DOCUMENTS: rows.stuck_documents(),
        Inconsistency.MISPLACED_CHUNKS: defects.misplaced_chunks,
        Inconsistency.MISCOUNTED_VERSIONS: defects.miscounted_versions,
        Inconsistency.HIDDEN_CHUNKS: rows.hidden_chunks(),
        Inconsistency.CHUNKS_WITHOUT_VECTOR: rows.chunks_without_vector(),
        Inconsistency.VECTORS_WITHOUT_CHUNK: rows.vectors_without_chunk(),
        Inconsistency.FULL_TEXT_ROWS: rows.full_text_rows(),
        Inconsistency.INDEX_MISSING: told.missing,
        Inconsistency.INDEX_SURPLUS: told.surplus,
    }
    found = {kind: count for kind, count in counts.items() if count}
    if repair:
        _mend(found, rows, files, strays)
    findings = tuple(InconsistencyCount(kind, count, mended=repair and kind in _SAFE) for kind, count in found.items())
    return Findings(findings, versions=len(versions), chunks=len(chunks.visible_keys()))


def _compare_originals(
    files: DocumentFiles, rows: ConsistencyRepository, versions: Sequence[StoredVersion]
) -> tuple[int, int]:
    """The number of originals that are missing, and of those whose size differs from their row."""
    sizes = {each: files.store.size(each.original) for each in versions}
    suspects = {each for each, size in sizes.items() if size != each.bytes}
    if suspects:
        suspects &= set(rows.versions())  # some may have been deleted since
    gone = sum(sizes[each] is None for each in suspects)
    return gone, len(suspects) - gone


def _mend(found: dict[Inconsistency, int], rows: ConsistencyRepository, files: DocumentFiles, strays: set[str]) -> None:
    files.drop(sorted(strays))
    if Inconsistency.VECTORS_WITHOUT_CHUNK in found:
        rows.drop_vectors_without_chunk()
    if Inconsistency.HIDDEN_CHUNKS in found:
        rows.drop_hidden_chunks()
    if Inconsistency.FULL_TEXT_ROWS in found:
        rows.rebuild_full_text()


class Reconciler:
    """Runs one consistency check at a time and reports its findings to the log and the metrics.

    Example:
        >>> Reconciler(database=database, files=files, metrics=metrics).run(index, repair=True).open
        ()
    """

    def __init__(
        self,
        *,
        database: Database,
        files: DocumentFiles,
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`clock` and `pause` are those of `app.documents.consistency.examine`."""
        self._database = database
        self._files = files
        self._metrics = metrics
        self._clock = clock
        self._pause = pause
        self._running = threading.Lock()

    def run(self, index: Repairable | None, *, repair: bool) -> Findings:
        """Check, repair if `repair`, and report. Takes minutes on a large installation.

        Raises:
            Conflict: Another check is running.
            StoreUnavailable: The database cannot be read.
        """
        if not self._running.acquire(blocking=False):
            raise Conflict("A reconciliation is running already.")
        try:
            found = examine(
                self._database, self._files, index=index, repair=repair, clock=self._clock, pause=self._pause
            )
        finally:
            self._running.release()
        open_counts = {finding.kind: finding.count for finding in found.open}
        for kind in Inconsistency:
            self._metrics.inconsistencies.labels(kind.value).set(open_counts.get(kind, 0))
        self._metrics.reconciled_at.set(self._clock())
        counts = {finding.kind.value: finding.count for finding in found.findings}
        log = logger().warning if found.open else logger().info
        log("reconciliation.done", versions=found.versions, chunks=found.chunks, repaired=repair, **counts)
        return found
