"""A rate limit of requests without a key, counted by client address."""

import math
import time
from collections.abc import Callable

from app.admission.failed_logins import network_of
from app.admission.sliding_windows import WINDOW_S, SlidingWindows
from app.errors import RateLimited

_MAX_NAMES = 10_000


class AddressRate:
    """Refuses a client address after `limit` requests in a minute. IPv6 addresses count by their first 64 bits.

    Example:
        >>> rate = AddressRate(120, name="openid-requests")
        >>> rate.count("192.0.2.1")  # raises RateLimited for the 121st in a minute
    """

    def __init__(self, limit: int, *, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`name` is the limit's, for the problem document; `clock` gives seconds and never goes back."""
        self._limit = limit
        self._name = name
        self._windows = SlidingWindows(WINDOW_S, max_names=_MAX_NAMES, clock=clock)

    def count(self, address: str) -> None:
        """Count a request of this address.

        Raises:
            RateLimited: The limit is reached; nothing was counted.
        """
        network = network_of(address)
        if self._windows.take(network, limit=self._limit) is not None:
            return
        raise RateLimited(
            f"This address has reached its limit of {self._limit} such requests a minute.",
            name=self._name,
            limit=self._limit,
            window_s=WINDOW_S,
            retry_after_s=max(1, math.ceil(self._windows.seconds_until(network, limit=self._limit))),
        )
