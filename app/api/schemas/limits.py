"""Bodies of limits: what a key or a tenant may take in a minute, and at once."""

from typing import Literal

from pydantic import Field

from app.admission.types import Override, Quota
from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339

_MOST = 10**12
_REQUESTS = "Requests in any minute; null is no limit."
_TOKENS = "Tokens in any minute, input and output; null is no limit."
_CONCURRENT = "Requests at work at once; null is no limit."


class NewLimits(RequestBody):
    """Limits to set, in place of the defaults: what is left out is not limited."""

    requests_per_minute: int | None = Field(default=None, ge=1, le=_MOST, description=_REQUESTS, examples=[60])
    tokens_per_minute: int | None = Field(default=None, ge=1, le=_MOST, description=_TOKENS, examples=[100_000])
    concurrent_requests: int | None = Field(default=None, ge=1, le=_MOST, description=_CONCURRENT, examples=[4])

    def quota(self) -> Quota:
        """What they allow."""
        return Quota(
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            concurrent_requests=self.concurrent_requests,
        )


class LimitsBody(ResponseBody):
    """What a key or a tenant may take. Both apply to a request: its key's, and its tenant's over all keys."""

    id: str = Field(description="Id of the key or tenant.", examples=["key_01j8x4"])
    object: Literal["limits"] = Field(default="limits", description="Always `limits`.")
    scope_type: Literal["key", "tenant"] = Field(description="Whose limits they are.")
    requests_per_minute: int | None = Field(description=_REQUESTS)
    tokens_per_minute: int | None = Field(description=_TOKENS)
    concurrent_requests: int | None = Field(description=_CONCURRENT)
    is_default: bool = Field(description="Whether nothing was set for it, so that the server's defaults apply.")
    updated_at: str | None = Field(description="When they were set, RFC 3339 UTC; null for the defaults.")

    @classmethod
    def of(
        cls, scope_type: Literal["key", "tenant"], scope_id: str, found: Override | None, default: Quota
    ) -> "LimitsBody":
        """What was set, or else the default."""
        quota = default if found is None else found.quota
        return cls(
            id=scope_id,
            scope_type=scope_type,
            requests_per_minute=quota.requests_per_minute,
            tokens_per_minute=quota.tokens_per_minute,
            concurrent_requests=quota.concurrent_requests,
            is_default=found is None,
            updated_at=None if found is None else rfc3339(found.updated_at),
        )
