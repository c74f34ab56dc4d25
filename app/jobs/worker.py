"""Takes queued documents one by one through the pipeline and makes each visible in one transaction."""

import threading
import time
from collections.abc import Callable

from app.db.jobs import JobRepository
from app.errors import StoreUnavailable
from app.files import FileStore
from app.identifiers import new_id
from app.index import LiveIndex
from app.lexical_index import LiveLexicalIndex
from app.telemetry import Metrics, logger
from app.types import Document, Job, Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.ledger import Ledger
from ingestion.errors import IngestionError
from ingestion.pipeline import Ingested, Pipeline
from ingestion.types import Progress
from retrieval.ports import Embedder

_IDLE_SECONDS = 0.5
_PROGRESS_SECONDS = 0.25  # between two reports: each is a transaction, and small documents come by the thousand


class Worker:
    """One background thread; `start` and `stop` it once.

    Ingestion repeats safely: nothing is visible before the single commit, so a job cut off by a
    crash simply runs again (docs/adr/0006).
    """

    def __init__(
        self,
        *,
        jobs: JobRepository,
        files: FileStore,
        pipeline: Pipeline,
        embedder: Embedder,
        index: LiveIndex,
        lexical: LiveLexicalIndex,
        ledger: Ledger,
        metrics: Metrics,
        boot_id: str,
    ) -> None:
        self._jobs = jobs
        self._files = files
        self._pipeline = pipeline
        self._embedder = embedder
        self._index = index
        self._lexical = lexical
        self._ledger = ledger
        self._metrics = metrics
        self._boot_id = boot_id
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="footnote-ingestion", daemon=True)

    def start(self) -> None:
        """Begin taking jobs."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the job at hand's current stage, or leave it to be resumed at the next start."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def wake(self) -> None:
        """There is new work."""
        self._wake.set()

    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._work_once():
                    continue
                self._index.save_if_changed()
                self._lexical.save_if_changed()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
                logger().error("ingestion.worker", error=type(error).__name__, exc_info=error)
            self._wake.wait(_IDLE_SECONDS)
            self._wake.clear()

    def _work_once(self) -> bool:
        """Take one job to its end; False when there is none."""
        try:
            claimed = self._jobs.claim(self._boot_id)
        except StoreUnavailable:
            return False
        if claimed is None:
            return False
        job, document = claimed
        try:
            self._ingest(job, document)
        except IngestionError as error:
            if self._stop.is_set():  # the parser was stopped under it: that says nothing about the file
                self._jobs.release(job.id)
            else:
                self._fail(job, error.code, str(error))
        except _Stopped:
            self._jobs.release(job.id)
        except _Overtaken:
            self._metrics.ingested.labels("cancelled").inc()
        except Exception as error:  # noqa: BLE001 - a bug in one document's path must not stop the others
            logger().error("ingestion.failed", job_id=job.id, error=type(error).__name__, exc_info=error)
            self._fail(job, "internal-error", "Something went wrong on our side while reading this document.")
        return True

    def _ingest(self, job: Job, document: Document) -> None:
        bill = _Bill(self._ledger, job, self._embedder)
        try:
            ingested = self._pipeline.run(
                self._files.path(document.id, job.version),
                filename=document.filename,
                on_progress=self._progress(job),
                before_embedding=bill.reserve,
            )
            self._commit(job, ingested)
        except BaseException:
            bill.settle(UsageStatus.ERROR)
            raise
        bill.settle(UsageStatus.COMPLETED)

    def _progress(self, job: Job) -> Callable[[Progress], None]:
        due = time.monotonic()

        def report(progress: Progress) -> None:
            nonlocal due
            if self._stop.is_set():
                raise _Stopped
            if time.monotonic() < due:
                return
            due = time.monotonic() + _PROGRESS_SECONDS
            if not self._jobs.progress(job.id, progress.stage, done=progress.done, total=progress.total):
                raise _Overtaken

        return report

    def _commit(self, job: Job, ingested: Ingested) -> None:
        result = self._jobs.commit(
            job.id,
            extraction=ingested.extraction,
            passages=ingested.passages,
            vectors=ingested.vectors,
            generation=self._index.generation,
            embedding_tokens=ingested.embedding_tokens,
        )
        if not result.written:
            raise _Overtaken
        self._index.forget(result.removed_keys)
        self._lexical.forget(result.removed_keys)
        self._index.add(result.new_keys, ingested.vectors)
        self._lexical.add(result.new_keys)
        for version in result.dropped_versions:
            self._files.remove(job.document_id, version)
        self._metrics.ingested.labels("indexed").inc()

    def _fail(self, job: Job, code: str, detail: str) -> None:
        self._jobs.fail(job.id, code=code, detail=detail)
        self._metrics.ingested.labels("failed").inc()


class _Stopped(Exception):
    """The process is shutting down; the job goes back to the queue."""


class _Overtaken(Exception):
    """The document was deleted, or a newer version was uploaded: this job's work is no longer wanted."""


class _Bill:
    """The ledger row of one job's embedding: reserved before the first batch, settled once."""

    def __init__(self, ledger: Ledger, job: Job, embedder: Embedder) -> None:
        self._ledger = ledger
        self._job = job
        self._embedder = embedder
        self._event_id: str | None = None

    def reserve(self, tokens: int) -> None:
        job, info = self._job, self._embedder.info
        self._event_id = f"{job.id}:{new_id('run')}"
        self._ledger.reserve(
            Reservation(
                event_id=self._event_id,
                request_id=job.id,
                operation=Operation.EMBED_DOC,
                principal=Principal(job.tenant_id, job.user_id, job.key_id, Role.MEMBER),
                endpoint="ingest",
                model=info.model,
                tokenizer_revision=info.revision,
                input_tokens=tokens,
            )
        )

    def settle(self, status: UsageStatus) -> None:
        if self._event_id is not None:
            self._ledger.settle(self._event_id, Settlement(status=status))
