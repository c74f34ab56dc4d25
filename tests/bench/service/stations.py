"""Where an ask's time goes: what each station takes, by the clock and of a core, and how much SQL is spoken."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar, cast

import sqlalchemy as sa

Thing = TypeVar("Thing")

_BEAT_SECONDS = 0.005


class Stopwatch:
    """Adds up what calls take. A call inside a call of the same thread counts for both: stations are nested."""

    def __init__(self) -> None:
        self._adding = threading.Lock()
        self.wall_s: defaultdict[str, float] = defaultdict(float)
        self.cpu_s: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)

    def timed(self, thing: Thing, station: str, *methods: str) -> Thing:
        """`thing`, some of whose methods are timed; the other ones are its own."""
        return cast("Thing", _Timed(thing, {name: self._watched(thing, station, name) for name in methods}))

    def call(self, function: Callable[..., Any], station: str) -> Callable[..., Any]:
        """A function that is timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
                with self._adding:
                    self.wall_s[station] += wall
                    self.cpu_s[station] += cpu
                    self.calls[station] += 1

        return timed

    def reset(self) -> None:
        """Begin anew."""
        with self._adding:
            for each in (self.wall_s, self.cpu_s, self.calls):
                each.clear()

    def told(self, asks: int) -> dict[str, dict[str, float]]:
        """By station: calls, milliseconds by the clock and of a core, for each ask."""
        return {
            name: {
                "calls": round(self.calls[name] / asks, 2),
                "wall_ms": round(1000 * self.wall_s[name] / asks, 3),
                "cpu_ms": round(1000 * self.cpu_s[name] / asks, 3),
            }
            for name in sorted(self.calls, key=lambda name: -self.cpu_s[name])
        }

    def _watched(self, thing: object, station: str, name: str) -> Callable[..., Any]:
        return self.call(getattr(thing, name), station if station.endswith(name) else f"{station}.{name}")


class _Timed:
    def __init__(self, thing: object, watched: dict[str, Callable[..., Any]]) -> None:
        self._thing = thing
        self.__dict__.update(watched)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


class Statements:
    """Counts what is said to the database, by its first word; savepoints and the like are statements too."""

    def __init__(self) -> None:
        self.said: defaultdict[str, int] = defaultdict(int)

    def listen(self) -> None:
        """To every engine there is or will be."""
        sa.event.listen(sa.Engine, "before_cursor_execute", self._note)
        sa.event.listen(sa.Engine, "commit", self._committed)

    def close(self) -> None:
        """Listen no more."""
        sa.event.remove(sa.Engine, "before_cursor_execute", self._note)
        sa.event.remove(sa.Engine, "commit", self._committed)

    def _note(self, connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        self.said[statement.split(maxsplit=1)[0].upper()] += 1

    def _committed(self, connection: Any) -> None:
        self.said["COMMIT"] += 1


class LoopLag:
    """How late a loop's timers are, in seconds: what stands in the way of everybody's next step."""

    def __init__(self) -> None:
        self.late: list[float] = []

    async def watch(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _BEAT_SECONDS
            await asyncio.sleep(_BEAT_SECONDS)
            self.late.append(max(0.0, loop.time() - due))

    def told(self) -> dict[str, float]:
        """Milliseconds."""
        ordered = sorted(self.late) or [0.0]
        return {
            f"{name}_ms": round(1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1)
            for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        }
