"""API keys. A secret is shown once and stored as its SHA-256; after a rotation the old secret works for a while."""

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.audit import Record
from app.db.idempotency import note_effect
from app.db.session import Database
from app.db.tables.access import access_session
from app.db.tables.documents import api_key, app_user, tenant
from app.db.tenants import ensure_user
from app.db.values import KEEP, Keep, digest_of, require_text
from app.errors import Conflict, InvalidRequest, NotFound
from app.ids import new_id
from app.types import DEFAULT_TENANT, ApiKey, Principal, Role

_PREFIX_CHARS = 9  # fn_ and six more: enough to recognise a key, too few to guess it
_SHORTEST_SECRET = 16

LONGEST_OVERLAP_S = 7 * 86_400
"""The longest time, in seconds, for which an old secret works after a rotation."""

_owner = sa.and_(app_user.c.tenant_id == api_key.c.tenant_id, app_user.c.id == api_key.c.user_id)
_with_owner = (
    sa.select(
        api_key,
        app_user.c.name.label("user_name"),
        app_user.c.disabled_at.label("user_disabled_at"),
        tenant.c.disabled_at.label("tenant_disabled_at"),
    )
    .join_from(api_key, app_user, _owner)
    .join(tenant, tenant.c.id == api_key.c.tenant_id)
)


class KeyRepository:
    """Keys of all tenants. `on_change` is called after every change of access, to clear caches.

    Example:
        >>> key, secret = KeyRepository(database).create(user_id="ann", name="laptop", role=Role.MEMBER)
        >>> KeyRepository(database).authenticate(secret).user_id
        'ann'
    """

    def __init__(
        self,
        database: Database,
        *,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._on_change = on_change
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
        """Create a key; returns it and its secret, which cannot be shown again. Creates the tenant and the user if new.

        `secret` sets the secret (at least 16 characters, better random); by default it is `fn_` and 32 random bytes.
        `record` writes the audit entry in the same transaction.

        Raises:
            InvalidRequest: A text that cannot be stored, or a secret that is too short.
            Conflict: Another key has this secret.
        """
        for param, text in (("tenant_id", tenant_id), ("user_id", user_id), ("name", name)):
            require_text(text, param=param)
        if secret is None:
            secret = new_secret()
        if len(secret) < _SHORTEST_SECRET:
            raise InvalidRequest(f"A secret needs at least {_SHORTEST_SECRET} characters.", param="secret")
        now = self._clock()
        try:
            with self._database.write() as connection:
                ensure_user(connection, tenant_id, user_id, now=now)
                key = insert_key(
                    connection,
                    secret,
                    tenant_id=tenant_id,
                    user_id=user_id,
                    name=name,
                    role=role,
                    collections=collections,
                    expires_at=expires_at,
                    now=now,
                )
                if record is not None:
                    record(connection, key.id, _shown(key))
                note_effect(connection)
        except exc.IntegrityError as error:
            raise Conflict("There is a key with this secret already.") from error
        return key, secret

    def note_uses(self, uses: Mapping[str, float]) -> None:
        """Store the times, Unix seconds, at which keys were last used, by key id; an earlier time changes nothing."""
        last = api_key.c.last_used_at
        with self._database.write() as connection:
            for key_id, at in sorted(uses.items()):  # in one order, so that two transactions never wait for each other
                is_later = sa.or_(last.is_(None), last < at)
                connection.execute(sa.update(api_key).where(api_key.c.id == key_id, is_later).values(last_used_at=at))

    def newest_working(self, user_id: str, *, tenant_id: str) -> ApiKey | None:
        """The newest key of a user that is neither revoked nor expired; None without one."""
        of_user = api_key.c.tenant_id == tenant_id, api_key.c.user_id == user_id
        lives = sa.or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > self._clock())
        query = _with_owner.where(*of_user, api_key.c.revoked_at.is_(None), lives)
        with self._database.read() as connection:
            row = connection.execute(query.order_by(api_key.c.created_at.desc(), api_key.c.id.desc()).limit(1)).first()
        return None if row is None else _to_key(row)

    def now(self) -> float:
        """Unix seconds by the clock that decides whether a key has expired."""
        return self._clock()

    def authenticate(self, secret: str) -> Principal | None:
        """The principal of a secret; None when it is unknown, revoked or expired, or its user or tenant is disabled.

        Runs one query in every case.
        """
        digest, now = digest_of(secret), self._clock()
        is_it = sa.or_(api_key.c.secret_sha256 == digest, api_key.c.previous_sha256 == digest)
        with self._database.read() as connection:
            row = connection.execute(_with_owner.where(is_it)).first()
        if row is None:
            return None
        current = hmac.compare_digest(row.secret_sha256, digest)
        previous = hmac.compare_digest(row.previous_sha256 or "", digest)
        ends = [row.expires_at] if current else [row.expires_at, row.previous_expires_at]
        ended = (row.revoked_at, row.user_disabled_at, row.tenant_disabled_at)
        if not (current or previous) or any(moment is not None for moment in ended):
            return None
        if any(end is not None and end <= now for end in ends):
            return None
        key = _to_key(row)
        return Principal(
            tenant_id=key.tenant_id, user_id=key.user_id, key_id=key.id, role=key.role, collections=key.collections
        )

    def list(self, *, tenant_id: str) -> tuple[ApiKey, ...]:
        """The tenant's keys, oldest first, revoked ones included."""
        query = _with_owner.where(api_key.c.tenant_id == tenant_id)
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
        """Change the given fields; None for `collections` or `expires_at` removes that limit.

        `record` writes the audit entry in the same transaction.

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
        self._on_change()
        return after

    def rotate(
        self, key_id: str, *, tenant_id: str, overlap_s: float, record: Record | None = None
    ) -> tuple[ApiKey, str]:
        """Give the key a new secret; the old one works for `overlap_s` seconds more (0 to `LONGEST_OVERLAP_S`).

        The key keeps its id, budgets, limits and conversations. The secret of an earlier rotation ends now. Sessions
        end with the old secret, which may have opened them.

        Raises:
            NotFound: No such key of this tenant.
            Conflict: It is revoked or has expired.
        """
        assert 0 <= overlap_s <= LONGEST_OVERLAP_S, "checked in the request body"
        secret, now = new_secret(), self._clock()
        end = now + overlap_s
        with self._database.write() as connection:
            # locked: the second of two simultaneous rotations sees the secret of the first
            connection.execute(sa.select(api_key.c.id).where(api_key.c.id == key_id).with_for_update())
            before = _find(connection, key_id, tenant_id)
            if before.revoked_at is not None or (before.expires_at is not None and before.expires_at <= now):
                raise Conflict("The key is revoked or has expired; make a new one.")
            connection.execute(
                sa.update(api_key)
                .where(api_key.c.id == key_id)
                .values(
                    prefix=secret[:_PREFIX_CHARS],
                    secret_sha256=digest_of(secret),
                    rotated_at=now,
                    previous_prefix=before.prefix,
                    previous_sha256=api_key.c.secret_sha256,
                    previous_expires_at=end,
                )
            )
            connection.execute(
                sa.update(access_session)
                .where(access_session.c.key_id == key_id, access_session.c.expires_at > end)
                .values(expires_at=end)
            )
            after = _find(connection, key_id, tenant_id)
            if record is not None:
                record(connection, key_id, {"prefix": after.prefix, "overlap_s": overlap_s})
            note_effect(connection)
        self._on_change()
        return after, secret

    def revoke(self, key_id: str, *, tenant_id: str, record: Record | None = None) -> ApiKey:
        """Revoke the key at once and for good; `record` writes the audit entry. Idempotent.

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
            after = _find(connection, key_id, tenant_id)
        self._on_change()
        return after


def _shown(key: ApiKey) -> dict[str, Any]:
    """The fields of a key for the audit log."""
    return {
        "name": key.name,
        "role": key.role,
        "user_id": key.user_id,
        "collections": _stored(key.collections),
        "expires_at": key.expires_at,
    }


def new_secret() -> str:
    """The secret of a new key: `fn_` and 32 random bytes."""
    return f"fn_{secrets.token_urlsafe(32)}"


def insert_key(
    connection: sa.Connection,
    secret: str,
    *,
    tenant_id: str,
    user_id: str,
    name: str,
    role: Role,
    collections: tuple[str, ...] | None,
    expires_at: float | None,
    now: float,
) -> ApiKey:
    """Insert a key with this secret of a user that exists, and return it."""
    key_id = new_id("key")
    connection.execute(
        sa.insert(api_key).values(
            id=key_id,
            tenant_id=tenant_id,
            user_id=user_id,
            name=name,
            role=role,
            collections=_stored(collections),
            prefix=secret[:_PREFIX_CHARS],
            secret_sha256=digest_of(secret),
            created_at=now,
            expires_at=expires_at,
        )
    )
    return _find(connection, key_id, tenant_id)


def _stored(collections: tuple[str, ...] | None) -> "list[str] | None":
    return None if collections is None else [*collections]


def _find(connection: sa.Connection, key_id: str, tenant_id: str) -> ApiKey:
    query = _with_owner.where(api_key.c.id == key_id, api_key.c.tenant_id == tenant_id)
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
        rotated_at=row.rotated_at,
        previous_prefix=row.previous_prefix,
        previous_expires_at=row.previous_expires_at,
        user_name=row.user_name,
        last_used_at=row.last_used_at,
    )
