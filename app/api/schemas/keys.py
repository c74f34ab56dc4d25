"""Bodies of API keys."""

from typing import Literal

from pydantic import AwareDatetime, Field

from app.api.schemas.budgets import BudgetBody, Terms
from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.keys import LONGEST_OVERLAP_S
from app.types import ApiKey, Role

_LONGEST_S = 100 * 366 * 86_400  # a hundred years
_NAME = "For your own orientation."
_EXPIRES_IN = "Seconds until it stops working; null is never."
_EXPIRES_AT = "When it stops working, RFC 3339, instead of expires_in; null is never."
_OVERLAP = "How many seconds more the secret before works beside the new one; 0 ends it at once."


class Expiry(RequestBody):
    """When a key ends, said in one of two ways."""

    expires_in: float | None = Field(default=None, gt=0, le=_LONGEST_S, description=_EXPIRES_IN, examples=[86_400])
    expires_at: AwareDatetime | None = Field(default=None, description=_EXPIRES_AT)


class NewKey(Expiry):
    """A key to make."""

    name: str = Field(min_length=1, max_length=200, description=_NAME, examples=["ci"])
    role: Role = Field(
        default=Role.MEMBER, description="admin, member (documents and questions) or reader (questions)."
    )
    user_id: str | None = Field(
        default=None, min_length=1, max_length=200, description="Whom its use is booked on; default: the name."
    )
    collections: list[str] | None = Field(
        default=None, max_length=1000, description="Collection ids the key is limited to; null is all."
    )
    budget: Terms | None = Field(
        default=None, description="A budget for this key alone, made with it; more by POST /v1/admin/budgets."
    )


class KeyPatch(Expiry):
    """What to change; fields left out stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    role: Role | None = Field(default=None, description="A new role.")
    collections: list[str] | None = Field(default=None, max_length=1000, description="A new limit; null lifts it.")


class Rotation(RequestBody):
    """How to change a key's secret."""

    overlap_s: float = Field(default=0, ge=0, le=LONGEST_OVERLAP_S, description=_OVERLAP, examples=[3600])


class KeyBody(ResponseBody):
    """A key. The secret is not here: it was shown once."""

    id: str = Field(description="The key's id.", examples=["key_01k9"])
    object: Literal["api_key"] = Field(default="api_key", description="Always `api_key`.")
    name: str = Field(description="Its name.")
    role: Role = Field(description="What it may do.")
    user_id: str = Field(description="Whom its use is booked on.")
    prefix: str = Field(description="The first characters of the secret.", examples=["fn_a1b2c3"])
    collections: list[str] | None = Field(description="Collections it is limited to; null is all.")
    created_at: str = Field(description="RFC 3339 UTC.")
    expires_at: str | None = Field(description="RFC 3339 UTC; null is never.")
    revoked_at: str | None = Field(description="RFC 3339 UTC; null while it works.")
    rotated_at: str | None = Field(description="When its secret was last changed, RFC 3339 UTC; null if never.")
    rotated_from: str | None = Field(description="The first characters of the secret before; null if there is none.")
    previous_expires_at: str | None = Field(description="Until when the secret before works, RFC 3339 UTC.")

    @classmethod
    def of(cls, key: ApiKey) -> "KeyBody":
        """The body for a key."""
        return cls(**_fields(key))


class NewKeyBody(KeyBody):
    """A key whose secret is new."""

    secret: str = Field(description="Shown this once; store it now.", examples=["fn_…"])
    budget: BudgetBody | None = Field(default=None, description="The budget that was made with it.")

    @classmethod
    def created(cls, key: ApiKey, secret: str, budget: BudgetBody | None = None) -> "NewKeyBody":
        """The body for a key and its new secret."""
        return cls(**_fields(key), secret=secret, budget=budget)


def _fields(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "user_id": key.user_id,
        "prefix": key.prefix,
        "collections": list(key.collections) if key.collections is not None else None,
        "created_at": rfc3339(key.created_at),
        "expires_at": _moment(key.expires_at),
        "revoked_at": _moment(key.revoked_at),
        "rotated_at": _moment(key.rotated_at),
        "rotated_from": key.previous_prefix,
        "previous_expires_at": _moment(key.previous_expires_at),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)
