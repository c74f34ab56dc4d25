"""The outcomes of attempts: indexed, queued again, postponed, cancelled, lost, or failed with an error code."""

import threading
from collections.abc import Callable
from functools import partial

import sqlalchemy as sa

from app.disk import disk_refusal
from app.errors import BudgetExceeded, StorageFull, StoreUnavailable
from app.jobs.attempt import Attempt, Ingestion, Overtaken, Stopped, delay_after, reason
from app.telemetry.logs import logger
from app.types import UsageStatus
from ingestion.errors import IngestionError


class Outcomes:
    """Writes the outcome of each attempt and settles its ledger row, in one transaction.

    When the database cannot be written, the outcome is kept in memory and `write` retries it. When the process dies
    first, its next start queues the job again.
    """

    def __init__(self, ingestion: Ingestion) -> None:
        self._jobs = ingestion.jobs
        self._billing = ingestion.billing
        self._passwords = ingestion.passwords
        self._metrics = ingestion.instruments.metrics
        self._lock = threading.Lock()
        self._unwritten: list[Callable[[], object]] = []

    @property
    def pending(self) -> bool:
        """Whether an outcome could not be written yet."""
        return bool(self._unwritten)

    def write(self) -> bool:
        """Retry the pending outcomes; returns whether all of them are written."""
        with self._lock:
            unwritten, self._unwritten = self._unwritten, []
        for outcome in unwritten:
            self._try(outcome)
        return not self.pending

    def end(self, attempt: Attempt, error: Exception) -> None:
        """Write the outcome of an attempt that ended with `error`."""
        match error:
            case Stopped():
                attempt.work.span.end(error="stopped")
                also = self._settled(attempt, UsageStatus.SERVER_ABORT, tokens=attempt.kept_tokens)
                self._try(partial(self._jobs.release, attempt.job, also=also))
            case Overtaken():
                self.overtaken(attempt)
            case _:
                self._fail_or_postpone(attempt, error)

    def overtaken(self, attempt: Attempt) -> None:
        """End an attempt whose job was cancelled, replaced or claimed again: only its ledger row is settled."""
        self._try(partial(self._settle_overtaken, attempt))

    def indexed(self, attempt: Attempt) -> None:
        """End an attempt whose document was indexed; the commit has written the outcome."""
        self._forget(attempt, "indexed")

    def _fail_or_postpone(self, attempt: Attempt, error: Exception) -> None:
        error = disk_refusal(error) or error
        code, detail = reason(error)
        if not isinstance(error, IngestionError | BudgetExceeded | StorageFull | StoreUnavailable):
            logger().error("ingestion.failed", job_id=attempt.job.id, error=type(error).__name__, exc_info=error)
        seconds = delay_after(error, attempts=attempt.job.attempts)
        if seconds is not None:
            also = self._settled(attempt, UsageStatus.ERROR, tokens=attempt.kept_tokens)
            postpone = partial(self._jobs.postpone, attempt.job, seconds=seconds, code=code, detail=detail, also=also)
            self._try(postpone)
            self._metrics.ingested.labels("postponed").inc()
            attempt.work.span.end(error=code)
            return
        also = partial(self._billing.settle_last_in, attempt=attempt, status=UsageStatus.ERROR)
        self._try(partial(self._jobs.fail, attempt.job, code=code, detail=detail, also=also))
        self._forget(attempt, "failed")

    def _settle_overtaken(self, attempt: Attempt) -> None:
        lost = self._jobs.is_lost(attempt.job)
        if attempt.event_id is not None:
            tokens = attempt.kept_tokens if lost else attempt.read_tokens
            self._billing.settle(attempt, UsageStatus.ERROR, tokens=tokens)
        if lost:  # the job goes on, and so its password stays
            self._end(attempt, "lost")
        else:
            self._forget(attempt, "cancelled")

    def _settled(self, attempt: Attempt, status: UsageStatus, *, tokens: int) -> Callable[[sa.Connection], object]:
        return lambda connection: self._billing.settle_in(connection, attempt, status, tokens=tokens)

    def _forget(self, attempt: Attempt, outcome: str) -> None:
        self._passwords.forget(attempt.job.id)
        self._end(attempt, outcome)

    def _end(self, attempt: Attempt, outcome: str) -> None:
        self._metrics.ingested.labels(outcome).inc()
        attempt.work.span.end(error=None if outcome == "indexed" else outcome)

    def _try(self, outcome: Callable[[], object]) -> None:
        try:
            outcome()
        except (StorageFull, StoreUnavailable) as error:
            logger().warning("ingestion.unwritten", error=type(error).__name__)
            with self._lock:
                self._unwritten.append(outcome)
