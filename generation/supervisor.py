"""Restarts an engine that died, with growing pauses."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from generation.backoff import Backoff
from generation.errors import EngineStopped
from generation.ports import Engine, Observer, Stream
from generation.types import EngineStats, GenerationRequest, Histogram, ModelInfo

logger = logging.getLogger("footnote.generation")

_NOW = frozenset(
    {
        "waiting",
        "waiting_tokens",
        "running",
        "capacity",
        "free_blocks",
        "used_blocks",
        "cached_blocks",
        "block_tokens",
        "block_bytes",
        "path",
    }
)
"""The fields of `EngineStats` that describe the moment; all others are totals."""

_RESTARTS = Backoff(first_s=0.5, longest_s=30.0)


def collect_all() -> None:
    """Collect the garbage of the whole process, frozen objects included; every thread stands still meanwhile.

    Threads, streams and callbacks tie an engine into cycles that only the collector frees, and not while it is
    frozen. The next engine needs the memory of this one's cache.
    """
    gc.unfreeze()
    gc.collect()


class SupervisedEngine:
    """A `ports.Engine` over a succession of engines, one at a time.

    An engine whose `alive` turns false without our `close` has died: it has ended its own streams by
    then. A thread notices, closes it, and asks the factory for the next one; meanwhile
    `alive` is false and `submit` refuses. Totals in `stats` cover all of them and never go down.
    """

    def __init__(
        self,
        factory: Callable[[], Engine],
        *,
        backoff: Backoff = _RESTARTS,
        healthy_s: float = 60.0,
        watch_s: float = 0.1,
        patience_s: float = 5.0,
        free: Callable[[], object] = collect_all,
    ) -> None:
        """Make the first engine in the calling thread, and supervise it.

        Args:
            factory: Makes an engine. Its exception is raised now; at a restart it is logged and
                the factory is called again.
            backoff: The pauses between the end of an engine and the attempts to replace it.
            healthy_s: Seconds an engine must have served for the pauses to start over.
            watch_s: Seconds between two polls of the engine.
            patience_s: Seconds `close` waits for a restart that is in progress.
            free: Frees the memory of the engine that died, before the factory is called.
        """
        self._factory = factory
        self._backoff = backoff
        self._healthy_s = healthy_s
        self._watch_s = watch_s
        self._patience_s = patience_s
        self._free = free
        engine = factory()
        self._lock = threading.Lock()  # guards the next four
        self._engine: Engine | None = engine
        self._info = engine.info
        self._before: EngineStats | None = None  # totals of the engines before this one
        self._restarts = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="footnote-supervisor", daemon=True)
        self._thread.start()

    @property
    def info(self) -> ModelInfo:
        """The model being served, or served last."""
        with self._lock:
            return self._info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        """See `ports.Engine.submit`."""
        with self._lock:
            engine = self._engine
        if engine is not None and engine.alive():
            with suppress(EngineStopped):  # it died, or was closed, since the check above
                return engine.submit(request, observer=observer)
        if self._closing.is_set():
            raise EngineStopped("The generation engine is not running.")
        raise EngineStopped("The generation engine stopped and is restarting; try again in a few seconds.")

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        """See `ports.Engine.cached_tokens`; 0 while there is no engine."""
        with self._lock:
            engine = self._engine
        return engine.cached_tokens(prompt, salt=salt) if engine is not None else 0

    def stats(self) -> EngineStats:
        """See `ports.Engine.stats`; totals are since the first engine was started."""
        with self._lock:  # the engine is asked inside, or a total could be seen that is then buried smaller
            current = self._engine.stats() if self._engine is not None else None
            total = _joined(self._before, current)
            return replace(total, restarts=total.restarts + self._restarts)

    def alive(self) -> bool:
        """Whether an engine is there and runs; false during a restart."""
        with self._lock:
            engine = self._engine
        return engine is not None and engine.alive()

    def close(self) -> None:
        """See `ports.Engine.close`. Idempotent.

        A restart in progress is given a few seconds; an engine that comes out of it later is closed
        as it comes.
        """
        self._closing.set()
        with self._lock:
            engine = self._engine
        if engine is not None:
            engine.close()
        self._thread.join(self._patience_s)
        if self._thread.is_alive():
            logger.warning("closed while an engine was being restarted")

    # The supervisor's thread, from here on.

    def _supervise(self) -> None:
        failures = 0
        started_at = time.monotonic()
        while self._watch():
            logger.error("the engine died; it will be restarted")
            if time.monotonic() - started_at >= self._healthy_s:
                failures = 0
            self._bury()
            self._free()
            restarted = False
            while not restarted:
                failures += 1
                if self._closing.wait(self._backoff.after(failures)):
                    return
                restarted = self._restart()
            started_at = time.monotonic()

    def _watch(self) -> bool:
        """Wait until the engine has died (true) or we are closed (false)."""
        while not self._closing.wait(self._watch_s):
            if not self.alive():
                return not self._closing.is_set()
        return False

    def _bury(self) -> None:
        """Close the dead engine, and keep its totals."""
        engine = self._engine
        assert engine is not None, "there is nothing to bury"
        try:
            engine.close()
        except BaseException:  # a panic in a native library is no Exception
            logger.exception("the dead engine could not be closed")
        with self._lock:
            self._before = _at_rest(_joined(self._before, engine.stats()))
            self._engine = None

    def _restart(self) -> bool:
        """Whether there is an engine again, or none is wanted any more."""
        try:
            engine = self._factory()
        except BaseException:  # as above
            logger.exception("the engine could not be restarted")
            return False
        with self._lock:
            wanted = not self._closing.is_set()
            if wanted:
                self._engine = engine
                self._info = engine.info
                self._restarts += 1
        if wanted:
            logger.warning("the engine was restarted")
        else:
            engine.close()
        return True


def _at_rest(stats: EngineStats) -> EngineStats:
    """The totals, of an engine that holds nothing any more."""
    return replace(stats, waiting=0, waiting_tokens=0, running=0, free_blocks=0, used_blocks=0, cached_blocks=0)


def _joined(before: EngineStats | None, now: EngineStats | None) -> EngineStats:
    """Totals of both, and the present of the later one."""
    if before is None or now is None:
        only = before or now
        assert only is not None, "an engine, or the totals of one"
        return only
    totals: dict[str, Any] = {
        field.name: _sum(getattr(before, field.name), getattr(now, field.name))
        for field in fields(EngineStats)
        if field.name not in _NOW
    }
    return replace(now, **totals)


def _sum(before: int | Histogram | None, now: int | Histogram | None) -> int | Histogram | None:
    if before is None or now is None:
        return now if before is None else before
    if isinstance(before, Histogram) and isinstance(now, Histogram):
        assert before.bounds == now.bounds, "one factory makes engines that count alike"
        counts = tuple(map(sum, zip(before.counts, now.counts, strict=True)))
        return Histogram(before.bounds, counts, before.total_s + now.total_s)
    assert isinstance(before, int), "a total is a number or a histogram"
    assert isinstance(now, int), "a total is a number or a histogram"
    return before + now
