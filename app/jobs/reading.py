"""Reads claimed files into passages: the work of several threads, each of which waits for a parser process."""

import threading
import time
from collections.abc import Callable

from app.db.jobs import JobRepository
from app.documents.originals import FileStore
from app.documents.passwords import Passwords
from app.errors import StorageFull, StoreUnavailable
from app.jobs.attempt import Attempt, Overtaken, Stopped
from app.jobs.claimed import Claimed
from app.jobs.endings import Endings
from app.jobs.ready import Ready
from app.telemetry.logs import logger
from app.telemetry.stations import Instruments
from app.types import Job
from ingestion.errors import Malformed
from ingestion.pipeline import Pipeline
from ingestion.types import Progress

IDLE_SECONDS = 0.5
_PROGRESS_SECONDS = 0.25  # between two reports: each is a transaction, and small documents come by the thousand


def progress_of(jobs: JobRepository, job: Job, stop: threading.Event) -> Callable[[Progress], None]:
    """A callback that shows how far a job is, now and then.

    It raises `Stopped` when the process is to end, and `Overtaken` when it learns that the job was cancelled.
    """
    due = time.monotonic() + _PROGRESS_SECONDS

    def report(progress: Progress) -> None:
        nonlocal due
        if stop.is_set():
            raise Stopped
        if time.monotonic() < due:
            return
        due = time.monotonic() + _PROGRESS_SECONDS
        if not jobs.progress(job.id, progress.stage, done=progress.done, total=progress.total):
            raise Overtaken

    return report


class Reading:
    """What each reading thread runs: takes a claimed job, extracts and chunks its file, hands it on."""

    def __init__(
        self,
        *,
        jobs: JobRepository,
        files: FileStore,
        passwords: Passwords,
        pipeline: Pipeline,
        claimed: Claimed,
        ready: Ready,
        endings: Endings,
        instruments: Instruments,
        stop: threading.Event,
    ) -> None:
        self._jobs = jobs
        self._files = files
        self._passwords = passwords
        self._pipeline = pipeline
        self._claimed = claimed
        self._ready = ready
        self._endings = endings
        self._instruments = instruments
        self._stop = stop

    def run(self) -> None:
        """Read until the process is to end."""
        while not self._stop.is_set():
            calls = self._claimed.calls()
            attempt = self._take()
            if attempt is None:
                self._claimed.wait(calls, seconds=IDLE_SECONDS)
            else:
                self._read(attempt)

    def _take(self) -> Attempt | None:
        if self._endings.pending:  # the store is in trouble: nothing new before what is begun has its end
            return None
        try:
            return self._claimed.take()
        except (StoreUnavailable, StorageFull):
            return None
        except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
            logger().error("ingestion.worker", error=type(error).__name__, exc_info=error)
            return None

    def _read(self, attempt: Attempt) -> None:
        attempt.work = self._instruments.job(attempt.job.id)
        try:
            with attempt.work.active():
                self._prepare(attempt)
            if not self._ready.put(attempt):
                raise Stopped
        except Exception as error:  # noqa: BLE001 - one document's failure, a bug of ours even, must not stop the others
            # a parser that was stopped with the process says nothing about the file
            self._endings.end(attempt, Stopped() if self._stop.is_set() else error)

    def _prepare(self, attempt: Attempt) -> None:
        job = attempt.job
        if self._stop.is_set():
            raise Stopped
        if not self._jobs.runs(job.id):
            raise Overtaken
        path = self._files.path(attempt.document.id, job.version)
        if not path.exists():
            if not self._jobs.runs(job.id):
                raise Overtaken
            raise Malformed("The original of this document is missing; upload it again.")
        attempt.prepared = self._pipeline.prepare(
            path,
            filename=attempt.document.filename,
            password=self._passwords.of(job.id),
            on_progress=progress_of(self._jobs, job, self._stop),
        )
