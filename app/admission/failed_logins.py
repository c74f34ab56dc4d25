"""Protection against guessed keys: failed authentications, counted by client address."""

import hashlib
import ipaddress
import math
import time
from collections.abc import Callable

from app.admission.sliding_windows import WINDOW_S, RateLimitState, SlidingWindows
from app.errors import RateLimited

_TRUSTED_S = 3600  # how long valid credentials stay exempt
_MAX_NAMES = 10_000


class FailedLogins:
    """Refuses a client address after `limit` failed authentications in a minute, before its key is looked up.

    Credentials that were valid from the same address within the last hour are exempt, so one client's guesses do not
    lock out others behind the same address. IPv6 addresses count by their first 64 bits, the network of one subscriber
    (RFC 6177).

    Example:
        >>> logins = FailedLogins(20)
        >>> logins.check("192.0.2.1", "Bearer guess")  # raises RateLimited after too many failures
        >>> logins.failed("192.0.2.1")
    """

    NAME = "failed-logins"

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds and never goes back."""
        self._limit = limit
        self._failures = SlidingWindows(WINDOW_S, max_names=_MAX_NAMES, clock=clock)
        self._trusted = SlidingWindows(_TRUSTED_S, max_names=_MAX_NAMES, clock=clock)

    def check(self, address: str, credentials: str) -> None:
        """Refuse an address with too many failures.

        Raises:
            RateLimited: The limit is reached, and these credentials were not valid from there in the last hour.
        """
        network = network_of(address)
        if self._failures.used(network) < self._limit:
            return
        if self._trusted.used(_pair(network, credentials)):
            return
        wait = self._failures.seconds_until(network, limit=self._limit)
        raise RateLimited(
            "Too many requests with an invalid key came from this address.",
            name=self.NAME,
            limit=self._limit,
            window_s=WINDOW_S,
            retry_after_s=max(1, math.ceil(wait)),
        )

    def failed(self, address: str) -> None:
        """Count invalid credentials from this address."""
        self._failures.take(network_of(address), limit=self._limit)

    def succeeded(self, address: str, credentials: str) -> None:
        """Exempt valid credentials from this address for an hour."""
        if credentials:
            self._trusted.take(_pair(network_of(address), credentials), limit=1)

    def state(self, address: str) -> RateLimitState:
        """The state of the limit for an address."""
        used, reset_s = self._failures.state(network_of(address))
        return RateLimitState(
            name=self.NAME,
            unit="requests",
            limit=self._limit,
            remaining=max(0, self._limit - used),
            window_s=WINDOW_S,
            reset_s=max(0, math.ceil(reset_s)),
        )


def network_of(address: str) -> str:
    """The network by which an address is counted: an IPv6 address's first 64 bits, or the address itself."""
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
