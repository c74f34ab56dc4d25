"""Counts the tokens of model calls against the limits of their callers, in the transactions of the ledger."""

import threading
from typing import Any, Protocol, TypeAlias

import sqlalchemy as sa
from cachetools import FIFOCache

from app.types import Operation, Principal, Reservation
from app.usage.ledger.entry import ADJUSTMENT, Entry

Hold: TypeAlias = Any
"""What was counted for one call: the counts hand it out and take it back, and nobody else looks into it."""

_MAX_OPEN = 100_000  # calls that are reserved and not settled


class TokenCounts(Protocol):
    """Port: counts tokens against the limits of a caller.

    Example:
        >>> hold = counts.hold_in(connection, principal, 900)
        >>> counts.settle_in(connection, hold, 120)
    """

    def hold_in(self, connection: sa.Connection, principal: Principal, amount: int) -> Hold | None:
        """Count the most tokens that a call can use, before it runs; None if no limit counts them.

        Raises:
            RateLimited: A limit has less than `amount` left. Nothing was counted.
        """
        ...

    def settle_in(self, connection: sa.Connection, hold: Hold, used: int) -> None:
        """Replace the amount of `hold` by the tokens that the call used."""
        ...


class TokenLimiter:
    """A `LedgerObserver` that counts the tokens of calls against `tokens_per_minute`.

    A reserved call counts with the most it can use, a settled one with what it used. Ingestion is not counted: no
    caller waits for it, and the worker sets its pace. What another process settles, after this one died, stays counted
    with its most until it leaves the window.

    Example:
        >>> ledger = Ledger(database, boot_id, observers=(Budgets(), TokenLimiter(Rates(quotas))))
    """

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = counts
        self._open: FIFOCache[str, Hold] = FIFOCache(_MAX_OPEN)
        self._lock = threading.Lock()

    def reserve_in(
        self,
        connection: sa.Connection,
        reservation: Reservation,
        *,
        at: int,  # noqa: ARG002 - the port's
        most_pico: int | None,  # noqa: ARG002 - the port's
    ) -> None:
        """See `LedgerObserver.reserve_in`.

        Raises:
            RateLimited: A limit has no room for the call.
        """
        if reservation.operation is Operation.EMBED_DOC:
            return
        most = reservation.input_tokens + reservation.max_output_tokens
        hold = self._counts.hold_in(connection, reservation.principal, most)
        if hold is not None:
            with self._lock:
                self._open[reservation.event_id] = hold

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:
        """See `LedgerObserver.settle_in`."""
        if entry.status == ADJUSTMENT:
            return
        with self._lock:
            hold = self._open.pop(entry.event_id, None)
        if hold is not None:
            self._counts.settle_in(connection, hold, entry.measures.total_tokens)
