"""One attempt at an ingestion job: its state, its retry delay, its error code, and its rows in the ledger.

Embedding is billed per attempt. Tokens are reserved before the first one is embedded and settled once, in the
transaction that changes the job. An attempt that will be retried pays for the blocks it kept; the retry pays for the
rest. So does an attempt that lost its job to another claim. So the ledger rows of a job add up to what embedding its
document cost.
"""

from dataclasses import dataclass, field

import sqlalchemy as sa

from app.clock import pause_after
from app.db.document_rows import ClaimedJob
from app.db.job_queue import is_lost
from app.db.jobs import JobRepository
from app.documents.files import DocumentFiles
from app.documents.passwords import JobPasswords, Passwords
from app.errors import BudgetExceeded, StorageFull, StoreUnavailable
from app.ids import new_id
from app.telemetry.timing import Activity, Instruments
from app.types import Document, Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.budgets.repository import WAITING_CODE
from app.usage.ledger.ledger import Ledger
from ingestion.errors import DiskFailed, IngestionError, NoRoom, ParserCrashed
from ingestion.pipeline import Pipeline, ReadyVersion
from retrieval.ports import Embedder


@dataclass(slots=True, eq=False)
class Attempt:
    """The state of one attempt. Only one thread at a time holds it, so it needs no lock.

    `event_id` is the id of its ledger row, once tokens are reserved. `read_tokens` counts the tokens embedded so far;
    `kept_tokens` is the part of them in checkpoints, which a retry does not embed again.
    """

    job: ClaimedJob
    document: Document
    prepared: ReadyVersion | None = None
    event_id: str | None = None
    read_tokens: int = 0
    kept_tokens: int = 0
    work: Activity = field(default_factory=Activity)

    @property
    def passages(self) -> int:
        """The number of passages to embed."""
        return len(self.ready.passages)

    @property
    def is_large(self) -> bool:
        """Whether the document has several blocks and is embedded alone, block by block."""
        return len(self.ready.blocks) > 1

    @property
    def ready(self) -> ReadyVersion:
        """The parsed document; only after the parse stage."""
        assert self.prepared is not None, "the parse stage sets it"
        return self.prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """What attempts are made with, the same in both stages: rows, files, the pipeline of one embedder, and the bill.

    `passwords` open protected files. `instruments` time the stages, and have the metrics that count outcomes.
    """

    jobs: JobRepository
    files: DocumentFiles
    pipeline: Pipeline
    billing: "Billing"
    instruments: Instruments
    passwords: JobPasswords = field(default_factory=Passwords)


class Stopped(Exception):
    """The process is shutting down, or the embedder is being replaced; the job goes back to the queue."""


class Overtaken(Exception):
    """The job no longer runs under the attempt's claim, and its result is discarded.

    It was cancelled, its document was deleted or replaced by a newer version, or the job was claimed again.
    """


FIRST_SECONDS = 2.0
LONGEST_SECONDS = 300.0
BUDGET_SECONDS = 60.0
"""Shortest wait for the next period of a budget: a period of one minute may begin now and be spent at once."""
PARSER_ATTEMPTS = 2
"""Attempts at a file whose parser crashed: the first crash may be a lack of memory, the second is the file's fault."""


def delay_after(error: Exception, *, attempts: int) -> float | None:
    """Seconds until the next retry of a job that failed with `error`; None: no retry.

    The delay doubles with each attempt, up to five minutes. A full or failing disk or an unreachable database is
    retried without limit, because the upload was acknowledged; the caller can cancel the job. An exceeded budget is
    retried at its next period, if there is one.

    Args:
        error: Why the attempt failed.
        attempts: Attempts made so far, at least 1.
    """
    assert attempts >= 1, "an attempt has failed"
    if isinstance(error, BudgetExceeded):
        return None if error.wait_s is None else max(BUDGET_SECONDS, error.wait_s)
    if isinstance(error, ParserCrashed) and attempts >= PARSER_ATTEMPTS:
        return None
    if not isinstance(error, ParserCrashed | NoRoom | DiskFailed | StorageFull | StoreUnavailable):
        return None
    return pause_after(attempts, first_s=FIRST_SECONDS, longest_s=LONGEST_SECONDS)


def reason(error: Exception) -> tuple[str, str]:
    """A stable error code and a sentence for the user. The cause of an unexpected error is not shown."""
    match error:
        case IngestionError():
            return error.code, str(error)
        case StorageFull():
            return "insufficient-storage", "The disk had no room for this document's text."
        case BudgetExceeded():
            if error.wait_s is None:
                return WAITING_CODE, "A budget has no room for this document, and it has no next period."
            return WAITING_CODE, "A budget has no room for this document before its next period."
        case StoreUnavailable():
            return "store-unavailable", "The database or the original could not be reached, or the disk failed."
    return "internal-error", "An internal error occurred while reading this document."


class Billing:
    """Reserves and settles the tokens of embedding in the ledger, for the user and key that uploaded the document."""

    def __init__(self, ledger: Ledger, embedder: Embedder) -> None:
        self._ledger = ledger
        self._embedder = embedder

    def reserve_in(self, connection: sa.Connection, attempt: Attempt, *, tokens: int) -> str:
        """Reserve tokens in the caller's transaction; returns the id of the ledger row, the attempt's `event_id`.

        Raises:
            BudgetExceeded: Nothing was written, and the transaction can go on.
        """
        job, info = attempt.job, self._embedder.info
        event_id = f"{job.id}:{new_id('run')}"
        reservation = Reservation(
            event_id=event_id,
            request_id=job.id,
            operation=Operation.EMBED_DOC,
            principal=Principal(job.tenant_id, job.user_id, job.key_id, Role.MEMBER),
            endpoint="ingest",
            model=info.model,
            tokenizer_revision=info.revision,
            input_tokens=tokens,
            collection_ids=(attempt.document.collection_id,),
        )
        self._ledger.reserve_in(connection, reservation)
        return event_id

    def settle(self, attempt: Attempt, status: UsageStatus, *, tokens: int) -> None:
        """Settle the attempt's reservation in a transaction of its own.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written; call again.
        """
        assert attempt.event_id is not None, "tokens were reserved"
        self._ledger.settle(attempt.event_id, Settlement(status=status, input_tokens=tokens))

    def settle_in(self, connection: sa.Connection, attempt: Attempt, status: UsageStatus, *, tokens: int) -> None:
        """Settle the attempt's reservation, if it has one, in the caller's transaction."""
        if attempt.event_id is not None:
            self._ledger.settle_in(connection, attempt.event_id, Settlement(status=status, input_tokens=tokens))

    def settle_last_in(self, connection: sa.Connection, attempt: Attempt, status: UsageStatus) -> None:
        """As `settle_in`, for all that was read: no retry follows, except where the job is another claim's by now."""
        if attempt.event_id is not None:
            tokens = attempt.kept_tokens if is_lost(connection, attempt.job) else attempt.read_tokens
            self.settle_in(connection, attempt, status, tokens=tokens)
