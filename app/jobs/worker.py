"""The ingestion worker: parser threads and one embedding thread that take queued jobs through the pipeline."""

import threading
import time

from app.documents.indexes import Indexes
from app.jobs.attempt import Ingestion, Stopped
from app.jobs.claim_queue import ClaimQueue
from app.jobs.embed_queue import EmbedQueue
from app.jobs.embed_stage import EmbedStage
from app.jobs.outcomes import Outcomes
from app.jobs.parse_stage import IDLE_SECONDS, ParseStage
from app.telemetry.logs import logger

_STOP_SECONDS = 10.0
_WAITING_BLOCKS = 2  # of passages that wait to be embedded: enough to keep the embedder busy
_WAITING_DOCUMENTS = 512


class Worker:
    """The threads of ingestion; `start` and `stop` it once.

    Files are parsed by `parsers` threads, each with a parser process, and embedded by one more, so that parsing and
    embedding overlap. A document becomes visible in a single commit. After a crash its job runs again and embeds only
    the blocks that were not finished (docs/adr/0040).

    Example:
        >>> worker = Worker(ingestion, indexes=indexes, boot_id=boot_id, parsers=2)
        >>> worker.start()
        >>> worker.wake()  # after each upload
        >>> worker.stop()
    """

    def __init__(self, ingestion: Ingestion, *, indexes: Indexes, boot_id: str, parsers: int = 1) -> None:
        assert parsers > 0, "at least one thread parses"
        self._stop = threading.Event()
        self._indexes = indexes
        self._claims = ClaimQueue(ingestion.jobs, boot_id, parsers=parsers)
        self._outcomes = Outcomes(ingestion)
        most = _WAITING_BLOCKS * ingestion.pipeline.block_passages
        self._queue = EmbedQueue(most_passages=most, most_documents=_WAITING_DOCUMENTS)
        self._embed_stage = EmbedStage(
            ingestion, indexes=indexes, queue=self._queue, outcomes=self._outcomes, stop=self._stop
        )
        parse_stage = ParseStage(
            ingestion, claims=self._claims, queue=self._queue, outcomes=self._outcomes, stop=self._stop
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
