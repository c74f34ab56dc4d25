"""Sign-in through an OpenID provider: authorization code flow with PKCE (OpenID Connect Core 1.0; RFC 7636)."""

import importlib.util
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
from pydantic import SecretStr

from app.access.pending_login import PendingLogins
from app.errors import InvalidRequest, ProviderUnavailable, SetupError, Unauthenticated
from app.settings import AccessSettings
from app.types import Role

CALLBACK_PATH = "/v1/session/oidc/callback"

_LEEWAY_S = 60  # tolerated difference between the provider's clock and ours
_METADATA_S = 600.0
_TIMEOUT_S = 5.0  # for the connection, and for each read
SIGNATURES = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Algorithms of signatures that are accepted: asymmetric ones (RFC 7518, section 3.1; RFC 8037)."""

_NOT_VERIFIED = "The provider's answer could not be verified."
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class OpenIdConfig:
    """The provider, and its users' tenant and role. `admins`: subjects or verified e-mail addresses, case-folded."""

    issuer: str
    client_id: str
    client_secret: SecretStr | None
    redirect_url: str
    tenant_id: str
    role: Role
    admins: frozenset[str]


@dataclass(frozen=True, slots=True)
class Identity:
    """A user whom the provider has authenticated, identified by issuer and subject, which never change."""

    issuer: str
    subject: str
    name: str
    role: Role
    next_path: str


def open_id(settings: AccessSettings) -> "OpenId | None":
    """The configured provider, None without one; sends no request to it yet.

    Raises:
        SetupError: The library authlib is not installed.
    """
    if not settings.oidc_issuer:
        return None
    if importlib.util.find_spec("authlib") is None:
        raise SetupError("FOOTNOTE_OIDC_ISSUER needs authlib; install footnote-rag[oidc].")
    admins = (name.strip().casefold() for name in settings.oidc_admins.split(","))
    return OpenId(
        OpenIdConfig(
            issuer=settings.oidc_issuer.rstrip("/"),
            client_id=settings.oidc_client_id,
            client_secret=settings.oidc_client_secret,
            redirect_url=settings.oidc_redirect_url,
            tenant_id=settings.oidc_tenant,
            role=Role(settings.oidc_role),
            admins=frozenset(name for name in admins if name),
        )
    )


class OpenId:
    """One OpenID provider. Requests go to the issuer's host only, follow no redirect and ignore proxy variables.

    Example:
        >>> url, cookie = provider.begin(next_path="/", callback="https://example.com/v1/session/oidc/callback")
        >>> identity = provider.finish(code=code, state=state, cookie=cookie, callback=callback)
        >>> identity.subject
        '248289761001'
    """

    def __init__(self, config: OpenIdConfig, *, clock: Callable[[], float] = time.time) -> None:
        self.config = config
        self._clock = clock
        self._pending = PendingLogins(clock=clock)
        self._lock = threading.Lock()
        self._metadata: tuple[float, Mapping[str, Any]] | None = None

    def begin(self, *, next_path: str, callback: str) -> tuple[str, str]:
        """The provider's address to redirect the browser to, and the value of the cookie to set.

        Args:
            next_path: The path on this server to go to after the sign-in.
            callback: The address that the provider redirects back to, unless the settings have one.

        Raises:
            InvalidRequest: `next_path` leads elsewhere.
            ProviderUnavailable: The provider does not answer, or not as an OpenID provider.
        """
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        metadata = self._discovered()
        attempt, cookie = self._pending.begin(local_path(next_path))
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.config.client_id,
                "redirect_uri": self.config.redirect_url or callback,
                "scope": "openid email profile",
                "state": attempt.state,
                "nonce": attempt.nonce,
                "code_challenge": create_s256_code_challenge(attempt.verifier),
                "code_challenge_method": "S256",
            }
        )
        endpoint = str(metadata["authorization_endpoint"])
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}", cookie

    def finish(self, *, code: str, state: str, cookie: str | None, callback: str) -> Identity:
        """The user whom the provider has authenticated, read from its ID token.

        Raises:
            Unauthenticated: The attempt is not this browser's, or the provider's answer cannot be verified.
            ProviderUnavailable: The provider does not answer, or not as an OpenID provider.
        """
        attempt = self._pending.finish(cookie, state)
        metadata = self._discovered()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.config.redirect_url or callback,
            "code_verifier": attempt.verifier,
        }
        tokens = self._exchange(metadata, form)
        issuer, keys = self.keys()
        claims = self._verified(str(tokens.get("id_token", "")), keys, issuer, nonce=attempt.nonce)
        return self.identity(claims, next_path=attempt.next_path)

    def keys(self) -> tuple[str, Mapping[str, Any]]:
        """The issuer as tokens name it, and its JSON Web Key Set (RFC 7517), read from the provider.

        Raises:
            ProviderUnavailable: The provider does not answer, or not as an OpenID provider.
        """
        metadata = self._discovered()
        return str(metadata["issuer"]), self._json("GET", str(metadata["jwks_uri"]))

    def _exchange(self, metadata: Mapping[str, Any], form: dict[str, str]) -> Mapping[str, Any]:
        """Exchange the code for tokens, with the client authentication of the provider (RFC 6749, section 2.3.1)."""
        secret = self.config.client_secret
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        auth = None
        if secret is None:
            form = {**form, "client_id": self.config.client_id}
        elif "client_secret_basic" in methods:
            auth = (quote(self.config.client_id, safe=""), quote(secret.get_secret_value(), safe=""))
        else:
            form = {**form, "client_id": self.config.client_id, "client_secret": secret.get_secret_value()}
        return self._json("POST", str(metadata["token_endpoint"]), data=form, auth=auth)

    def _verified(self, token: str, keys: Mapping[str, Any], issuer: str, *, nonce: str) -> Mapping[str, Any]:
        """The ID token's claims, after checking signature, issuer, audience, nonce and times (Core, 3.1.3.7)."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            decoded = jwt.decode(token, KeySet.import_key_set(keys), algorithms=SIGNATURES)  # type: ignore[arg-type]
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                options={
                    "iss": {"essential": True, "value": issuer},
                    "aud": {"essential": True, "value": self.config.client_id},
                },
                params={"nonce": nonce, "client_id": self.config.client_id},
            )
            claims.validate(now=int(self._clock()), leeway=_LEEWAY_S)
        except (JoseError, ValueError, KeyError, TypeError):
            # from None: keeps the token out of logs
            raise Unauthenticated(_NOT_VERIFIED) from None
        return dict(claims)

    def identity(self, claims: Mapping[str, Any], *, next_path: str) -> Identity:
        """The user whom verified claims name.

        Raises:
            Unauthenticated: They name none.
        """
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise Unauthenticated(_NOT_VERIFIED)
        email = str(claims.get("email", "")) if claims.get("email_verified") is True else ""
        known_as = {subject.casefold(), email.casefold()} - {""}
        name = email or str(claims.get("name") or claims.get("preferred_username") or subject)
        return Identity(
            issuer=str(claims["iss"]),
            subject=subject,
            name=name[:_LONGEST_NAME],
            role=Role.ADMIN if known_as & self.config.admins else self.config.role,
            next_path=next_path,
        )

    def _discovered(self) -> Mapping[str, Any]:
        """The provider's metadata (OpenID Connect Discovery 1.0, section 4), cached for ten minutes."""
        with self._lock:
            kept, now = self._metadata, self._clock()
        if kept is not None and now < kept[0]:
            return kept[1]
        metadata = self._json("GET", f"{self.config.issuer}/.well-known/openid-configuration")
        if str(metadata.get("issuer", "")).rstrip("/") != self.config.issuer:
            raise ProviderUnavailable("The metadata of the OpenID provider name another issuer.")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if urlsplit(str(metadata.get(name, "")))[:2] != urlsplit(self.config.issuer)[:2]:
                raise ProviderUnavailable("The OpenID provider's endpoints are not on the issuer's host.")
        with self._lock:
            self._metadata = now + _METADATA_S, metadata
        return metadata

    def _json(self, method: str, url: str, **options: Any) -> Mapping[str, Any]:
        try:
            with httpx.Client(trust_env=False, follow_redirects=False, timeout=_TIMEOUT_S) as client:
                response = client.request(method, url, headers={"Accept": "application/json"}, **options)
            body = response.json() if not response.is_server_error else None
        except (httpx.HTTPError, ValueError):
            # from None: keeps the code and our secret out of logs
            raise ProviderUnavailable("The OpenID provider cannot be reached.") from None
        if method == "POST" and response.is_client_error:
            raise Unauthenticated("The OpenID provider did not accept this sign-in.")
        if not response.is_success or not isinstance(body, dict):
            raise ProviderUnavailable("The answer is not one of an OpenID provider.")
        return body


def local_path(path: str) -> str:
    """`path`, when it is a path on this server (no open redirect).

    Raises:
        InvalidRequest: It might lead to another server.
    """
    # browsers read a backslash as a slash and drop control characters, so that `/\\host` is another server
    odd = "\\" in path or any(character <= " " or character == "\x7f" for character in path)
    if not path.startswith("/") or path.startswith("//") or odd:
        raise InvalidRequest("'next' must be a path on this server.", param="next")
    return path
