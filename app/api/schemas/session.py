"""Bodies of sessions."""

from typing import Literal

from pydantic import Field, SecretStr

from app.access.cookie import csrf_token
from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.sessions import Session
from app.types import Principal, Role


class NewSession(RequestBody):
    """The key to sign in with, when the Authorization header has none."""

    key: SecretStr = Field(max_length=1000, description="An API key, `fn_…`.")


class SessionBody(ResponseBody):
    """The signed-in user and session."""

    object: Literal["session"] = Field(default="session", description="Always `session`.")
    tenant_id: str = Field(description="The tenant.", examples=["default"])
    user_id: str = Field(description="The user.", examples=["ada"])
    user_name: str = Field(description="The user's display name; its id when none was set.", examples=["Ada Lovelace"])
    role: Role = Field(description="The role of the user.")
    operator: bool = Field(description="Whether this is an administrator of the whole installation.")
    collections: list[str] | None = Field(description="Collections that the session is limited to; null: all.")
    web_pages: bool = Field(description="Whether this server fetches documents by the address of a web page.")
    expires_at: str | None = Field(description="When the session ends, RFC 3339 UTC; null for a request with a key.")
    csrf_token: str | None = Field(
        description="CSRF token to send as `X-Footnote-CSRF` with every POST, PUT, PATCH and DELETE that uses the "
        "session cookie; null for a request with a key, which needs none."
    )

    @classmethod
    def of(cls, session: Session, secret: str, *, web_pages: bool) -> "SessionBody":
        """The body for a session; the token is made from its secret."""
        fields = _fields(session.principal, session.user_name)
        return cls(**fields, web_pages=web_pages, expires_at=rfc3339(session.expires_at), csrf_token=csrf_token(secret))

    @classmethod
    def of_key(cls, principal: Principal, *, user_name: str, web_pages: bool) -> "SessionBody":
        """The body for a request with a key."""
        return cls(**_fields(principal, user_name), web_pages=web_pages, expires_at=None, csrf_token=None)


class SessionState(ResponseBody):
    """The sign-in state of the browser."""

    object: Literal["session.state"] = Field(default="session.state", description="Always `session.state`.")
    signed_in: bool = Field(description="Whether the request's cookie is that of a session.")
    session: SessionBody | None = Field(description="The session, as `GET /v1/session` returns it; null without one.")
    openid: bool = Field(description="Whether users sign in through an OpenID provider.")


class SignedOut(ResponseBody):
    """A session that has ended."""

    object: Literal["session.deleted"] = Field(default="session.deleted", description="Always `session.deleted`.")
    deleted: Literal[True] = Field(default=True, description="Always true.")
    openid: bool = Field(description="Whether users sign in through an OpenID provider.")


def _fields(principal: Principal, user_name: str) -> dict[str, object]:
    return {
        "tenant_id": principal.tenant_id,
        "user_id": principal.user_id,
        "user_name": user_name or principal.user_id,
        "role": principal.role,
        "operator": principal.is_operator,
        "collections": list(principal.collections) if principal.collections is not None else None,
    }
