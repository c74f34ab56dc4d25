"""Stores the quotas that administrators set for keys and tenants. Every change is audited."""

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from app.admission.quotas import Override, Quota
from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.access import quota_override
from app.db.tables.documents import api_key, tenant
from app.errors import NotFound
from app.types import Principal


class QuotaRepository:
    """The overrides of all tenants.

    Example:
        >>> quotas = QuotaRepository(database, audit)
        >>> quotas.put(principal, "key", key_id, Quota(requests_per_minute=60), tenant_id=principal.tenant_id)
    """

    def __init__(
        self,
        database: Database,
        audit: AuditLog,
        *,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`on_change` is called after each change; `clock` gives Unix seconds."""
        self._database = database
        self._audit = audit
        self._on_change = on_change
        self._clock = clock

    def all(self) -> tuple[Override, ...]:
        """Every override."""
        return self._read()

    def list(self, *, tenant_id: str) -> tuple[Override, ...]:
        """The overrides of a tenant: its own and those of its keys."""
        return self._read(quota_override.c.tenant_id == tenant_id)

    def get(self, scope_type: str, scope_id: str, *, tenant_id: str) -> Override | None:
        """The override of a key or tenant, None if it has none.

        Raises:
            NotFound: There is no such key of this tenant, or no such tenant.
        """
        with self._database.read() as connection:
            _require(connection, scope_type, scope_id, tenant_id)
        found = self._read(quota_override.c.scope_type == scope_type, quota_override.c.scope_id == scope_id)
        return found[0] if found else None

    def put(
        self,
        principal: Principal,
        scope_type: str,
        scope_id: str,
        quota: Quota,
        *,
        tenant_id: str,
        request_id: str = "",
    ) -> Override:
        """Set or replace the quota of a key or tenant of `tenant_id`.

        Raises:
            NotFound: There is no such key of this tenant, or no such tenant.
        """
        override = Override(scope_type, scope_id, tenant_id, quota, self._clock())
        with self._database.write() as connection:
            _require(connection, scope_type, scope_id, tenant_id)
            before = _remove(connection, scope_type, scope_id)
            connection.execute(
                sa.insert(quota_override).values(
                    scope_type=scope_type,
                    scope_id=scope_id,
                    tenant_id=tenant_id,
                    updated_at=override.updated_at,
                    **_columns(quota),
                )
            )
            detail = {"scope_type": scope_type, "before": before, "after": _columns(quota)}
            self._audit.record_in(connection, principal, "limits.set", scope_id, detail, request_id=request_id)
        self._on_change()
        return override

    def delete(
        self, principal: Principal, scope_type: str, scope_id: str, *, tenant_id: str, request_id: str = ""
    ) -> None:
        """Delete an override, so that the default applies again. Idempotent.

        Raises:
            NotFound: There is no such key of this tenant, or no such tenant.
        """
        with self._database.write() as connection:
            _require(connection, scope_type, scope_id, tenant_id)
            before = _remove(connection, scope_type, scope_id)
            if before is not None:
                detail = {"scope_type": scope_type, "before": before}
                self._audit.record_in(connection, principal, "limits.delete", scope_id, detail, request_id=request_id)
        self._on_change()

    def _read(self, *conditions: sa.ColumnElement[bool]) -> tuple[Override, ...]:
        query = sa.select(quota_override).where(*conditions)
        query = query.order_by(quota_override.c.scope_type.desc(), quota_override.c.scope_id)
        with self._database.read() as connection:
            return tuple(
                Override(row.scope_type, row.scope_id, row.tenant_id, _quota(row), row.updated_at)
                for row in connection.execute(query)
            )


def _require(connection: sa.Connection, scope_type: str, scope_id: str, tenant_id: str) -> None:
    if scope_type == "key":
        query = sa.select(api_key.c.id).where(api_key.c.id == scope_id, api_key.c.tenant_id == tenant_id)
    else:
        query = sa.select(tenant.c.id).where(tenant.c.id == scope_id, tenant.c.id == tenant_id)
    if connection.execute(query).one_or_none() is None:
        raise NotFound(f"There is no such {scope_type}.")


def _remove(connection: sa.Connection, scope_type: str, scope_id: str) -> dict[str, int | None] | None:
    """Delete an override; returns its columns, None if there was none."""
    where = quota_override.c.scope_type == scope_type, quota_override.c.scope_id == scope_id
    row = connection.execute(sa.select(quota_override).where(*where).with_for_update()).one_or_none()
    if row is None:
        return None
    connection.execute(sa.delete(quota_override).where(*where))
    return _columns(_quota(row))


def _columns(quota: Quota) -> dict[str, int | None]:
    return {
        "requests_per_minute": quota.requests_per_minute,
        "tokens_per_minute": quota.tokens_per_minute,
        "concurrent_requests": quota.concurrent_requests,
    }


def _quota(row: sa.Row[Any]) -> Quota:
    return Quota(
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        concurrent_requests=row.concurrent_requests,
    )
