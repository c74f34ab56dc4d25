"""API keys. A secret is shown once and stored only as its SHA-256: it carries 256 random bits, so no salt is needed."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.audit import Record
from app.db.patch import KEEP, Keep
from app.db.session import Database
from app.db.tables import api_key
from app.db.tenants import DEFAULT_TENANT, ensure_user
from app.db.values import require_text
from app.errors import Conflict, InvalidRequest, NotFound
from app.identifiers import new_id
from app.types import ApiKey, Principal, Role

_PREFIX_CHARS = 9  # fn_ and six more: enough to recognise a key, far too few to guess it
_SHORTEST_SECRET = 16


class KeyRepository:
    """Keys of all tenants."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        *,
        tenant_id: str = DEFAULT_TENANT,
        user_id: str,
        name: str,
        role: Role,
        collections: tuple[str, ...] | None = None,
        expires_at: float | None = None,
        secret: str | None = None,
        record: Record | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key and its secret, which cannot be shown again. The tenant and the user are made if they are new.

        `secret` sets a known one (at least 16 characters, better random); by default it is `fn_` and 32 random bytes.
        `record` writes the act down with it.

        Raises:
            InvalidRequest: A text that cannot be stored, or a secret that is too short.
            Conflict: The given secret is another key's.
        """
        for param, text in (("tenant_id", tenant_id), ("user_id", user_id), ("name", name)):
            require_text(text, param=param)
        if secret is None:
            secret = f"fn_{secrets.token_urlsafe(32)}"
        if len(secret) < _SHORTEST_SECRET:
            raise InvalidRequest(f"A secret needs at least {_SHORTEST_SECRET} characters.", param="secret")
        key = ApiKey(
            id=new_id("key"),
            tenant_id=tenant_id,
            user_id=user_id,
            name=name,
            role=role,
            prefix=secret[:_PREFIX_CHARS],
            collections=collections,
            created_at=self._clock(),
            expires_at=expires_at,
            revoked_at=None,
        )
        try:
            with self._database.write() as connection:
                ensure_user(connection, tenant_id, user_id, now=key.created_at)
                connection.execute(
                    sa.insert(api_key).values(
                        id=key.id,
                        tenant_id=tenant_id,
                        user_id=user_id,
                        name=name,
                        role=role,
                        collections=_stored(collections),
                        prefix=key.prefix,
                        secret_sha256=_digest(secret),
                        created_at=key.created_at,
                        expires_at=expires_at,
                    )
                )
                if record is not None:
                    record(connection, key.id, _shown(key))
        except exc.IntegrityError as error:
            raise Conflict("There is a key with this secret already.") from error
        return key, secret

    def authenticate(self, secret: str) -> Principal | None:
        """Whose secret this is; None when it is nobody's, revoked or expired."""
        digest = _digest(secret)
        with self._database.read() as connection:
            row = connection.execute(sa.select(api_key).where(api_key.c.secret_sha256 == digest)).one_or_none()
        if row is None or not hmac.compare_digest(row.secret_sha256, digest):
            return None
        key = _to_key(row)
        if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= self._clock()):
            return None
        return Principal(
            tenant_id=key.tenant_id, user_id=key.user_id, key_id=key.id, role=key.role, collections=key.collections
        )

    def list(self, *, tenant_id: str) -> tuple[ApiKey, ...]:
        """The tenant's keys, oldest first, revoked ones included."""
        query = sa.select(api_key).where(api_key.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(api_key.c.created_at, api_key.c.id))
            return tuple(_to_key(row) for row in rows)

    def get(self, key_id: str, *, tenant_id: str) -> ApiKey:
        """The key.

        Raises:
            NotFound: No such key of this tenant.
        """
        with self._database.read() as connection:
            return _find(connection, key_id, tenant_id)

    def update(
        self,
        key_id: str,
        *,
        tenant_id: str,
        name: str | Keep = KEEP,
        role: Role | Keep = KEEP,
        collections: tuple[str, ...] | Keep | None = KEEP,
        expires_at: float | Keep | None = KEEP,
        record: Record | None = None,
    ) -> ApiKey:
        """Change what is given; None for `collections` or `expires_at` lifts that limit. `record` writes it down.

        Raises:
            NotFound: No such key of this tenant.
            InvalidRequest: A name that cannot be stored.
        """
        changes: dict[str, Any] = {"name": name, "role": role, "expires_at": expires_at}
        if not isinstance(name, Keep):
            require_text(name, param="name")
        if not isinstance(collections, Keep):
            changes["collections"] = _stored(collections)
        changes = {column: value for column, value in changes.items() if value is not KEEP}
        with self._database.write() as connection:
            before = _find(connection, key_id, tenant_id)
            if changes:
                connection.execute(sa.update(api_key).where(api_key.c.id == key_id).values(**changes))
            after = _find(connection, key_id, tenant_id)
            if record is not None and after != before:
                record(connection, key_id, {"before": _shown(before), "after": _shown(after)})
            return after

    def revoke(self, key_id: str, *, tenant_id: str, record: Record | None = None) -> ApiKey:
        """End the key for good, from this moment; `record` writes it down. Revoking it again changes nothing.

        Raises:
            NotFound: No such key of this tenant.
        """
        with self._database.write() as connection:
            before = _find(connection, key_id, tenant_id)
            revoked = connection.execute(
                sa.update(api_key)
                .where(api_key.c.id == key_id, api_key.c.revoked_at.is_(None))
                .values(revoked_at=self._clock())
            )
            if record is not None and revoked.rowcount:
                record(connection, key_id, _shown(before))
            return _find(connection, key_id, tenant_id)


def _shown(key: ApiKey) -> dict[str, Any]:
    """What the audit log says of a key."""
    return {
        "name": key.name,
        "role": key.role,
        "user_id": key.user_id,
        "collections": _stored(key.collections),
        "expires_at": key.expires_at,
    }


def _digest(secret: str) -> str:
    # a header may hold anything; what is not Unicode is still nobody's secret
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _stored(collections: tuple[str, ...] | None) -> "list[str] | None":
    return None if collections is None else [*collections]


def _find(connection: sa.Connection, key_id: str, tenant_id: str) -> ApiKey:
    query = sa.select(api_key).where(api_key.c.id == key_id, api_key.c.tenant_id == tenant_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such key.")
    return _to_key(row)


def _to_key(row: sa.Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        name=row.name,
        role=Role(row.role),
        prefix=row.prefix,
        collections=None if row.collections is None else tuple(row.collections),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
