"""Bodies of tenants and users."""

from typing import Literal

from pydantic import Field

from app.api.schemas.keys import Expiry
from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.tenants import Tenant
from app.db.users import User
from app.types import Role

_NAME = "Name, for your own records."


class NewTenant(RequestBody):
    """A tenant to create."""

    id: str | None = Field(
        default=None,
        max_length=63,
        pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$",
        description="Permanent id: lower-case letters, digits, - and _; null: the server chooses one.",
        examples=["acme"],
    )
    name: str = Field(min_length=1, max_length=200, description=_NAME, examples=["Acme Ltd."])


class NewTenantKey(Expiry):
    """The first key of a tenant."""

    name: str = Field(default="first admin key", min_length=1, max_length=200, description=_NAME)
    role: Role = Field(default=Role.ADMIN, description="admin, member or reader.")
    user_id: str = Field(
        default="admin", min_length=1, max_length=200, description="The user that its usage is recorded for."
    )


class TenantPatch(RequestBody):
    """Changes; omitted fields stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    disabled: bool | None = Field(
        default=None, description="true refuses all its keys and sessions, false accepts them again."
    )


class TenantBody(ResponseBody):
    """A tenant."""

    id: str = Field(description="Its id.", examples=["acme"])
    object: Literal["tenant"] = Field(default="tenant", description="Always `tenant`.")
    name: str = Field(description="Its name; empty when none was set.")
    created_at: str = Field(description="RFC 3339 UTC.")
    disabled_at: str | None = Field(description="When it was disabled, RFC 3339 UTC; null while it is not.")

    @classmethod
    def of(cls, tenant: Tenant) -> "TenantBody":
        """The body for a tenant."""
        return cls(
            id=tenant.id,
            name=tenant.name,
            created_at=rfc3339(tenant.created_at),
            disabled_at=None if tenant.disabled_at is None else rfc3339(tenant.disabled_at),
        )


class NewUser(RequestBody):
    """A user to create."""

    id: str | None = Field(
        default=None,
        max_length=200,
        pattern=r"^[^\s/][^/]{0,199}$",
        description="Permanent id, without a slash; null: the server chooses one.",
        examples=["ada"],
    )
    name: str = Field(default="", max_length=200, description=_NAME, examples=["Ada Lovelace"])


class UserPatch(RequestBody):
    """Changes; omitted fields stay."""

    name: str | None = Field(default=None, max_length=200, description="A new name.")
    disabled: bool | None = Field(
        default=None, description="true refuses the user's keys and sessions, false accepts them again."
    )


class UserBody(ResponseBody):
    """A user."""

    id: str = Field(description="Its id, which usage is recorded for.", examples=["ada"])
    object: Literal["user"] = Field(default="user", description="Always `user`.")
    name: str = Field(description="Its name; empty when none was set.")
    created_at: str = Field(description="RFC 3339 UTC.")
    disabled_at: str | None = Field(description="When it was disabled, RFC 3339 UTC; null while it is not.")

    @classmethod
    def of(cls, user: User) -> "UserBody":
        """The body for a user."""
        return cls(
            id=user.id,
            name=user.name,
            created_at=rfc3339(user.created_at),
            disabled_at=None if user.disabled_at is None else rfc3339(user.disabled_at),
        )
