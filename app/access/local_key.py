"""A key that lives in one process: how the command line talks to the application it started itself."""

import hmac

from app.access.authenticator import KeyLookup
from app.types import Principal, Role


class LocalKey:
    """A `KeyLookup` that also knows one secret nobody else has ever seen."""

    def __init__(self, keys: KeyLookup, *, secret: str, tenant_id: str) -> None:
        self._keys = keys
        self._secret = secret.encode()
        self._principal = Principal(tenant_id=tenant_id, user_id="local", key_id="local", role=Role.ADMIN)

    def authenticate(self, secret: str) -> Principal | None:
        """The local administrator, or whoever the stored keys know."""
        if hmac.compare_digest(secret.encode(), self._secret):
            return self._principal
        return self._keys.authenticate(secret)
