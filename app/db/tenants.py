"""Tenants and users: rows made when they are first named, inside the caller's transaction."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from app.db.tables import app_user, tenant

DEFAULT_TENANT = "default"


def ensure_tenant(connection: sa.Connection, tenant_id: str, *, now: float) -> None:
    """Make the tenant unless it exists."""
    _insert_absent(connection, tenant, id=tenant_id, created_at=now)


def ensure_user(connection: sa.Connection, tenant_id: str, user_id: str, *, now: float) -> None:
    """Make the tenant and its user unless they exist."""
    ensure_tenant(connection, tenant_id, now=now)
    _insert_absent(connection, app_user, tenant_id=tenant_id, id=user_id, created_at=now)


def _insert_absent(connection: sa.Connection, table: sa.Table, **values: str | float) -> None:
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    connection.execute(insert(table).values(**values).on_conflict_do_nothing())
