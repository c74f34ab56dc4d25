"""Who may use the server: the first key, sessions of the web page, and sign-in with OpenID Connect."""

from typing import Literal, Self

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator


class AccessSettings(BaseModel, frozen=True):
    """The first administrator's key, sessions, and the OpenID provider."""

    admin_key: SecretStr | None = Field(
        default=None,
        description="Becomes the first admin key at the first start (at least 16 characters); "
        "when unset, one is made and printed once.",
    )
    session_hours: float = Field(
        default=12.0, gt=0, le=720, description="How long somebody who signed in to the web page stays signed in."
    )
    secure_cookies: bool = Field(
        default=False,
        description="Mark session cookies Secure also on requests that came over http, behind a proxy that ends TLS.",
    )
    oidc_issuer: str = Field(
        default="",
        description="OpenID provider that people may sign in with, such as https://login.example.org; empty is none.",
    )
    oidc_client_id: str = Field(default="", description="Our client id at the OpenID provider.")
    oidc_client_secret: SecretStr | None = Field(default=None, description="Our client secret at the OpenID provider.")
    oidc_redirect_url: str = Field(
        default="",
        description="Where the provider sends people back to, …/v1/session/oidc/callback; empty takes the address that "
        "the request came to.",
    )
    oidc_tenant: str = Field(default="default", min_length=1, description="Tenant of those who sign in with OpenID.")
    oidc_role: Literal["member", "reader"] = Field(default="reader", description="Their role.")
    oidc_admins: str = Field(
        default="",
        description="Who of them are administrators: subjects or verified e-mail addresses, comma-separated.",
    )

    @field_validator("admin_key")
    @classmethod
    def _long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < 16:
            raise ValueError("must have at least 16 characters")
        return key

    @model_validator(mode="after")
    def _provider_is_complete(self) -> Self:
        if self.oidc_issuer and not self.oidc_issuer.startswith(("https://", "http://")):
            raise ValueError("FOOTNOTE_OIDC_ISSUER must begin with https:// (or http://, to try it out)")
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("FOOTNOTE_OIDC_ISSUER needs FOOTNOTE_OIDC_CLIENT_ID")
        return self
