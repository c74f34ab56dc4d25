"""Authenticates requests by bearer key or session cookie, and cuts responses off when the key is revoked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import anyio
from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from app.access.cookie import require_own_page, session_secret
from app.access.key_cache import KeyCache
from app.db.values import digest_of
from app.errors import Unauthenticated
from app.types import Principal

_LOOKUPS = 4


class KeyLookup(Protocol):
    """Finds the principal of a valid key or session.

    Example:
        >>> keys.authenticate("fn_a1b2c3…")
        Principal(tenant_id='default', user_id='ada', key_id='key_1', role=<Role.MEMBER: 'member'>)
    """

    def authenticate(self, secret: str) -> Principal | None:
        """The principal; None when the secret is unknown, revoked or expired. Takes one lookup in both cases."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller and its credential: the `secret` of a key or, with `by_cookie`, of a session."""

    principal: Principal
    secret: str
    by_cookie: bool

    def __repr__(self) -> str:
        return f"Caller({self.principal!r})"  # keeps the secret out of logs


class Authenticator:
    """Authenticates bearer keys and session cookies. Revoked keys and ended sessions are refused within 0.5 s.

    Example:
        >>> authenticator = Authenticator(keys, sessions)
        >>> caller = await authenticator.caller(request.headers, request.method)
        >>> caller.principal.tenant_id
        'default'
    """

    def __init__(
        self,
        keys: KeyLookup,
        sessions: KeyLookup,
        *,
        cache: KeyCache | None = None,
        on_use: Callable[[Principal], None] = lambda _: None,
    ) -> None:
        """`on_use` is called after each lookup, at most twice a second for a key, and must not block."""
        self._on_use = on_use
        self._keys = keys
        self._sessions = sessions
        self._cache = cache if cache is not None else KeyCache()
        # Threads of its own: a request with a bad key is refused without waiting for answers that are being prepared.
        self._turn = anyio.CapacityLimiter(_LOOKUPS)
        self._threads = anyio.CapacityLimiter(_LOOKUPS)

    async def caller(self, headers: Headers, method: str) -> Caller:
        """Authenticate the sender of these headers; a bearer key (RFC 6750, section 2.1) wins over a session cookie.

        Raises:
            Unauthenticated: There is no valid key or session. The message does not say why it is not valid.
            CrossSiteRequest: A request with a session cookie that did not come from our own page.
        """
        authorization, cookie = headers.get("authorization"), session_secret(headers)
        if authorization is None and cookie is not None:
            principal = await self._principal(cookie, by_cookie=True)
            require_own_page(headers, method, cookie)
            return Caller(principal, cookie, by_cookie=True)
        secret = bearer_secret(authorization)
        return Caller(await self._principal(secret, by_cookie=False), secret, by_cookie=False)

    async def recheck(self, caller: Caller) -> None:
        """Check that a caller's key or session is still valid and unchanged.

        Raises:
            Unauthenticated: It has ended or changed.
        """
        if await self._principal(caller.secret, by_cookie=caller.by_cookie) != caller.principal:
            raise Unauthenticated("The key or session has changed.")

    async def _principal(self, secret: str, *, by_cookie: bool) -> Principal:
        digest = f"{by_cookie:d}{digest_of(secret)}"
        found = self._cache.find(digest)
        if found is not None:
            return found
        async with self._turn:
            found = self._cache.find(digest)  # another request with this key was looked up meanwhile
            if found is not None:
                return found
            epoch = self._cache.epoch
            lookup = self._sessions if by_cookie else self._keys
            found = await anyio.to_thread.run_sync(lookup.authenticate, secret, limiter=self._threads)
            if found is None:
                raise Unauthenticated("The session is over." if by_cookie else "The API key is not valid.")
            self._cache.store(digest, found, epoch=epoch)
            self._on_use(found)
        return found


def bearer_secret(authorization: str | None) -> str:
    """The bearer key in an `Authorization` header (RFC 6750).

    Raises:
        Unauthenticated: The header is missing or holds no bearer key.
    """
    scheme, _, secret = (authorization or "").partition(" ")
    if scheme.casefold() != "bearer" or not secret.strip():
        raise Unauthenticated("Send an API key as 'Authorization: Bearer fn_…'.")
    return secret.strip()


class AccessRevoked(Exception):
    """The caller's key or session ended while the response was sent; the connection is closed."""


def until_revoked(send: Send, authenticator: Authenticator, scope: Scope) -> Send:
    """Wrap `send` so that a GET's response stops once the caller's key or session has ended or changed.

    Exports and files may take longer than a key lives. Event streams check by themselves, so that they can say why
    they end. An answer that is being generated may finish: it was requested, and is billed, while the key was valid.

    Raises:
        AccessRevoked: By the wrapped `send`, for the first message after the change.
    """
    caller: Caller | None = scope["state"].get("caller")
    if caller is None or scope["method"] != "GET":
        return send
    checking = begun = False

    async def checked(message: Message) -> None:
        nonlocal checking, begun
        if message["type"] == "http.response.start":
            media_type = Headers(raw=message["headers"]).get("content-type", "")
            checking = not media_type.startswith("text/event-stream")
        elif checking and begun:
            try:
                await authenticator.recheck(caller)
            except Unauthenticated:
                raise AccessRevoked from None
        else:
            begun = True
        await send(message)

    return checked
