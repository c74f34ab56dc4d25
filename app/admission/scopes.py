"""What requests and tokens are counted against: the limits of the caller's key, and those of its tenant over all keys.

Where the counts are kept is another matter: in memory (`app.admission.rates`), or in the database that processes share
(`app.admission.shared_rates`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from app.admission.quotas import Quota
from app.admission.sliding_windows import WINDOW_S, RateLimitState
from app.errors import RateLimited
from app.types import Principal

REQUESTS, TOKENS, CONCURRENT = "requests", "tokens", "concurrent-requests"
"""The units of limits. The first two are counted in windows; requests that run at once are the third."""

_MESSAGES = {
    REQUESTS: "{subject} has reached its limit of {limit} requests a minute.",
    TOKENS: "{subject} has a limit of {limit} tokens a minute, with too few left for this request.",
    CONCURRENT: "{subject} has reached its limit of {limit} concurrent requests.",
}
_SUBJECTS = {"key": "This key", "tenant": "Your tenant"}


class Quotas(Protocol):
    """Port: the quotas of a caller.

    Example:
        >>> class Same:
        ...     def of_key(self, principal: Principal) -> Quota:
        ...         return Quota(requests_per_minute=60)
        ...     def of_tenant(self, principal: Principal) -> Quota:
        ...         return UNLIMITED
    """

    def of_key(self, principal: Principal) -> Quota:
        """The quota of the caller's key."""
        ...

    def of_tenant(self, principal: Principal) -> Quota:
        """The quota of the caller's tenant, over all its keys."""
        ...


class RequestCounts(Protocol):
    """Port: counts the requests of callers.

    Example:
        >>> end = await counts.begun(principal)
        >>> counts.states(principal)[0].remaining
        59
        >>> end()
    """

    async def begun(self, principal: Principal, *, room: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Count a request that begins now. The result ends it, at once and without waiting: call it exactly once.

        `room` is called once no limit refuses the request; if it raises, nothing stays counted.

        Raises:
            RateLimited: A limit is reached. Nothing was counted.
            StoreUnavailable: The counts cannot be reached. Nothing was counted.
        """
        ...

    def states(self, principal: Principal) -> tuple[RateLimitState, ...]:
        """The state of each limit that applies to the caller, those of the key first; without waiting."""
        ...


@dataclass(frozen=True, slots=True)
class Limited:
    """A key or a tenant with its quota. `kind` is `key` or `tenant`, and `name` is unique among all tenants."""

    kind: str
    name: str
    quota: Quota

    def limits(self) -> Iterator[tuple[str, int]]:
        """Each limit that is set, with its unit."""
        for unit, limit in (
            (REQUESTS, self.quota.requests_per_minute),
            (TOKENS, self.quota.tokens_per_minute),
            (CONCURRENT, self.quota.concurrent_requests),
        ):
            if limit is not None:
                yield unit, limit

    def counter(self, unit: str) -> str:
        """The name of what is counted; without the limit, so that a changed limit counts what was used before."""
        return f"{self.name}/{unit}"

    def refusal(self, unit: str, limit: int, *, wait_s: float) -> RateLimited:
        """The error of a request that may be sent again in `wait_s` seconds."""
        return RateLimited(
            _MESSAGES[unit].format(subject=_SUBJECTS[self.kind], limit=limit),
            name=f"{self.kind}-{unit}",
            limit=limit,
            window_s=None if unit == CONCURRENT else WINDOW_S,
            retry_after_s=max(1, math.ceil(wait_s)),
        )

    def state(self, unit: str, limit: int, *, used: int, reset_s: float) -> RateLimitState:
        """The state of a limit of which `used` is used; the oldest use leaves the window in `reset_s` seconds."""
        return RateLimitState(
            name=f"{self.kind}-{unit}",
            unit=unit,
            limit=limit,
            remaining=max(0, limit - used),
            window_s=None if unit == CONCURRENT else WINDOW_S,
            reset_s=max(0, math.ceil(reset_s)) if used else 0,
        )


def scopes_of(quotas: Quotas, principal: Principal) -> tuple[Limited, Limited]:
    """The caller's key, then its tenant: the order in which their counts are locked."""
    return (
        Limited("key", f"key/{principal.tenant_id}/{principal.caller}", quotas.of_key(principal)),
        Limited("tenant", f"tenant/{principal.tenant_id}", quotas.of_tenant(principal)),
    )
