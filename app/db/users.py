"""Users, who own keys and whose usage is recorded. Their rows are never deleted, because the ledger refers to them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.audit import Record
from app.db.idempotency import note_effect
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.access import access_session, user_identity
from app.db.tables.documents import api_key, app_user
from app.db.tenants import disabled_at, ensure_tenant
from app.db.values import KEEP, Keep, require_text
from app.errors import Conflict, InvalidRequest, NotFound
from app.ids import new_id
from app.types import Principal


@dataclass(frozen=True, slots=True)
class User:
    """A person or a program of one tenant. Times are Unix seconds."""

    id: str
    tenant_id: str
    name: str
    created_at: float
    disabled_at: float | None


class UserRepository:
    """Users of all tenants. `on_change` is called after every change that may allow or deny access."""

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

    def create(self, user_id: str, *, tenant_id: str, name: str, record: Record) -> User:
        """Creates a user; `record` writes the audit entry.

        Raises:
            Conflict: The tenant has one with this id.
            InvalidRequest: A text that cannot be stored.
        """
        require_text(user_id, param="id")
        require_text(name, param="name")
        made = User(id=user_id, tenant_id=tenant_id, name=name, created_at=self._clock(), disabled_at=None)
        try:
            with self._database.write() as connection:
                ensure_tenant(connection, tenant_id, now=made.created_at)
                insert_user(connection, made)
                record(connection, user_id, {"name": name})
                note_effect(connection)
        except exc.IntegrityError as error:
            raise Conflict("There is a user with this id already.") from error
        return made

    def get(self, user_id: str, *, tenant_id: str) -> User:
        """The user.

        Raises:
            NotFound: No such user of this tenant.
        """
        with self._database.read() as connection:
            return _find(connection, user_id, tenant_id)

    def name_of(self, principal: Principal) -> str:
        """The display name of a caller; empty without one, and for a caller without a row."""
        query = sa.select(app_user.c.name).where(*_is(principal.user_id, principal.tenant_id))
        with self._database.read() as connection:
            return connection.execute(query).scalar_one_or_none() or ""

    def id_of(self, text: str, *, tenant_id: str) -> str:
        """The id of the tenant's user that `text` means: by id, else by display name in any case; `text` if by neither.

        Disabled users are meant only where no other user has the name.

        Raises:
            InvalidRequest: Several users have this name (the message has their ids), or a text that cannot be stored.
        """
        require_text(text, param="user_id")
        wanted = _folded(text)
        mine = sa.select(app_user).where(app_user.c.tenant_id == tenant_id)
        with self._database.read() as connection:
            if connection.execute(mine.where(app_user.c.id == text)).first() is not None:
                return text
            # compared here: SQLite folds the case of ASCII letters only
            named = connection.execute(mine.where(app_user.c.name != "").order_by(app_user.c.id))
            bearers = [row for row in named if _folded(row.name) == wanted]
        bearers = [row for row in bearers if row.disabled_at is None] or bearers
        if len(bearers) > 1:
            ids = ", ".join(row.id for row in bearers)
            raise InvalidRequest(f"Several users have this name. Give the id of one of them: {ids}.", param="user_id")
        return str(bearers[0].id) if bearers else text

    def list(self, *, tenant_id: str, limit: int, cursor: str | None = None) -> tuple[tuple[User, ...], str | None]:
        """At most `limit` users of the tenant, oldest first, and the cursor of the next page.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        query = sa.select(app_user).where(app_user.c.tenant_id == tenant_id)
        if cursor is not None:
            after = sa.tuple_(*decode_cursor(cursor, float, str))
            query = query.where(sa.tuple_(app_user.c.created_at, app_user.c.id) > after)
        query = query.order_by(app_user.c.created_at, app_user.c.id).limit(limit + 1)
        with self._database.read() as connection:
            found = tuple(_to_user(row) for row in connection.execute(query))
        return cut(found, limit, lambda item: (item.created_at, item.id))

    def update(
        self,
        user_id: str,
        *,
        tenant_id: str,
        name: str | Keep = KEEP,
        disabled: bool | Keep = KEEP,
        record: Record,
    ) -> User:
        """Updates the given fields; `record` writes the audit entry. A disabled user's keys and sessions are refused.

        Raises:
            NotFound: No such user of this tenant.
            InvalidRequest: A name that cannot be stored.
        """
        if not isinstance(name, Keep):
            require_text(name, param="name")
        with self._database.write() as connection:
            before = _find(connection, user_id, tenant_id)
            changes: dict[str, Any] = {} if isinstance(name, Keep) else {"name": name}
            if not isinstance(disabled, Keep):
                changes["disabled_at"] = disabled_at(before.disabled_at, disabled=disabled, now=self._clock())
            if changes:
                connection.execute(sa.update(app_user).where(*_is(user_id, tenant_id)).values(**changes))
            after = _find(connection, user_id, tenant_id)
            if after != before:
                record(connection, user_id, {"before": _shown(before), "after": _shown(after)})
        self._on_change()
        return after

    def remove(self, user_id: str, *, tenant_id: str, record: Record) -> User:
        """Disables the user and ends all its keys and sessions; the row stays, because the ledger refers to it.

        Raises:
            NotFound: No such user of this tenant.
        """
        now = self._clock()
        with self._database.write() as connection:
            before = _find(connection, user_id, tenant_id)
            of_user = api_key.c.tenant_id == tenant_id, api_key.c.user_id == user_id, api_key.c.revoked_at.is_(None)
            ended = connection.execute(sa.update(api_key).where(*of_user).values(revoked_at=now)).rowcount
            connection.execute(
                sa.delete(access_session).where(
                    access_session.c.tenant_id == tenant_id, access_session.c.user_id == user_id
                )
            )
            since = disabled_at(before.disabled_at, disabled=True, now=now)
            connection.execute(sa.update(app_user).where(*_is(user_id, tenant_id)).values(disabled_at=since))
            record(connection, user_id, {**_shown(before), "keys_revoked": ended})
            after = _find(connection, user_id, tenant_id)
        self._on_change()
        return after

    def identified(self, *, issuer: str, subject: str, tenant_id: str, name: str) -> User:
        """The user of an OpenID provider's (issuer, subject), created at the first sign-in.

        Raises:
            InvalidRequest: A text that cannot be stored.
        """
        for param, text in (("issuer", issuer), ("subject", subject), ("name", name)):
            require_text(text, param=param)
        known = (
            user_identity.c.issuer == issuer,
            user_identity.c.subject == subject,
            user_identity.c.tenant_id == tenant_id,
        )
        query = sa.select(user_identity.c.user_id).where(*known)
        made = User(id=new_id("user"), tenant_id=tenant_id, name=name, created_at=self._clock(), disabled_at=None)
        with self._database.read() as connection:
            found = connection.execute(query).scalar_one_or_none()
            if found is not None:
                return _find(connection, found, tenant_id)
        try:
            with self._database.write() as connection:
                found = connection.execute(query).scalar_one_or_none()
                if found is not None:
                    return _find(connection, found, tenant_id)
                ensure_tenant(connection, tenant_id, now=made.created_at)
                insert_user(connection, made)
                connection.execute(
                    sa.insert(user_identity).values(
                        issuer=issuer,
                        subject=subject,
                        tenant_id=tenant_id,
                        user_id=made.id,
                        created_at=made.created_at,
                    )
                )
            return made
        except exc.IntegrityError:  # the same person, twice at once
            with self._database.read() as connection:
                return _find(connection, connection.execute(query).scalar_one(), tenant_id)


def insert_user(connection: sa.Connection, made: User) -> None:
    """Insert a user of a tenant that exists."""
    connection.execute(
        sa.insert(app_user).values(id=made.id, tenant_id=made.tenant_id, name=made.name, created_at=made.created_at)
    )


def _folded(name: str) -> str:
    return name.strip().casefold()


def _is(user_id: str, tenant_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return app_user.c.id == user_id, app_user.c.tenant_id == tenant_id


def _find(connection: sa.Connection, user_id: str, tenant_id: str) -> User:
    row = connection.execute(sa.select(app_user).where(*_is(user_id, tenant_id))).one_or_none()
    if row is None:
        raise NotFound("There is no such user.")
    return _to_user(row)


def _to_user(row: sa.Row[Any]) -> User:
    return User(
        id=row.id,
        tenant_id=row.tenant_id,
        name=row.name,
        created_at=row.created_at,
        disabled_at=row.disabled_at,
    )


def _shown(item: User) -> dict[str, Any]:
    return {"name": item.name, "disabled": item.disabled_at is not None}
