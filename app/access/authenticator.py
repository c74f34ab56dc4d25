"""From an Authorization header to a principal."""

from typing import Protocol

from app.errors import Unauthenticated
from app.types import Principal


class KeyLookup(Protocol):
    """Finds the principal of a live key."""

    def authenticate(self, secret: str) -> Principal | None:
        """The principal, or None when the key is unknown, revoked or expired."""
        ...


class Authenticator:
    """Checks bearer keys; nothing is cached, so a revoked key is refused at once."""

    def __init__(self, keys: KeyLookup) -> None:
        self._keys = keys

    def principal(self, authorization: str | None) -> Principal:
        """Who sends this header (RFC 6750, section 2.1).

        Raises:
            Unauthenticated: There is no usable key in it. The message is the same for every bad key.
        """
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.casefold() != "bearer" or not secret.strip():
            raise Unauthenticated("Send an API key as 'Authorization: Bearer fn_…'.")
        principal = self._keys.authenticate(secret.strip())
        if principal is None:
            raise Unauthenticated("The API key is not valid.")
        return principal
