"""Tenants, created at first use or by an operator. They are never deleted, because the ledger refers to them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from app.db.audit import Record
from app.db.dialect import insert_or_ignore
from app.db.idempotency import note_effect
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.documents import app_user, tenant
from app.db.values import KEEP, Keep, require_text
from app.errors import Conflict, NotFound
from app.reach import Reach
from app.types import DEFAULT_TENANT

_NEW_TENANT = insert_or_ignore(tenant)
_NEW_USER = insert_or_ignore(app_user)


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organisation with its own documents, users and bills. Times are Unix seconds."""

    id: str
    name: str
    created_at: float
    disabled_at: float | None


class TenantRepository:
    """All tenants. `on_change` is called after every change that may allow or deny access."""

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

    def create(self, tenant_id: str, *, name: str, record: Record) -> Tenant:
        """Creates a tenant; `record` writes the audit entry.

        Raises:
            Conflict: There is one with this id.
            InvalidRequest: A text that cannot be stored.
        """
        require_text(tenant_id, param="id")
        require_text(name, param="name")
        made = Tenant(id=tenant_id, name=name, created_at=self._clock(), disabled_at=None)
        try:
            with self._database.write() as connection:
                connection.execute(sa.insert(tenant).values(id=made.id, name=name, created_at=made.created_at))
                record(connection, made.id, {"name": name})
                note_effect(connection)
        except exc.IntegrityError as error:
            raise Conflict("There is a tenant with this id already.") from error
        return made

    def get(self, tenant_id: str) -> Tenant:
        """The tenant.

        Raises:
            NotFound: There is none with this id.
        """
        with self._database.read() as connection:
            return _find(connection, tenant_id)

    def list(self, *, limit: int, cursor: str | None = None) -> tuple[tuple[Tenant, ...], str | None]:
        """At most `limit` tenants, oldest first, and the cursor of the next page.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        query = sa.select(tenant)
        if cursor is not None:
            query = query.where(
                sa.tuple_(tenant.c.created_at, tenant.c.id) > sa.tuple_(*decode_cursor(cursor, float, str))
            )
        query = query.order_by(tenant.c.created_at, tenant.c.id).limit(limit + 1)
        with self._database.read() as connection:
            found = tuple(_to_tenant(row) for row in connection.execute(query))
        return cut(found, limit, lambda item: (item.created_at, item.id))

    def update(
        self, tenant_id: str, *, name: str | Keep = KEEP, disabled: bool | Keep = KEEP, record: Record
    ) -> Tenant:
        """Updates the given fields; `record` writes the audit entry. Keys of a disabled tenant are refused.

        Raises:
            NotFound: There is none with this id.
            Conflict: The first tenant cannot be disabled.
            InvalidRequest: A name that cannot be stored.
        """
        if disabled is True and tenant_id == DEFAULT_TENANT:
            raise Conflict("The first tenant operates the installation and cannot be disabled.")
        if not isinstance(name, Keep):
            require_text(name, param="name")
        with self._database.write() as connection:
            before = _find(connection, tenant_id)
            changes: dict[str, Any] = {} if isinstance(name, Keep) else {"name": name}
            if not isinstance(disabled, Keep):
                changes["disabled_at"] = disabled_at(before.disabled_at, disabled=disabled, now=self._clock())
            if changes:
                connection.execute(sa.update(tenant).where(tenant.c.id == tenant_id).values(**changes))
            after = _find(connection, tenant_id)
            if after != before:
                record(connection, tenant_id, {"before": _shown(before), "after": _shown(after)})
        self._on_change()
        return after


def disabled_at(before: float | None, *, disabled: bool, now: float) -> float | None:
    """The time of disabling; an unchanged state keeps its time."""
    if not disabled:
        return None
    return now if before is None else before


def ensure_tenant(connection: sa.Connection, tenant_id: str, *, now: float) -> None:
    """Creates the tenant unless it exists."""
    connection.execute(_NEW_TENANT.on(connection), {"id": tenant_id, "created_at": now})


def within(reach: Reach, owned: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions on a table whose rows have a tenant, a user and a key: they are within a caller's reach."""
    conditions = [owned.c.tenant_id == reach.tenant_id]
    if reach.user_id is not None:
        conditions.append(owned.c.user_id == reach.user_id)
    if reach.key_id is not None:
        conditions.append(owned.c.key_id == reach.key_id)
    return tuple(conditions)


def ensure_user(connection: sa.Connection, tenant_id: str, user_id: str, *, now: float) -> None:
    """Creates the tenant and its user unless they exist."""
    ensure_tenant(connection, tenant_id, now=now)
    connection.execute(_NEW_USER.on(connection), {"tenant_id": tenant_id, "id": user_id, "created_at": now})


def _find(connection: sa.Connection, tenant_id: str) -> Tenant:
    row = connection.execute(sa.select(tenant).where(tenant.c.id == tenant_id)).one_or_none()
    if row is None:
        raise NotFound("There is no such tenant.")
    return _to_tenant(row)


def _to_tenant(row: sa.Row[Any]) -> Tenant:
    return Tenant(id=row.id, name=row.name, created_at=row.created_at, disabled_at=row.disabled_at)


def _shown(item: Tenant) -> dict[str, Any]:
    return {"name": item.name, "disabled": item.disabled_at is not None}
