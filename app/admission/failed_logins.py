"""Protection against guessed keys: failed authentications, counted by client address.

Where they are counted is another matter: in the memory of this process, or in the database that processes share as well
(`app.admission.shared_logins`).
"""

import hashlib
import ipaddress
import math
import time
from collections.abc import Callable
from typing import Protocol

from app.admission.sliding_windows import WINDOW_S, RateLimitState, SlidingWindows
from app.errors import RateLimited

_TRUSTED_S = 3600  # how long valid credentials stay exempt
_MAX_NAMES = 10_000


class LoginBrake(Protocol):
    """Port: slows down whoever guesses keys, for an event loop.

    Example:
        >>> await brake.checked("192.0.2.1", "Bearer guess")  # raises RateLimited after too many failures
        >>> await brake.counted("192.0.2.1")
        >>> brake.state("192.0.2.1").remaining
        19
    """

    async def checked(self, address: str, credentials: str) -> None:
        """Refuse an address with too many failures.

        Raises:
            RateLimited: The limit is reached, and these credentials were not valid from there in the last hour.
        """
        ...

    async def counted(self, address: str) -> None:
        """Count invalid credentials from this address. It is counted when this returns."""
        ...

    def succeeded(self, address: str, credentials: str) -> None:
        """Exempt valid credentials from this address for an hour; without waiting."""
        ...

    def state(self, address: str) -> RateLimitState:
        """The state of the limit for an address; without waiting."""
        ...


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
        self.limit = limit
        self._failures = SlidingWindows(WINDOW_S, max_names=_MAX_NAMES, clock=clock)
        self._trusted = SlidingWindows(_TRUSTED_S, max_names=_MAX_NAMES, clock=clock)

    async def checked(self, address: str, credentials: str) -> None:
        """As `check`, for an event loop: it does not wait."""
        self.check(address, credentials)

    async def counted(self, address: str) -> None:
        """As `failed`, for an event loop: it does not wait."""
        self.failed(address)

    def check(self, address: str, credentials: str) -> None:
        """See `LoginBrake.checked`."""
        network = network_of(address)
        if self._failures.used(network) < self.limit or self.trusts(address, credentials):
            return
        raise self.refusal(wait_s=self._failures.seconds_until(network, limit=self.limit))

    def trusts(self, address: str, credentials: str) -> bool:
        """Whether these credentials were valid from this address in the last hour."""
        return self._trusted.used(_pair(network_of(address), credentials)) > 0

    def refusal(self, *, wait_s: float) -> RateLimited:
        """The error for an address that may try again in `wait_s` seconds."""
        return RateLimited(
            "Too many requests with an invalid key came from this address.",
            name=self.NAME,
            limit=self.limit,
            window_s=WINDOW_S,
            retry_after_s=max(1, math.ceil(wait_s)),
        )

    def failed(self, address: str) -> None:
        """Count invalid credentials from this address."""
        self._failures.take(network_of(address), limit=self.limit)

    def succeeded(self, address: str, credentials: str) -> None:
        """Exempt valid credentials from this address for an hour."""
        if credentials:
            self._trusted.take(_pair(network_of(address), credentials), limit=1)

    def state(self, address: str) -> RateLimitState:
        """The state of the limit for an address."""
        used, reset_s = self._failures.state(network_of(address))
        return self.state_of(used, reset_s)

    def state_of(self, used: int, reset_s: float) -> RateLimitState:
        """The state of the limit for an address with `used` failures, the oldest of which counts for `reset_s` more."""
        return RateLimitState(
            name=self.NAME,
            unit="requests",
            limit=self.limit,
            remaining=max(0, self.limit - used),
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
