"""The parse stage: several threads extract and chunk claimed files, each with a parser process of its own."""

import threading
import time
from collections.abc import Callable

from app.db.document_rows import ClaimedJob
from app.db.jobs import JobRepository
from app.errors import StorageFull, StoreUnavailable
from app.jobs.attempt import Attempt, Ingestion, Overtaken, Stopped
from app.jobs.claim_queue import ClaimQueue
from app.jobs.embed_queue import EmbedQueue
from app.jobs.outcomes import Outcomes
from app.telemetry.logs import logger
from ingestion.errors import Malformed
from ingestion.types import StageProgress

IDLE_SECONDS = 0.5
_PROGRESS_SECONDS = 0.25  # between two reports: each is a transaction


def progress_of(jobs: JobRepository, job: ClaimedJob, stop: threading.Event) -> Callable[[StageProgress], None]:
    """A callback that writes a job's progress to the database, at most four times a second.

    It raises `Stopped` when `stop` is set, and `Overtaken` when the job no longer runs under its claim.
    """
    due = time.monotonic() + _PROGRESS_SECONDS

    def report(progress: StageProgress) -> None:
        nonlocal due
        if stop.is_set():
            raise Stopped
        if time.monotonic() < due:
            return
        due = time.monotonic() + _PROGRESS_SECONDS
        if not jobs.progress(job, progress.stage, done=progress.done, total=progress.total):
            raise Overtaken

    return report


class ParseStage:
    """The work of a parser thread: takes a claimed job, extracts and chunks its file, and queues it for embedding."""

    def __init__(
        self,
        ingestion: Ingestion,
        *,
        claims: ClaimQueue,
        queue: EmbedQueue,
        outcomes: Outcomes,
        stop: threading.Event,
    ) -> None:
        self._jobs = ingestion.jobs
        self._files = ingestion.files
        self._passwords = ingestion.passwords
        self._pipeline = ingestion.pipeline
        self._instruments = ingestion.instruments
        self._claims = claims
        self._queue = queue
        self._outcomes = outcomes
        self._stop = stop

    def run(self) -> None:
        """Parse files until the stop event is set."""
        while not self._stop.is_set():
            calls = self._claims.calls()
            attempt = self._take()
            if attempt is None:
                self._claims.wait(calls, seconds=IDLE_SECONDS)
            else:
                self._read(attempt)

    def _take(self) -> Attempt | None:
        if self._outcomes.pending:  # the database cannot be written: claim nothing new
            return None
        try:
            return self._claims.take()
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
            if not self._queue.put(attempt):
                raise Stopped
        except Exception as error:  # noqa: BLE001 - one document's failure must not stop the others
            # a parser that was killed at shutdown proves nothing about the file
            self._outcomes.end(attempt, Stopped() if self._stop.is_set() else error)

    def _prepare(self, attempt: Attempt) -> None:
        job = attempt.job
        if self._stop.is_set():
            raise Stopped
        if not self._jobs.runs(job):
            raise Overtaken
        self._files.spool.require_room()
        with self._files.local_copy(attempt.document.id, job.version) as path:
            if path is None:
                if not self._jobs.runs(job):
                    raise Overtaken
                raise Malformed("The original of this document is missing; upload it again.")
            attempt.prepared = self._pipeline.prepare(
                path,
                filename=attempt.document.filename,
                password=self._passwords.of(job.id),
                on_progress=progress_of(self._jobs, job, self._stop),
            )
