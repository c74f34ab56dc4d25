"""Access to the server: the first key, sessions of the web page, OpenID Connect, and the mail of invitations."""

import re
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

MAIL_ADDRESS = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$"
"""An e-mail address in ASCII, as HTML's `input type=email` reads one; it has no character that ends a header."""

_MAIL_ADDRESS = re.compile(MAIL_ADDRESS)
_RESOURCE = re.compile(r"https?://[A-Za-z0-9._:\[\]-]{1,255}(?:/[A-Za-z0-9._~-]{1,100}){0,8}/mcp")
_LONGEST_ADDRESS = 254  # characters, RFC 5321 section 4.5.3.1


class AccessSettings(BaseModel, frozen=True):
    """The first administrator's key, sessions, the OpenID provider, and the mail server."""

    admin_key: SecretStr | None = Field(
        default=None,
        description="Becomes the first admin key at the first start (at least 16 characters); "
        "when unset, one is made and printed once.",
    )
    session_hours: float = Field(
        default=12.0, gt=0, le=720, description="Hours after which a session of the web page expires."
    )
    secure_cookies: bool = Field(
        default=False,
        description="Mark session cookies Secure even on http requests, behind a proxy that terminates TLS.",
    )
    oidc_issuer: str = Field(
        default="",
        description="OpenID provider that people may sign in with, such as https://login.example.org; empty is none.",
    )
    oidc_client_id: str = Field(default="", description="Our client id at the OpenID provider.")
    oidc_client_secret: SecretStr | None = Field(default=None, description="Our client secret at the OpenID provider.")
    oidc_redirect_url: str = Field(
        default="",
        description="Redirect URL registered at the provider, …/v1/session/oidc/callback; empty derives it from the "
        "address of the request.",
    )
    oidc_tenant: str = Field(default="default", min_length=1, description="Tenant of users who sign in with OpenID.")
    oidc_role: Literal["member", "reader"] = Field(
        default="reader", description="Role of users who sign in with OpenID."
    )
    oidc_admins: str = Field(
        default="",
        description="Administrators among them: subjects or verified e-mail addresses, comma-separated.",
    )
    mcp_url: str = Field(
        default="",
        description="Address of /mcp as assistants know it, such as https://footnote.example.org/mcp. With an OpenID "
        "provider it then also takes the provider's access tokens whose audience is this address; empty takes keys "
        "alone.",
    )

    smtp_url: str = Field(
        default="",
        description="Mail server that sends invitations and weekly summaries, smtp://host:port (STARTTLS where it is "
        "offered) or smtps://host:port; empty is off.",
    )
    smtp_from: str = Field(default="", description="Address that mail is sent from, such as footnote@example.org.")
    smtp_user: str = Field(default="", description="User at the mail server; empty signs in with none.")
    smtp_password: SecretStr | None = Field(
        default=None, description="Password at the mail server; it is sent over TLS only."
    )

    @field_validator("admin_key")
    @classmethod
    def _long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < 16:
            raise ValueError("must have at least 16 characters")
        return key

    @model_validator(mode="after")
    def _mail_is_complete(self) -> Self:
        if not self.smtp_url:
            return self
        try:
            parsed = urlsplit(self.smtp_url)
            known = parsed.scheme in ("smtp", "smtps") and parsed.hostname and parsed.port != 0
        except ValueError:
            known = False
        if not known:
            raise ValueError("FOOTNOTE_SMTP_URL must be smtp://host:port or smtps://host:port")
        if parsed.username is not None or parsed.path not in ("", "/") or parsed.query or parsed.fragment:
            raise ValueError(
                "FOOTNOTE_SMTP_URL has a host and a port alone; give FOOTNOTE_SMTP_USER and FOOTNOTE_SMTP_PASSWORD"
            )
        if not is_mail_address(self.smtp_from):
            raise ValueError("FOOTNOTE_SMTP_URL needs FOOTNOTE_SMTP_FROM, an address such as footnote@example.org")
        if bool(self.smtp_user) != (self.smtp_password is not None):
            raise ValueError("FOOTNOTE_SMTP_USER and FOOTNOTE_SMTP_PASSWORD need each other")
        return self

    @model_validator(mode="after")
    def _provider_is_complete(self) -> Self:
        if self.oidc_issuer and not self.oidc_issuer.startswith(("https://", "http://")):
            raise ValueError("FOOTNOTE_OIDC_ISSUER must begin with https:// (or http://, to try it out)")
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("FOOTNOTE_OIDC_ISSUER needs FOOTNOTE_OIDC_CLIENT_ID")
        return self

    @model_validator(mode="after")
    def _resource_is_an_address(self) -> Self:
        if self.mcp_url and not _RESOURCE.fullmatch(self.mcp_url):
            raise ValueError("FOOTNOTE_MCP_URL must be the address of /mcp, such as https://footnote.example.org/mcp")
        return self


def is_mail_address(text: str) -> bool:
    """Whether `text` is one e-mail address."""
    return len(text) <= _LONGEST_ADDRESS and _MAIL_ADDRESS.fullmatch(text) is not None
