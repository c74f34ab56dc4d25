"""Bodies of API keys."""

from typing import Literal

from pydantic import AwareDatetime, Field

from app.api.schemas.bounds import Ids
from app.api.schemas.budgets import BudgetBody, Terms
from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.keys import LONGEST_OVERLAP_S
from app.types import ApiKey, Role

_LONGEST_S = 100 * 366 * 86_400  # a hundred years
_NAME = "Name, for your own records."
_USER = "Id or display name of the user that its usage is recorded for; created if new. Default: the name of the key."
_EXPIRES_IN = "Seconds until it expires; null: never."
_EXPIRES_AT = "When it expires, RFC 3339, instead of expires_in; null: never."
_OVERLAP = "Seconds for which the previous secret stays valid beside the new one; 0: it ends at once."


class Expiry(RequestBody):
    """The expiry of a key, given in one of two ways."""

    expires_in: float | None = Field(default=None, gt=0, le=_LONGEST_S, description=_EXPIRES_IN, examples=[86_400])
    expires_at: AwareDatetime | None = Field(default=None, description=_EXPIRES_AT)


class NewKey(Expiry):
    """A key to create."""

    name: str = Field(min_length=1, max_length=200, description=_NAME, examples=["ci"])
    role: Role = Field(
        default=Role.MEMBER, description="admin, member (documents and questions) or reader (questions)."
    )
    user_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description=_USER,
    )
    collections: Ids | None = Field(
        default=None, description="Ids of the collections that the key is limited to; null: all."
    )
    budget: Terms | None = Field(
        default=None, description="A budget for this key, created with it; create more by POST /v1/admin/budgets."
    )


class KeyPatch(Expiry):
    """Changes; omitted fields stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    role: Role | None = Field(default=None, description="A new role.")
    collections: Ids | None = Field(default=None, description="New limit to collections; null removes it.")


class Rotation(RequestBody):
    """Options for rotating a key's secret."""

    overlap_s: float = Field(default=0, ge=0, le=LONGEST_OVERLAP_S, description=_OVERLAP, examples=[3600])


class KeyBody(ResponseBody):
    """An API key, without its secret, which is shown only once."""

    id: str = Field(description="The key's id.", examples=["key_01k9"])
    object: Literal["api_key"] = Field(default="api_key", description="Always `api_key`.")
    name: str = Field(description="Its name.")
    role: Role = Field(description="Its role.")
    user_id: str = Field(description="The user that its usage is recorded for.")
    user_name: str = Field(description="The user's display name; its id when none was set.")
    prefix: str = Field(description="The first characters of the secret.", examples=["fn_a1b2c3"])
    collections: list[str] | None = Field(description="Collections that it is limited to; null: all.")
    created_at: str = Field(description="RFC 3339 UTC.")
    expires_at: str | None = Field(description="RFC 3339 UTC; null: never.")
    revoked_at: str | None = Field(description="RFC 3339 UTC; null while it is not revoked.")
    rotated_at: str | None = Field(description="When its secret was last rotated, RFC 3339 UTC; null: never.")
    rotated_from: str | None = Field(description="The first characters of the previous secret; null without one.")
    previous_expires_at: str | None = Field(description="When the previous secret expires, RFC 3339 UTC.")
    last_used_at: str | None = Field(description="When it was last used, to the minute, RFC 3339 UTC; null: never.")

    @classmethod
    def of(cls, key: ApiKey) -> "KeyBody":
        """The body for a key."""
        return cls(**_fields(key))


class KeySpend(ResponseBody):
    """The use of a key since the current month began, in the reporting zone."""

    since: str = Field(description="The beginning of the month, RFC 3339 UTC.")
    input_tokens: int = Field(description="Tokens read by models.")
    output_tokens: int = Field(description="Tokens generated.")
    cost: str | None = Field(description="Their cost, a decimal string; null when no model had a price.")
    currency: str = Field(description="ISO 4217, in lower case.")


class ListedKeyBody(KeyBody):
    """An API key with its use in the current month."""

    month: KeySpend = Field(description="Its use in the current month.")

    @classmethod
    def with_spend(cls, key: ApiKey, month: KeySpend) -> "ListedKeyBody":
        """The body for a key and its use."""
        return cls(**_fields(key), month=month)


class NewKeyBody(KeyBody):
    """An API key with its new secret."""

    secret: str = Field(description="The secret; it is shown only once, store it now.", examples=["fn_…"])
    budget: BudgetBody | None = Field(default=None, description="The budget that was created with it.")

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
        "user_name": key.user_name or key.user_id,
        "prefix": key.prefix,
        "collections": list(key.collections) if key.collections is not None else None,
        "created_at": rfc3339(key.created_at),
        "expires_at": _moment(key.expires_at),
        "revoked_at": _moment(key.revoked_at),
        "rotated_at": _moment(key.rotated_at),
        "rotated_from": key.previous_prefix,
        "previous_expires_at": _moment(key.previous_expires_at),
        "last_used_at": _moment(key.last_used_at),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)
