"""Tokens a minute: what calls take of their callers' limits, told by the ledger."""

from collections import OrderedDict
from threading import Lock

import sqlalchemy as sa

from app.admission.rates import Rates, Tokens
from app.types import Operation, Reservation
from app.usage.ledger.entry import ADJUSTMENT, Entry

_MOST_OPEN = 100_000  # calls that were reserved and not settled


class TokenBook:
    """A `Book` that keeps nothing: the most a call can take is counted when it is reserved, what it took when it ends.

    Ingestion is not counted: it has no caller who waits, and its pace is the worker's. A transaction that fails after
    this book leaves its tokens counted until they leave the window.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._open: OrderedDict[str, Tokens] = OrderedDict()
        self._lock = Lock()

    def reserve_in(
        self,
        connection: sa.Connection,  # noqa: ARG002 - the port's
        reservation: Reservation,
        *,
        at: int,  # noqa: ARG002 - the port's
        most_pico: int | None,  # noqa: ARG002 - the port's
    ) -> None:
        """See `Book.reserve_in`.

        Raises:
            RateLimited: A limit has no room for the call.
        """
        if reservation.operation is Operation.EMBED_DOC:
            return
        most = reservation.input_tokens + reservation.max_output_tokens
        taken = self._rates.take(reservation.principal, most)
        if taken is not None:
            with self._lock:
                self._open[reservation.event_id] = taken
                while len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:  # noqa: ARG002 - the port's
        """See `Book.settle_in`."""
        if entry.status == ADJUSTMENT:
            return
        with self._lock:
            taken = self._open.pop(entry.event_id, None)
        if taken is not None:
            self._rates.correct(taken, entry.input_tokens + entry.output_tokens)
