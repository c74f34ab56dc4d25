"""Stores the engine's own counters next to the ledger, independent of it, for reconciliation.

There is one row for each process and model: tokens prefilled, cached and generated, and requests, of every call. The
calls in the ledger must add up to them (`app.usage.reconciliation.reconciliation`).
"""

import time
from collections.abc import Callable
from typing import Protocol

import sqlalchemy as sa

from app.db.dialect import upsert
from app.db.session import Database
from app.db.tables.rollups import engine_counter
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger
from generation.types import EngineStats, ModelInfo

_COUNTS = ("prefill_tokens", "cached_tokens", "decode_tokens", "requests", "updated_at", "closed")
_PUT = upsert(engine_counter, keys=("boot_id", "model_id"), change=lambda new: {name: new[name] for name in _COUNTS})


class CountingEngine(Protocol):
    """Port: the part of `generation.ports.Engine` that counts.

    Example:
        >>> class Idle:
        ...     info = model_info
        ...     def stats(self) -> EngineStats:
        ...         return stats_of_a_remote_server()
    """

    @property
    def info(self) -> ModelInfo:
        """The loaded model."""
        ...

    def stats(self) -> EngineStats:
        """The counters since the engine was started."""
        ...


class EngineCounters:
    """Writes the row of one engine, which must run in this process and count for itself.

    Example:
        >>> counters = EngineCounters(database, engine, boot_id=boot_id)
        >>> counters.flush()
        >>> counters.close()  # after the engine has stopped
    """

    def __init__(
        self,
        database: Database,
        engine: CountingEngine,
        *,
        boot_id: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is written before the first `flush`.

        Args:
            database: Where the row is.
            engine: The engine; no request must have reached it yet.
            boot_id: The process.
            clock: Unix seconds.
        """
        self._database = database
        self._engine = engine
        self._boot_id = boot_id
        self._clock = clock
        self._started_at = self._now()
        self._written: EngineStats | None = None

    @property
    def boot_id(self) -> str:
        """The process of the engine."""
        return self._boot_id

    @property
    def model(self) -> str:
        """The engine's model, as the ledger names it."""
        return self._engine.info.model

    def stats(self) -> EngineStats:
        """The engine's counters now."""
        return self._engine.stats()

    def close(self) -> None:
        """Write the final counters. Call it after the engine has stopped and notified every observer.

        If the database is unreachable, the row stays open and is compared like that of a crashed process.
        """
        try:
            self.flush(closed=True)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("engine_counters.unwritten", error=type(error).__name__)

    def flush(self, *, closed: bool = False) -> None:
        """Write the current counters; `closed` marks them as final.

        Raises:
            StoreUnavailable, StorageFull: They cannot be written.
        """
        stats = self._engine.stats()
        counts = {
            "prefill_tokens": stats.prompt_tokens,
            "cached_tokens": stats.cached_tokens,
            "decode_tokens": stats.decode_tokens,
            "requests": stats.requests,
            "updated_at": self._now(),
            "closed": closed,
        }
        row = {"boot_id": self._boot_id, "model_id": self.model, "started_at": self._started_at, **counts}
        with self._database.write() as connection:
            connection.execute(_PUT.on(connection), row)
        self._written = stats

    def flush_if_changed(self) -> None:
        """Write the current counters if they have changed; an unreachable database is logged."""
        stats = self._engine.stats()
        if self._written is not None and _totals(stats) == _totals(self._written):
            return
        try:
            self.flush()
        except (StoreUnavailable, StorageFull) as error:  # the totals only grow: the next write has them all
            logger().warning("engine_counters.unwritten", error=type(error).__name__)

    def _now(self) -> int:
        return round(self._clock() * 1_000_000)


def _totals(stats: EngineStats) -> tuple[int, ...]:
    return (stats.prompt_tokens, stats.cached_tokens, stats.decode_tokens, stats.requests)


def counters_of(connection: sa.Connection, *, since: int) -> list[sa.Row[tuple[object, ...]]]:
    """The rows of processes that were running at `since` (Unix microseconds) or later, oldest first."""
    query = sa.select(engine_counter).where(engine_counter.c.updated_at >= since)
    return list(connection.execute(query.order_by(engine_counter.c.started_at, engine_counter.c.model_id)))
