"""Access tokens of the OpenID provider, for clients that let their users sign in there (RFC 9068; RFC 8707).

A token counts only if the provider signed it for this server: its audience must be the configured address of the
protected resource. Tokens for other services of the same provider, and ID tokens, are not accepted.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from app.access.authenticator import Caller
from app.access.openid import SIGNATURES, Identity, OpenId
from app.admission.failed_logins import network_of
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.errors import ProviderUnavailable, Unauthenticated
from app.outbound.threads import OutboundThreads
from app.types import OPENID, Principal

_FRESH_S = 600.0  # the provider's keys are read again after that
_BETWEEN_READS_S = 20.0  # for a key that is not among them, or after a failure
_LEEWAY_S = 60  # tolerated difference between the provider's clock and ours
_NOT_VALID = "The access token is not valid for this server."


class ProviderKeys:
    """The provider's keys, kept for ten minutes, and longer while it cannot be reached. Safe to use from any thread.

    A token that names a key which is not among them has them read again, at most every 20 s: providers change keys.
    """

    def __init__(self, openid: OpenId, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._openid = openid
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[str, Mapping[str, Any]] | None = None
        self._read_at = self._tried_at = float("-inf")

    @property
    def kept(self) -> tuple[str, Mapping[str, Any]] | None:
        """The issuer and its JSON Web Key Set (RFC 7517), as last read; None before the first time."""
        return self._kept

    def due(self, key_id: object) -> bool:
        """Whether the keys are to be read for a token that names this key."""
        with self._lock:
            now = self._clock()
            if now - self._tried_at < _BETWEEN_READS_S:
                return False
            known = self._kept is not None and (
                key_id is None or any(key.get("kid") == key_id for key in self._kept[1].get("keys", ()))
            )
            return not known or now - self._read_at >= _FRESH_S

    def read(self) -> None:
        """Read the keys; those kept stay where the provider does not answer.

        Raises:
            ProviderUnavailable: It does not answer, and none are kept.
        """
        with self._lock:
            self._tried_at = self._clock()
        try:
            found = self._openid.keys()
        except ProviderUnavailable:
            if self._kept is None:
                raise
            return
        with self._lock:
            self._kept, self._read_at = found, self._clock()


class ProviderTokens:
    """Authenticates callers by access tokens of the OpenID provider. Used on the event loop alone.

    Example:
        >>> caller = await tokens.caller("eyJ…", address="203.0.113.9")
        >>> caller.principal.key_id
        'openid'
    """

    def __init__(
        self,
        openid: OpenId,
        *,
        resource: str,
        users: UserRepository,
        tenants: TenantRepository,
        threads: OutboundThreads,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take collaborators.

        Args:
            openid: The provider.
            resource: The address that the tokens must be for.
            users: Has the provider's users; the first token of one creates it.
            tenants: Has their tenant.
            threads: Wait for the provider.
            clock: Unix seconds.
        """
        self.resource = resource
        self._openid = openid
        self._users = users
        self._tenants = tenants
        self._threads = threads
        self._clock = clock
        self._keys = ProviderKeys(openid)

    @property
    def issuer(self) -> str:
        """The provider, as authorization servers are named (RFC 8414)."""
        return self._openid.config.issuer

    async def caller(self, token: str, *, address: str) -> Caller:
        """The caller with this access token.

        Args:
            token: The token, a JSON Web Token (RFC 7519).
            address: The client's address, which gets its share of the threads that wait for the provider.

        Raises:
            Unauthenticated: The token is not valid for this server, or its user or tenant is disabled.
            ProviderUnavailable, ServerFull: The provider's keys cannot be read.
        """
        if self._keys.due(_key_id(token)):
            await self._threads.run(self._keys.read, party=network_of(address))
        kept = self._keys.kept
        if kept is None:
            raise ProviderUnavailable("The keys of the OpenID provider could not be read.")
        identity = self._openid.identity(self._verified(token, *kept), next_path="")
        return Caller(await anyio.to_thread.run_sync(self._principal, identity), token, by_cookie=False)

    def _verified(self, token: str, issuer: str, keys: Mapping[str, Any]) -> Mapping[str, Any]:
        """The token's claims, after a check of signature, issuer, audience and times (RFC 9068, section 4)."""
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            decoded = jwt.decode(token, KeySet.import_key_set(keys), algorithms=SIGNATURES)  # type: ignore[arg-type]
            registry = jwt.JWTClaimsRegistry(
                now=int(self._clock()),
                leeway=_LEEWAY_S,
                iss={"essential": True, "value": issuer},
                aud={"essential": True, "value": self.resource},
                exp={"essential": True},
                sub={"essential": True},
            )
            registry.validate(decoded.claims)
        except (JoseError, ValueError, KeyError, TypeError):
            # from None: keeps the token out of logs
            raise Unauthenticated(_NOT_VALID) from None
        return dict(decoded.claims)

    def _principal(self, identity: Identity) -> Principal:
        tenant_id = self._openid.config.tenant_id
        user = self._users.identified(
            issuer=identity.issuer, subject=identity.subject, tenant_id=tenant_id, name=identity.name
        )
        if user.disabled_at is not None or self._tenants.get(tenant_id).disabled_at is not None:
            raise Unauthenticated(_NOT_VALID)
        return Principal(tenant_id=tenant_id, user_id=user.id, key_id=OPENID, role=identity.role)


def is_token(secret: str) -> bool:
    """Whether a bearer secret has the form of a signed JSON Web Token (RFC 7515, section 3.1); keys have not.

    Example:
        >>> is_token("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"), is_token("fn_a1b2c3")
        (True, False)
    """
    return secret.startswith("eyJ") and secret.count(".") == 2


def _key_id(token: str) -> object:
    """The key that a token's header names; None where it names none, or is no header."""
    header = token.partition(".")[0]
    try:
        return json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))).get("kid")
    except (ValueError, AttributeError, RecursionError):
        return None
