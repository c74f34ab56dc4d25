"""Access to the server: the first key, sessions of the web page, and sign-in with OpenID Connect."""

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
