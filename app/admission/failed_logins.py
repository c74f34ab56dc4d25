"""Guessing keys: failed authentications, counted by the address they come from."""

import hashlib
import ipaddress
import math
import time
from collections.abc import Callable

from app.admission.types import WINDOW_S, Standing
from app.admission.windows import Windows
from app.errors import RateLimited

_REMEMBERED_S = 3600


class FailedLogins:
    """Failed authentications by client address: after `limit` in a minute that address is refused unheard.

    Except for credentials that were good from there lately: who shares an address with somebody who guesses is not
    locked out. Addresses of IPv6 count by their first 64 bits, which one subscriber has whole (RFC 6177).
    """

    NAME = "failed-logins"

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._windows = Windows(most=10_000, clock=clock)
        self._good = Windows(most=10_000, clock=clock)

    def check(self, address: str, credentials: str) -> None:
        """Refuse an address that failed too often.

        Raises:
            RateLimited: It did, and these credentials were not good from there in the last hour.
        """
        network = _network(address)
        if self._windows.get_moving_window(network, self._limit, WINDOW_S)[1] < self._limit:
            return
        if self._good.get_moving_window(_pair(network, credentials), 1, _REMEMBERED_S)[1]:
            return
        wait = self._windows.seconds_until(network, self._limit, WINDOW_S)
        raise RateLimited(
            "Too many requests with a wrong key came from this address.",
            name=self.NAME,
            limit=self._limit,
            window_s=WINDOW_S,
            retry_after_s=max(1, math.ceil(wait)),
        )

    def failed(self, address: str) -> None:
        """Credentials from this address were wrong."""
        self._windows.enter(_network(address), self._limit, WINDOW_S)

    def succeeded(self, address: str, credentials: str) -> None:
        """Credentials from this address were good."""
        if credentials:
            self._good.enter(_pair(_network(address), credentials), 1, _REMEMBERED_S)

    def standing(self, address: str) -> Standing:
        """Where an address stands."""
        oldest, taken = self._windows.get_moving_window(_network(address), self._limit, WINDOW_S)
        reset = oldest + WINDOW_S - self._clock() if taken else 0
        return Standing(
            name=self.NAME,
            unit="requests",
            limit=self._limit,
            remaining=max(0, self._limit - taken),
            window_s=WINDOW_S,
            reset_s=max(0, math.ceil(reset)),
        )


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def _pair(network: str, credentials: str) -> str:
    digest = hashlib.sha256(credentials.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{network} {digest}"
