"""Keys that exist from the start: the first admin key of a new installation, and the local key of one process."""

import hmac
import sys

from pydantic import SecretStr

from app.access.authenticator import KeyLookup
from app.db.keys import KeyRepository
from app.errors import Conflict
from app.types import Principal, Role

_USER = "admin"


def ensure_first_key(keys: KeyRepository, configured: SecretStr | None, *, tenant_id: str, address: str) -> None:
    """Create an admin key when the tenant has no key at all, and print it once.

    A configured key (`FOOTNOTE_ADMIN_KEY`) becomes the first key and is not printed. The page asks before the printed
    link signs a browser in. The part after `#` is sent to no server (RFC 3986, section 3.5), and the page removes it
    from the address.
    """
    if keys.list(tenant_id=tenant_id):
        return
    try:
        _, secret = keys.create(
            tenant_id=tenant_id,
            user_id=_USER,
            name="first admin key",
            role=Role.ADMIN,
            collections=None,
            expires_at=None,
            secret=configured.get_secret_value() if configured is not None else None,
        )
    except Conflict:
        if not keys.list(tenant_id=tenant_id):
            raise
        return  # another process that starts at this moment was faster
    if configured is None:
        # Not through the log, which may be shipped elsewhere: the key is shown exactly once.
        sys.stderr.write(f"\n  First admin key (shown this once): {secret}\n")
        sys.stderr.write(f"  Open the page with it: {address}/#key={secret}\n\n")
        sys.stderr.flush()


class LocalKey:
    """A `KeyLookup` that also accepts one secret of this process: its own, or for the command line beside it."""

    def __init__(self, keys: KeyLookup, *, secret: str, tenant_id: str) -> None:
        self._keys = keys
        self._secret = secret.encode()
        self._principal = Principal(tenant_id=tenant_id, user_id="local", key_id="local", role=Role.ADMIN)

    def authenticate(self, secret: str) -> Principal | None:
        """The local administrator for the local secret, else the principal of a stored key."""
        if hmac.compare_digest(secret.encode(), self._secret):
            return self._principal
        return self._keys.authenticate(secret)
