"""How long a question takes."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence


def timed(ask: Callable[[], object], *, times: int = 20) -> dict[str, float]:
    """Milliseconds: the median and the slowest but one in twenty."""
    return side_by_side({"": ask}, times=times)[""]


def side_by_side(asks: Mapping[str, Callable[[], object]], *, times: int = 20) -> dict[str, dict[str, float]]:
    """As `timed`, of several that take turns: what else the machine does meanwhile befalls all of them."""
    taken: dict[str, list[float]] = {name: [] for name in asks}
    for _ in range(times):
        for name, ask in asks.items():
            began = time.perf_counter()
            ask()
            taken[name].append((time.perf_counter() - began) * 1000)
    return {name: _percentiles(some) for name, some in taken.items()}


def _percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(milliseconds)
    p95 = ordered[max(0, int(len(ordered) * 0.95) - 1)]
    return {"p50_ms": round(statistics.median(ordered), 1), "p95_ms": round(p95, 1)}
