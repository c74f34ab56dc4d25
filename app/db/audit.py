"""The audit log of administrators' actions and everybody's deletions, each written in the action's transaction."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import sqlalchemy as sa

from app.db.audit_names import AuditNames, read_names
from app.db.paging import cut, decode_cursor
from app.db.session import Database, to_json
from app.db.tables.access import audit_event
from app.ids import new_id
from app.types import Principal

Record: TypeAlias = Callable[[sa.Connection, str, dict[str, Any]], None]
"""Records one action in the audit log: called with the action's transaction, its target and its detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action. `at` is Unix microseconds, `target` the id of what changed, `detail` its old and new values.

    The names are those of now: of the user who acted, of what changed, and of its user where it is a key.
    """

    audit_id: str
    at: int
    tenant_id: str
    user_id: str
    key_id: str
    request_id: str
    action: str
    target: str
    detail: dict[str, Any]
    user_name: str = ""
    target_name: str | None = None
    target_user_name: str | None = None


class AuditLog:
    """Writes and lists audit entries; `clock` gives Unix seconds.

    Example:
        >>> record = AuditLog(database).recording(principal, "user.create")
        >>> UserRepository(database).create("ann", tenant_id="acme", name="Ann", record=record)
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def record_in(
        self,
        connection: sa.Connection,
        principal: Principal,
        action: str,
        target: str,
        detail: dict[str, Any] | None = None,
        *,
        request_id: str = "",
    ) -> None:
        """Record an action inside its transaction. `detail` must hold no secrets."""
        connection.execute(
            sa.insert(audit_event).values(
                audit_id=new_id("audit"),
                at=round(self._clock() * 1_000_000),
                tenant_id=principal.tenant_id,
                user_id=principal.user_id,
                api_key_id=principal.key_id,
                request_id=request_id,
                action=action,
                target=target,
                detail=to_json(detail or {}),
            )
        )

    def recording(self, principal: Principal, action: str, *, request_id: str = "") -> Record:
        """`record_in` with principal and action bound, for a repository that does not know the caller."""

        def record(connection: sa.Connection, target: str, detail: dict[str, Any]) -> None:
            self.record_in(connection, principal, action, target, detail, request_id=request_id)

        return record

    def list(
        self, *, tenant_id: str, action: str | None = None, limit: int, cursor: str | None = None
    ) -> tuple[tuple[AuditEntry, ...], str | None]:
        """At most `limit` entries of a tenant, newest first, and the cursor of the next page.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        query = sa.select(audit_event).where(audit_event.c.tenant_id == tenant_id)
        if action is not None:
            query = query.where(audit_event.c.action == action)
        if cursor is not None:
            at, last_id = decode_cursor(cursor, int, str)
            query = query.where(sa.tuple_(audit_event.c.at, audit_event.c.audit_id) < sa.tuple_(at, last_id))
        query = query.order_by(audit_event.c.at.desc(), audit_event.c.audit_id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            found = tuple(
                AuditEntry(
                    audit_id=row.audit_id,
                    at=row.at,
                    tenant_id=row.tenant_id,
                    user_id=row.user_id,
                    key_id=row.api_key_id,
                    request_id=row.request_id,
                    action=row.action,
                    target=row.target,
                    detail=json.loads(row.detail),
                )
                for row in connection.execute(query)
            )
            names = read_names(connection, found, tenant_id=tenant_id)
        found = tuple(_named(entry, names) for entry in found)
        return cut(found, limit, lambda entry: (entry.at, entry.audit_id))


def _named(entry: AuditEntry, names: AuditNames) -> AuditEntry:
    target_name, target_user_name = names.of_target(entry)
    return replace(
        entry,
        user_name=names.of_user(entry.user_id),
        target_name=target_name,
        target_user_name=target_user_name,
    )
