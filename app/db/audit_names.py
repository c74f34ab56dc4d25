"""The names of what audit entries are about, as they are now: of the user who acted, of the target and of its owner."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import sqlalchemy as sa

from app.db.tables.budgets import budget
from app.db.tables.documents import api_key, app_user, collection, tenant


class AuditedEntry(Protocol):
    """The attributes of an audit entry that its names are looked up by."""

    @property
    def user_id(self) -> str:
        """The user who acted."""
        ...

    @property
    def action(self) -> str:
        """The kind of action, such as `key.created`."""
        ...

    @property
    def target(self) -> str:
        """The id of what changed."""
        ...

    @property
    def detail(self) -> Mapping[str, Any]:
        """Its old and new values."""
        ...


@dataclass(slots=True)
class AuditNames:
    """Names by id: of users, of collections and tenants, of keys with their users' names, and the scopes of budgets."""

    users: dict[str, str] = field(default_factory=dict)
    collections: dict[str, str] = field(default_factory=dict)
    tenants: dict[str, str] = field(default_factory=dict)
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    scopes: dict[str, tuple[str, str]] = field(default_factory=dict)

    def of_user(self, user_id: str) -> str:
        """The display name of a user; the id without one."""
        return self.users.get(user_id) or user_id

    def of_target(self, entry: AuditedEntry) -> tuple[str | None, str | None]:
        """The name of what an entry changed and, for a key, the name of its user; None where there is none."""
        kind = entry.action.partition(".")[0]
        if kind in {"user", "key"}:
            return self._of_scope(kind, entry.target)
        if kind == "tenant":
            return self._of_scope("key" if entry.target in self.keys else "tenant", entry.target)
        if kind == "limits":
            return self._of_scope(str(entry.detail.get("scope_type", "")), entry.target)
        if kind == "budget" and entry.target in self.scopes:
            return self._of_scope(*self.scopes[entry.target])
        name = entry.detail.get("name") or entry.detail.get("model") or entry.detail.get("model_id")
        return (str(name) if name else None), None

    def _of_scope(self, kind: str, scope_id: str) -> tuple[str | None, str | None]:
        match kind:
            case "key":
                return self.keys.get(scope_id, (None, None))
            case "user":
                return self.of_user(scope_id), None
            case "collection":
                return self.collections.get(scope_id), None
            case "tenant":
                return self.tenants.get(scope_id) or scope_id, None
        return None, None


def read_names(connection: sa.Connection, entries: Collection[AuditedEntry], *, tenant_id: str) -> AuditNames:
    """The names for some entries of a tenant: at most five queries."""
    found = AuditNames()
    targets = {entry.target for entry in entries}
    scopes = sa.select(budget.c.budget_id, budget.c.scope_type, budget.c.scope_id)
    for row in connection.execute(scopes.where(budget.c.budget_id.in_(targets), budget.c.tenant_id == tenant_id)):
        found.scopes[row.budget_id] = row.scope_type, row.scope_id
    targets |= {scope_id for _, scope_id in found.scopes.values()}
    # an operator's entry may be about a key or tenant of another tenant; the entry is the operator's own
    owner = sa.and_(app_user.c.tenant_id == api_key.c.tenant_id, app_user.c.id == api_key.c.user_id)
    keys = sa.select(api_key.c.id, api_key.c.name, api_key.c.user_id, app_user.c.name.label("user_name"))
    rows = connection.execute(keys.join_from(api_key, app_user, owner).where(api_key.c.id.in_(targets)))
    found.keys = {row.id: (row.name, row.user_name or row.user_id) for row in rows}
    tenants = sa.select(tenant.c.id, tenant.c.name).where(tenant.c.id.in_(targets))
    found.tenants = {row.id: row.name for row in connection.execute(tenants)}
    people = targets | {entry.user_id for entry in entries}
    users = sa.select(app_user.c.id, app_user.c.name).where(app_user.c.tenant_id == tenant_id)
    found.users = {row.id: row.name for row in connection.execute(users.where(app_user.c.id.in_(people)))}
    named = sa.select(collection.c.id, collection.c.name).where(collection.c.tenant_id == tenant_id)
    found.collections = {row.id: row.name for row in connection.execute(named.where(collection.c.id.in_(targets)))}
    return found
