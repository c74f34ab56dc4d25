"""A limit on open event streams: they last as long as a document waits, which can be weeks."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import RateLimited
from app.types import Principal

_OF_A_CALLER, _OF_A_TENANT = 64, 256  # a browser opens six
_RETRY_AFTER_S = 5


class EventStreams:
    """Counts the open streams of callers and tenants. Use it on the event loop alone.

    A caller is a key; users who sign in through an OpenID provider have none and count by themselves.

    Example:
        >>> streams = EventStreams()
        >>> with streams.place(principal):
        ...     await send_events()
    """

    def __init__(self, *, caller: int = _OF_A_CALLER, tenant: int = _OF_A_TENANT) -> None:
        """At most `caller` streams of one caller and `tenant` streams of one tenant are open at once."""
        self._limits = {"caller": caller, "tenant": tenant}
        self._open: Counter[tuple[str, ...]] = Counter()

    def __len__(self) -> int:
        """The number of open streams."""
        return sum(count for name, count in self._open.items() if name[0] == "tenant")

    @contextmanager
    def place(self, principal: Principal) -> Iterator[None]:
        """Count the block as an open stream.

        Raises:
            RateLimited: The caller or its tenant has too many open streams. Nothing was counted.
        """
        names = ("caller", principal.tenant_id, principal.caller), ("tenant", principal.tenant_id)
        for name in names:
            limit = self._limits[name[0]]
            if self._open[name] >= limit:
                raise _refusal(name[0], limit)
        self._open.update(names)
        try:
            yield
        finally:
            self._open.subtract(names)
            for name in names:
                if not self._open[name]:
                    del self._open[name]


def _refusal(scope: str, limit: int) -> RateLimited:
    subject = "Your tenant has" if scope == "tenant" else "You have"
    return RateLimited(
        f"{subject} reached the limit of {limit} open event streams; close one, or read the document instead.",
        name=f"{scope}-event-streams",
        limit=limit,
        window_s=None,
        retry_after_s=_RETRY_AFTER_S,
    )
