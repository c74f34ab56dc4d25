"""The ledger rows of ingestions: reserved before the first token, settled once, in the transactions of their jobs.

Whatever happens, the rows of a job add up to what its document cost to embed: an attempt that is to be gone on
with pays for the blocks that are kept, the next one for the rest.
"""

import sqlalchemy as sa

from app.ids import new_id
from app.jobs.attempt import Attempt
from app.types import Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder


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
