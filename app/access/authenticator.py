"""From a request's headers to a principal."""

from dataclasses import dataclass
from typing import Protocol

import anyio
from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from app.access.cookie import require_own_page, session_secret
from app.access.key_cache import KnownPrincipals
from app.db.values import digest_of
from app.errors import Unauthenticated
from app.types import Principal

_LOOKUPS = 4


class KeyLookup(Protocol):
    """Finds the principal of a live key or session."""

    def authenticate(self, secret: str) -> Principal | None:
        """The principal, or None when the secret is unknown, revoked or expired; one lookup either way."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, and by what: `secret` is a key's or, `by_cookie`, a session's."""

    principal: Principal
    secret: str
    by_cookie: bool

    def __repr__(self) -> str:
        return f"Caller({self.principal!r})"  # the secret is for no log


class Authenticator:
    """Checks bearer keys and session cookies. What a change takes away is gone within half a second."""

    def __init__(self, keys: KeyLookup, sessions: KeyLookup, *, known: KnownPrincipals | None = None) -> None:
        self._keys = keys
        self._sessions = sessions
        self._known = known if known is not None else KnownPrincipals()
        # Threads of its own: who is to be refused must not wait behind those whose answers are prepared.
        self._turn = anyio.CapacityLimiter(_LOOKUPS)
        self._threads = anyio.CapacityLimiter(_LOOKUPS)

    async def caller(self, headers: Headers, method: str) -> Caller:
        """Who sends these headers; a bearer key (RFC 6750, section 2.1) wins over a session cookie.

        Raises:
            Unauthenticated: There is no usable key or session. The message is the same for every bad one.
            CrossSiteRequest: A session's request that its own page did not make.
        """
        authorization, cookie = headers.get("authorization"), session_secret(headers)
        if authorization is None and cookie is not None:
            principal = await self._principal(cookie, by_cookie=True)
            require_own_page(headers, method, cookie)
            return Caller(principal, cookie, by_cookie=True)
        secret = bearer_secret(authorization)
        return Caller(await self._principal(secret, by_cookie=False), secret, by_cookie=False)

    async def recheck(self, caller: Caller) -> None:
        """Check that a caller's key or session still stands as it did.

        Raises:
            Unauthenticated: It does not.
        """
        if await self._principal(caller.secret, by_cookie=caller.by_cookie) != caller.principal:
            raise Unauthenticated("The key or session has changed.")

    async def _principal(self, secret: str, *, by_cookie: bool) -> Principal:
        digest = f"{by_cookie:d}{digest_of(secret)}"
        found = self._known.find(digest)
        if found is not None:
            return found
        async with self._turn:
            found = self._known.find(digest)  # another request with this key was looked up meanwhile
            if found is not None:
                return found
            epoch = self._known.epoch
            lookup = self._sessions if by_cookie else self._keys
            found = await anyio.to_thread.run_sync(lookup.authenticate, secret, limiter=self._threads)
            if found is None:
                raise Unauthenticated("The session is over." if by_cookie else "The API key is not valid.")
            self._known.keep(digest, found, epoch=epoch)
        return found


def bearer_secret(authorization: str | None) -> str:
    """The key in an `Authorization` header.

    Raises:
        Unauthenticated: There is none.
    """
    scheme, _, secret = (authorization or "").partition(" ")
    if scheme.casefold() != "bearer" or not secret.strip():
        raise Unauthenticated("Send an API key as 'Authorization: Bearer fn_…'.")
    return secret.strip()


class NoLongerAllowed(Exception):
    """The caller's key or session has ended while an answer was sent; the connection is closed."""


def while_allowed(send: Send, authenticator: Authenticator, scope: Scope) -> Send:
    """`send`, that sends nothing more of a GET's answer once its caller's key or session has changed.

    Exports and files may take longer than a key lives. Event streams look for themselves, so that they can say why
    they end. An answer that is being generated may finish: it was asked for, and is paid for, while the key was good.
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
                raise NoLongerAllowed from None
        else:
            begun = True
        await send(message)

    return checked
