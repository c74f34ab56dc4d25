"""The pauses between tries of what keeps failing: each twice as long as the one before."""

import secrets
from dataclasses import dataclass

_MOST_DOUBLINGS = 64  # far beyond any longest pause, and no overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential backoff. The first pause is `first_s`; each further one is twice as long, up to `longest_s`.

    Up to `jitter` of a pause is added to it, drawn each time, so that several that failed together do not try again
    together; 0.25 is a quarter.

    Example:
        >>> [Backoff(first_s=0.5, longest_s=3.0).after(failures) for failures in (1, 2, 3, 4)]
        [0.5, 1.0, 2.0, 3.0]
    """

    first_s: float
    longest_s: float
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.first_s <= self.longest_s:
            raise ValueError(f"first_s must be above 0 and at most {self.longest_s} seconds, got {self.first_s}")

    def after(self, failures: int, *, least_s: float = 0.0) -> float:
        """Seconds to wait after the `failures`th failure in a row, at least `least_s`; that may exceed `longest_s`."""
        assert failures >= 1, "there is nothing to wait for"
        pause = min(self.first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.longest_s)
        return max(pause, least_s) * (1 + self.jitter * secrets.randbelow(256) / 256)
