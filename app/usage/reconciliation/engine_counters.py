"""What the engine says it has done, written down beside the ledger and never derived from it.

One row a process and model: prompt tokens computed, found and generated, and requests taken, of every call there was,
an answer's or another's. What the ledger bills must add up to it (`app.usage.reconciliation.reconciliation`).
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
    """What an engine says of itself; see `generation.ports.Engine`."""

    @property
    def info(self) -> ModelInfo:
        """The loaded model."""
        ...

    def stats(self) -> EngineStats:
        """What was done since start."""
        ...


class EngineCounters:
    """Keeps one engine's row. The engine must count for itself, as one in this process does."""

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
            engine: Whose counters they are, from its first request on.
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
        """The process whose engine it is."""
        return self._boot_id

    @property
    def model(self) -> str:
        """The engine's model, as the ledger has it."""
        return self._engine.info.model

    def stats(self) -> EngineStats:
        """What the engine says now."""
        return self._engine.stats()

    def close(self) -> None:
        """Write the last of it, for good. To be called when the engine has stopped and told every observer.

        Where the database is away the row stays open, and is compared as that of a process that died.
        """
        try:
            self.flush(closed=True)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("engine_counters.unwritten", error=type(error).__name__)

    def flush(self, *, closed: bool = False) -> None:
        """Write what the engine says now; `closed` once it will say no more.

        Raises:
            StoreUnavailable, StorageFull: It cannot be written.
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
        """Write what the engine says now, unless it has done nothing since; a database that is away is logged."""
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
    """The rows of processes that still ran at `since` (Unix microseconds), oldest first."""
    query = sa.select(engine_counter).where(engine_counter.c.updated_at >= since)
    return list(connection.execute(query.order_by(engine_counter.c.started_at, engine_counter.c.model_id)))
