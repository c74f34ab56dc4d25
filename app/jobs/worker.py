"""The ingestion worker: parser threads and one embedding thread that take queued jobs through the pipeline."""

import threading
import time

from app.db.jobs import JobRepository
from app.documents.files import DocumentFiles
from app.documents.indexes import Indexes
from app.documents.passwords import Passwords
from app.jobs.attempt import Billing, Stopped
from app.jobs.claim_queue import ClaimQueue
from app.jobs.embed_queue import EmbedQueue
from app.jobs.embed_stage import EmbedStage
from app.jobs.outcomes import Outcomes
from app.jobs.parse_stage import IDLE_SECONDS, ParseStage
from app.telemetry.logs import logger
from app.telemetry.metrics import Metrics
from app.telemetry.stations import Instruments
from app.usage.ledger.ledger import Ledger
from ingestion.pipeline import Pipeline
from retrieval.ports import Embedder

_STOP_SECONDS = 10.0
_WAITING_BLOCKS = 2  # of passages that wait to be embedded: enough to keep the embedder busy
_WAITING_DOCUMENTS = 512


class Worker:
    """The threads of ingestion; `start` and `stop` it once.

    Files are parsed by `parsers` threads, each with a parser process, and embedded by one more, so that parsing and
    embedding overlap. A document becomes visible in a single commit. After a crash its job runs again and embeds only
    the blocks that were not finished (docs/adr/0040).

    Example:
        >>> worker = Worker(jobs=jobs, files=files, pipeline=pipeline, embedder=embedder, indexes=indexes, ...)
        >>> worker.start()
        >>> worker.wake()  # after each upload
        >>> worker.stop()
    """

    def __init__(
        self,
        *,
        jobs: JobRepository,
        files: DocumentFiles,
        pipeline: Pipeline,
        embedder: Embedder,
        indexes: Indexes,
        ledger: Ledger,
        metrics: Metrics,
        boot_id: str,
        passwords: Passwords | None = None,
        parsers: int = 1,
        instruments: Instruments | None = None,
    ) -> None:
        assert parsers > 0, "at least one thread parses"
        passwords = Passwords() if passwords is None else passwords  # an empty one is false
        instruments = instruments or Instruments(metrics)
        billing = Billing(ledger, embedder)
        self._stop = threading.Event()
        self._indexes = indexes
        self._claims = ClaimQueue(jobs, boot_id, parsers=parsers)
        self._outcomes = Outcomes(jobs=jobs, billing=billing, passwords=passwords, metrics=metrics)
        most = _WAITING_BLOCKS * pipeline.block_passages
        self._queue = EmbedQueue(most_passages=most, most_documents=_WAITING_DOCUMENTS)
        self._embed_stage = EmbedStage(
            jobs=jobs,
            files=files,
            pipeline=pipeline,
            indexes=indexes,
            billing=billing,
            queue=self._queue,
            outcomes=self._outcomes,
            instruments=instruments,
            stop=self._stop,
        )
        parse_stage = ParseStage(
            jobs=jobs,
            files=files,
            passwords=passwords,
            pipeline=pipeline,
            claims=self._claims,
            queue=self._queue,
            outcomes=self._outcomes,
            instruments=instruments,
            stop=self._stop,
        )
        self._threads = [
            threading.Thread(target=self._embed, name="footnote-ingestion", daemon=True),
            *(
                threading.Thread(target=parse_stage.run, name=f"footnote-reading-{number}", daemon=True)
                for number in range(1, parsers + 1)
            ),
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads and put unfinished jobs back into the queue; waits at most 10 s."""
        self._stop.set()
        unstarted = [*self._claims.close(), *self._queue.close()]
        deadline = time.monotonic() + _STOP_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=max(0.0, deadline - time.monotonic()))
        for attempt in unstarted:
            self._outcomes.end(attempt, Stopped())
        self._outcomes.write()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def wake(self) -> None:
        """Look for new jobs now."""
        self._claims.wake()

    def alive(self) -> bool:
        """Whether all threads run; after `stop`, whether the embedding thread still does."""
        threads = self._threads[:1] if self._stop.is_set() else self._threads
        return all(thread.is_alive() for thread in threads)

    def _embed(self) -> None:
        while not self._stop.is_set():
            try:
                if not self._outcomes.write():
                    self._stop.wait(IDLE_SECONDS)
                    continue
                if self._embed_stage.turn(seconds=IDLE_SECONDS):
                    continue
                self._indexes.rest()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
                logger().error("ingestion.worker", error=type(error).__name__, exc_info=error)
                self._stop.wait(IDLE_SECONDS)
        self._embed_stage.close()
