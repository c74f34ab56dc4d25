"""Takes queued documents through the pipeline in the background: several are read while one thread embeds."""

import threading
import time

from app.db.jobs import JobRepository
from app.documents.originals import FileStore
from app.documents.passwords import Passwords
from app.documents.vector_index import LiveVectorIndex
from app.documents.word_index import LiveWordIndex
from app.jobs.attempt import Billing, Stopped
from app.jobs.claimed import Claimed
from app.jobs.embedding import Embedding
from app.jobs.endings import Endings
from app.jobs.reading import IDLE_SECONDS, Reading
from app.jobs.ready import Ready
from app.telemetry.logs import logger
from app.telemetry.metrics import Metrics
from app.telemetry.stations import Instruments
from app.usage.ledger.ledger import Ledger
from ingestion.pipeline import Pipeline
from retrieval.ports import Embedder

_STOP_SECONDS = 10.0
_WAITING_BLOCKS = 2  # of passages that are read and wait: enough that the embedder never waits for a parser
_WAITING_DOCUMENTS = 512


class Worker:
    """The threads of ingestion; `start` and `stop` it once.

    Files are read by `parsers` threads, each waiting for a parser process, and embedded by one more, so that
    neither waits for the other. Nothing is visible before the single commit: a job cut off by a crash runs
    again, and only the blocks it had not finished are embedded again (docs/adr/0040).
    """

    def __init__(
        self,
        *,
        jobs: JobRepository,
        files: FileStore,
        pipeline: Pipeline,
        embedder: Embedder,
        index: LiveVectorIndex,
        lexical: LiveWordIndex,
        ledger: Ledger,
        metrics: Metrics,
        boot_id: str,
        passwords: Passwords | None = None,
        parsers: int = 1,
        instruments: Instruments | None = None,
    ) -> None:
        assert parsers > 0, "somebody has to read"
        passwords = Passwords() if passwords is None else passwords  # an empty one is false
        instruments = instruments or Instruments(metrics)
        billing = Billing(ledger, embedder)
        self._stop = threading.Event()
        self._index = index
        self._lexical = lexical
        self._claimed = Claimed(jobs, boot_id)
        self._endings = Endings(jobs=jobs, billing=billing, passwords=passwords, metrics=metrics)
        most = _WAITING_BLOCKS * pipeline.block_passages
        self._ready = Ready(most_passages=most, most_documents=_WAITING_DOCUMENTS)
        self._embedding = Embedding(
            jobs=jobs,
            files=files,
            pipeline=pipeline,
            index=index,
            lexical=lexical,
            billing=billing,
            ready=self._ready,
            endings=self._endings,
            instruments=instruments,
            stop=self._stop,
        )
        reading = Reading(
            jobs=jobs,
            files=files,
            passwords=passwords,
            pipeline=pipeline,
            claimed=self._claimed,
            ready=self._ready,
            endings=self._endings,
            instruments=instruments,
            stop=self._stop,
        )
        self._threads = [
            threading.Thread(target=self._embed, name="footnote-ingestion", daemon=True),
            *(
                threading.Thread(target=reading.run, name=f"footnote-reading-{number}", daemon=True)
                for number in range(1, parsers + 1)
            ),
        ]

    def start(self) -> None:
        """Begin taking jobs."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Leave the jobs at hand to be gone on with at the next start."""
        self._stop.set()
        unbegun = [*self._claimed.close(), *self._ready.close()]
        deadline = time.monotonic() + _STOP_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=max(0.0, deadline - time.monotonic()))
        for attempt in unbegun:
            self._endings.end(attempt, Stopped())
        self._endings.write()

    def wake(self) -> None:
        """There is new work."""
        self._claimed.wake()

    def alive(self) -> bool:
        """Whether its threads run; after `stop`, whether the one still does that writes vectors."""
        threads = self._threads[:1] if self._stop.is_set() else self._threads
        return all(thread.is_alive() for thread in threads)

    def _embed(self) -> None:
        while not self._stop.is_set():
            try:
                if not self._endings.write():
                    self._stop.wait(IDLE_SECONDS)
                    continue
                if self._embedding.turn(seconds=IDLE_SECONDS):
                    continue
                self._index.save_if_changed()
                self._lexical.save_if_changed()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
                logger().error("ingestion.worker", error=type(error).__name__, exc_info=error)
                self._stop.wait(IDLE_SECONDS)
        self._embedding.close()
