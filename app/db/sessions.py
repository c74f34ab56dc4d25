"""Browser sessions. The secret is in the browser's cookie; the database holds only its SHA-256."""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.access import access_session
from app.db.tables.documents import api_key, app_user, tenant
from app.db.values import digest_of
from app.errors import Unauthenticated
from app.ids import new_id
from app.types import OPENID, Principal, Role

_of_key = sa.and_(api_key.c.id == access_session.c.key_id, api_key.c.tenant_id == access_session.c.tenant_id)
_of_user = sa.and_(app_user.c.tenant_id == access_session.c.tenant_id, app_user.c.id == access_session.c.user_id)
_joined = (
    sa.select(
        access_session,
        api_key.c.role.label("key_role"),
        api_key.c.collections,
        api_key.c.revoked_at,
        api_key.c.expires_at.label("key_expires_at"),
        app_user.c.name.label("user_name"),
        app_user.c.disabled_at.label("user_disabled_at"),
        tenant.c.disabled_at.label("tenant_disabled_at"),
    )
    .join_from(access_session, api_key, _of_key, isouter=True)
    .join(app_user, _of_user)
    .join(tenant, tenant.c.id == access_session.c.tenant_id)
)


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in session; `principal` has the current role and limits of its key. Times are Unix seconds.

    `user_name` is the user's display name, empty without one.
    """

    id: str
    principal: Principal
    created_at: float
    expires_at: float
    user_name: str = ""


class SessionRepository:
    """Sessions of all tenants. A session lasts `hours`, and ends when its key or its user ends."""

    def __init__(
        self,
        database: Database,
        *,
        hours: float,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._seconds = hours * 3600
        self._on_change = on_change
        self._clock = clock

    def open(self, principal: Principal, *, with_key: bool) -> tuple[Session, str]:
        """Creates a session of the principal's user and its secret, 32 random bytes; deletes expired sessions.

        Args:
            principal: The user who signs in.
            with_key: Whether the session follows the principal's key; otherwise it has the principal's role.

        Raises:
            Unauthenticated: The key or the user is not good any more.
        """
        with self._database.write() as connection:
            secret = self.open_in(connection, principal, with_key=with_key)
        opened = self.find(secret)
        if opened is None:
            raise Unauthenticated("The API key is not valid.")
        return opened, secret

    def open_in(self, connection: sa.Connection, principal: Principal, *, with_key: bool) -> str:
        """As `open`, inside the transaction that creates the user; returns the secret alone."""
        assert with_key or principal.collections is None, "only a key's session is limited to collections"
        secret, now = secrets.token_urlsafe(32), self._clock()
        connection.execute(sa.delete(access_session).where(access_session.c.expires_at <= now))
        connection.execute(
            sa.insert(access_session).values(
                id=new_id("session"),
                secret_sha256=digest_of(secret),
                tenant_id=principal.tenant_id,
                user_id=principal.user_id,
                key_id=principal.key_id if with_key else None,
                role=None if with_key else principal.role,
                created_at=now,
                expires_at=now + self._seconds,
            )
        )
        return secret

    def find(self, secret: str) -> Session | None:
        """The session; None when it, its key or its user does not exist, has expired or is disabled."""
        digest, now = digest_of(secret), self._clock()
        with self._database.read() as connection:
            row = connection.execute(_joined.where(access_session.c.secret_sha256 == digest)).one_or_none()
        if row is None or not hmac.compare_digest(row.secret_sha256, digest) or not _is_live(row, now):
            return None
        return Session(
            id=row.id,
            principal=_principal_of(row),
            created_at=row.created_at,
            expires_at=_end(row),
            user_name=row.user_name,
        )

    def authenticate(self, secret: str) -> Principal | None:
        """The principal of the session; None when it is unknown or has ended."""
        found = self.find(secret)
        return None if found is None else found.principal

    def end(self, secret: str) -> None:
        """Ends the session, if it exists."""
        with self._database.write() as connection:
            connection.execute(sa.delete(access_session).where(access_session.c.secret_sha256 == digest_of(secret)))
        self._on_change()


def _is_live(row: sa.Row[Any], now: float) -> bool:
    ended = (row.revoked_at, row.user_disabled_at, row.tenant_disabled_at)
    return _end(row) > now and all(moment is None for moment in ended)


def _end(row: sa.Row[Any]) -> float:
    ends: list[float] = [row.expires_at] if row.key_expires_at is None else [row.expires_at, row.key_expires_at]
    return min(ends)


def _principal_of(row: sa.Row[Any]) -> Principal:
    return Principal(
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        key_id=row.key_id if row.key_id is not None else OPENID,
        role=Role(row.key_role if row.key_id is not None else row.role),
        collections=None if row.collections is None else tuple(row.collections),
    )
