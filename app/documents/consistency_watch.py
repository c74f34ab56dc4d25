"""Runs the consistency check of SQL, files and index: on request, and every night."""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from app.db.session import Database
from app.documents.consistency import Findings, Kind, SearchedIndex, examine
from app.documents.originals import FileStore
from app.errors import Conflict
from app.telemetry.logs import logger
from app.telemetry.metrics import Metrics


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
        files: FileStore,
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

    def run(self, index: SearchedIndex | None, *, repair: bool) -> Findings:
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
        for kind in Kind:
            self._metrics.inconsistencies.labels(kind.value).set(open_counts.get(kind, 0))
        self._metrics.reconciled_at.set(self._clock())
        counts = {finding.kind.value: finding.count for finding in found.findings}
        log = logger().warning if found.open else logger().info
        log("reconciliation.done", versions=found.versions, chunks=found.chunks, repaired=repair, **counts)
        return found


def seconds_until(hour: int, now: datetime) -> float:
    """From `now` to the next full `hour` of its time zone, above 0 and at most about a day."""
    next_time = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    if next_time <= now:
        next_time += timedelta(days=1)
    return (next_time - now).total_seconds()
