"""How long to wait before what failed is tried again: exponential backoff."""

_MOST_DOUBLINGS = 64  # far beyond any longest pause, and no overflow


def pause_after(failures: int, *, first_s: float, longest_s: float) -> float:
    """Seconds to wait after the `failures`th failure in a row: `first_s`, doubled with each further one.

    >>> [pause_after(failures, first_s=2.0, longest_s=10.0) for failures in (1, 2, 3, 4)]
    [2.0, 4.0, 8.0, 10.0]

    Args:
        failures: Tries that failed so far, at least 1.
        first_s: The first pause.
        longest_s: No pause is longer.
    """
    assert failures >= 1, "a try has failed"
    return min(first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest_s)
