"""What many runs come down to: rates against a peer's, percentiles."""

from typing import Any

from tests.bench.machine import median


def against(rates: dict[str, list[float]], peer: str) -> dict[str, Any]:
    return {
        "tokens_per_s": {name: round(median(values), 2) for name, values in rates.items()},
        f"ratio to {peer}": {
            name: round(median([mine / theirs for mine, theirs in zip(values, rates[peer], strict=True)]), 3)
            for name, values in rates.items()
            if name != peer
        },
    }


def percentiles(gaps: tuple[float, ...]) -> dict[str, float]:
    ordered = sorted(gaps)
    return {f"p{share}": round(ordered[min(len(ordered) - 1, len(ordered) * share // 100)], 3) for share in (50, 99)}
