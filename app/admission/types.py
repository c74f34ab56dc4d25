"""The nouns of admission: what a caller may take, and where it stands."""

from dataclasses import dataclass

WINDOW_S = 60
"""Length of the moving window of all rates, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a key, or all of a tenant, may take: in any minute, and at once. None is no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None


UNLIMITED = Quota()


@dataclass(frozen=True, slots=True)
class Override:
    """A quota an administrator set in place of the default, for a `key` or a `tenant`. Times are Unix seconds."""

    scope_type: str
    scope_id: str
    tenant_id: str
    quota: Quota
    updated_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a caller stands in one limit, `name`d as in headers and problems.

    `unit` is `requests`, `tokens` or `concurrent-requests`; the last has no window. In `reset_s` seconds the oldest
    of what was taken leaves the window.
    """

    name: str
    unit: str
    limit: int
    remaining: int
    window_s: int | None
    reset_s: int
