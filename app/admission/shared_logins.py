"""Failed authentications by client address, counted in the database that several processes share.

The windows are those of rate limits (`app.admission.rate_rows`). Each process counts in its own memory as well, and
asks the database only about credentials that it does not know: a caller with a good key costs a look in an hour.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import sqlalchemy as sa
from cachetools import LRUCache

from app.admission.failed_logins import FailedLogins, network_of
from app.admission.rate_rows import Counted, Look, RateRows
from app.admission.sliding_windows import RateLimitState
from app.db.session import Database
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger

_LOOKUPS = 4  # of the database's 30 connections, as many as lookups of keys have
_MOST_NETWORKS = 10_000


@dataclass(frozen=True, slots=True)
class _Known:
    """The failures of a network as this process last saw them, at a second of its monotonic clock.

    Until `refused_until` the network has too many, whatever comes in.
    """

    counted: Counted
    at: float
    refused_until: float


class SharedFailedLogins:
    """A `LoginBrake` over all processes: N of them together refuse an address after as many failures as one does.

    Credentials are exempt in the process where they were valid. Guesses that are being looked up at the same moment
    pass together, as in one process: what has been answered with a refusal is counted.

    Example:
        >>> brake = SharedFailedLogins(FailedLogins(20), database)
        >>> await brake.checked("192.0.2.1", "Bearer guess")
    """

    def __init__(
        self,
        own: FailedLogins,
        database: Database,
        *,
        rows: RateRows | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Do nothing yet.

        Args:
            own: Counts those of this process, and has the limit.
            database: Of all processes.
            rows: The counters; by the database's clock if None.
            monotonic: Seconds by which what was seen grows older.
        """
        self._own = own
        self._database = database
        self._rows = RateRows() if rows is None else rows
        self._monotonic = monotonic
        self._known: LRUCache[str, _Known] = LRUCache(_MOST_NETWORKS)
        self._threads = anyio.CapacityLimiter(_LOOKUPS)

    async def checked(self, address: str, credentials: str) -> None:
        """See `LoginBrake.checked`. Where the database cannot be reached, this process's own count decides."""
        self._own.check(address, credentials)
        if self._own.trusts(address, credentials):
            return
        network = network_of(address)
        known = self._known.get(network)
        if known is None or known.refused_until <= self._monotonic():
            known = await anyio.to_thread.run_sync(self._look, network, limiter=self._threads)
            self._note(network, known)
        if known is not None and (wait_s := known.refused_until - self._monotonic()) > 0:
            raise self._own.refusal(wait_s=wait_s)

    async def counted(self, address: str) -> None:
        """See `LoginBrake.counted`."""
        self._own.failed(address)
        network = network_of(address)
        self._note(network, await anyio.to_thread.run_sync(self._count, network, limiter=self._threads))

    def succeeded(self, address: str, credentials: str) -> None:
        """See `LoginBrake.succeeded`: it holds in this process."""
        self._own.succeeded(address, credentials)

    def state(self, address: str) -> RateLimitState:
        """See `LoginBrake.state`: as this process last saw it."""
        own, known = self._own.state(address), self._known.get(network_of(address))
        reset_s = 0.0 if known is None else known.counted.reset_s - (self._monotonic() - known.at)
        if known is None or reset_s <= 0:
            return own
        shared = self._own.state_of(known.counted.used, reset_s)
        return own if own.remaining < shared.remaining else shared

    def _look(self, network: str) -> _Known | None:
        """The count of a network; None where the database cannot be reached."""
        counter = _counter(network)
        try:
            with self._database.read() as connection:
                return self._seen(connection, counter, self._rows.look_in(connection, [counter], locks=()))
        except StoreUnavailable:
            return None  # the lookup of the key will say so

    def _count(self, network: str) -> _Known | None:
        """Count a failure, unless the limit is reached; None where the database cannot be written."""
        counter = _counter(network)
        try:
            with self._database.write() as connection:
                look = self._rows.look_in(connection, [counter], locks=[counter])
                if look.of(counter).used < self._own.limit:
                    self._rows.add_in(connection, [counter], 1, grain=look.grain)
                    look = self._rows.look_in(connection, [counter], locks=())
                return self._seen(connection, counter, look)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("failed_logins.not_counted", error=type(error).__name__)
            return None

    def _seen(self, connection: sa.Connection, counter: str, look: Look) -> _Known:
        now = self._monotonic()
        wait_s = self._rows.seconds_until(connection, counter, 1, limit=self._own.limit, look=look)
        return _Known(look.of(counter), at=now, refused_until=now + wait_s)

    def _note(self, network: str, known: _Known | None) -> None:
        if known is not None:
            self._known[network] = known


def _counter(network: str) -> str:
    return f"failed-logins/{network}"
