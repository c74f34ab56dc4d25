"""Bodies of administration."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.types import ApiKey, Role


class NewKey(RequestBody):
    """A key to make."""

    name: str = Field(min_length=1, max_length=200, description="For your own orientation.", examples=["ci"])
    role: Role = Field(
        default=Role.MEMBER, description="admin, member (documents and questions) or reader (questions)."
    )
    user_id: str | None = Field(
        default=None, min_length=1, max_length=200, description="Whom its use is booked on; default: the name."
    )
    collections: list[str] | None = Field(
        default=None, max_length=1000, description="Collection ids the key is limited to; null is all."
    )
    expires_in: float | None = Field(default=None, gt=0, description="Seconds until it stops working; null is never.")
    budget: None = Field(default=None, description="Budgets are not there yet: only null is taken.")


class KeyPatch(RequestBody):
    """What to change; fields left out stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    role: Role | None = Field(default=None, description="A new role.")
    collections: list[str] | None = Field(default=None, max_length=1000, description="A new limit.")


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

    @classmethod
    def of(cls, key: ApiKey) -> "KeyBody":
        """The body for a key."""
        return cls(**key_fields(key))


class NewKeyBody(KeyBody):
    """A key that was just made."""

    secret: str = Field(description="Shown this once; store it now.", examples=["fn_…"])

    @classmethod
    def created(cls, key: ApiKey, secret: str) -> "NewKeyBody":
        """The body for a new key."""
        return cls(**key_fields(key), secret=secret)


def key_fields(key: ApiKey) -> dict[str, object]:  # the fields both bodies share
    """A key's fields as the bodies show them."""
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "user_id": key.user_id,
        "prefix": key.prefix,
        "collections": list(key.collections) if key.collections is not None else None,
        "created_at": rfc3339(key.created_at),
        "expires_at": rfc3339(key.expires_at) if key.expires_at is not None else None,
        "revoked_at": rfc3339(key.revoked_at) if key.revoked_at is not None else None,
    }
