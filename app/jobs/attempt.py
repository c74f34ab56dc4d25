"""One try at a job, from its claim to its end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import sqlalchemy as sa

from app.errors import BudgetExceeded, StorageFull, StoreUnavailable
from app.ids import new_id
from app.telemetry.stations import Work
from app.types import Document, Job, Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.budgets.repository import WAITING_CODE
from app.usage.ledger.ledger import Ledger
from ingestion.errors import IngestionError, ParserCrashed
from ingestion.pipeline import Prepared
from retrieval.ports import Embedder


@dataclass(slots=True, eq=False)
class Attempt:
    """What a worker knows of a claimed job; filled in by the one thread that has it at the moment.

    `event_id` names its ledger row once that is reserved. Of the tokens reserved, `read_tokens` is what the
    embedder has read, `kept_tokens` the part of it that a next attempt need not read again.
    """

    job: Job
    document: Document
    prepared: Prepared | None = None
    event_id: str | None = None
    read_tokens: int = 0
    kept_tokens: int = 0
    work: Work = field(default_factory=Work)

    @property
    def passages(self) -> int:
        """How many passages there are to embed."""
        return len(self.ready.passages)

    @property
    def is_large(self) -> bool:
        """Whether it is embedded by itself, block by block."""
        return len(self.ready.blocks) > 1

    @property
    def ready(self) -> Prepared:
        """What is to be embedded."""
        assert self.prepared is not None, "it has been read"
        return self.prepared


class Stopped(Exception):
    """The process is shutting down, or another embedder takes over; the job goes back to the queue."""


class Overtaken(Exception):
    """The job was cancelled, its document deleted, or a newer version uploaded: its work is no longer wanted."""


FIRST_SECONDS = 2.0
LONGEST_SECONDS = 300.0
BUDGET_SECONDS = 60.0
"""The least wait for a budget's next period: one of a minute may end now and be full at once."""
PARSER_ATTEMPTS = 2
"""How often a file is given to a parser that dies of it: once may have been for want of memory, twice is the file."""


def delay_after(error: Exception, *, attempts: int, clock: Callable[[], float] = time.time) -> float | None:
    """Seconds until a job is tried again that failed with `error` at its `attempts`th try; None: never.

    The delay doubles from try to try up to five minutes. A store that is full or out of reach is tried for as
    long as that takes: the file was acknowledged, and whoever does not want it any more cancels the job. A budget
    is waited for until it begins again, if it does. `clock` gives Unix seconds.
    """
    assert attempts >= 1, "it was tried"
    if isinstance(error, BudgetExceeded):
        return None if error.reset_at is None else max(BUDGET_SECONDS, error.reset_at - clock())
    if isinstance(error, ParserCrashed) and attempts >= PARSER_ATTEMPTS:
        return None
    if not isinstance(error, ParserCrashed | StorageFull | StoreUnavailable):
        return None
    return float(min(FIRST_SECONDS * 2 ** min(attempts - 1, 30), LONGEST_SECONDS))


def reason(error: Exception) -> tuple[str, str]:
    """A stable code and a sentence for people; errors nobody foresaw say nothing about their cause."""
    match error:
        case IngestionError():
            return error.code, str(error)
        case StorageFull():
            return "insufficient-storage", "The disk had no room for this document's text."
        case BudgetExceeded():
            if error.reset_at is None:
                return WAITING_CODE, "A budget has no room for this document, and none will come by itself."
            return WAITING_CODE, "A budget has no room for this document before its next period."
        case StoreUnavailable():
            return "store-unavailable", "The database could not be reached or was locked."
    return "internal-error", "Something went wrong on our side while reading this document."


class Billing:
    """Writes down what embedding costs, in the name of whoever uploaded the document."""

    def __init__(self, ledger: Ledger, embedder: Embedder) -> None:
        self._ledger = ledger
        self._embedder = embedder

    def reserve_in(self, connection: sa.Connection, attempt: Attempt, *, tokens: int) -> str:
        """Reserve in the caller's transaction; the row's id, the attempt's once that is committed.

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
        """Settle what was reserved.

        Raises:
            StoreUnavailable, StorageFull: Nothing was written; settle again.
        """
        assert attempt.event_id is not None, "something was reserved"
        self._ledger.settle(attempt.event_id, Settlement(status=status, input_tokens=tokens))

    def settle_in(self, connection: sa.Connection, attempt: Attempt, status: UsageStatus, *, tokens: int) -> None:
        """Settle what was reserved, if anything was, in the caller's transaction."""
        if attempt.event_id is not None:
            self._ledger.settle_in(connection, attempt.event_id, Settlement(status=status, input_tokens=tokens))
