"""Stores the budgets that administrators set, and lists their windows. Every change is audited."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.idempotency import note_effect
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.budgets import budget, budget_window
from app.db.tables.documents import job
from app.db.values import KEEP, Keep, require_text
from app.errors import NotFound
from app.ids import new_id
from app.types import JobStatus, Principal
from app.usage.budgets.alerts import Crossing, fire_in, stored_thresholds, thresholds_of
from app.usage.budgets.rows import Budget, lock_tenant, read_budgets
from app.usage.budgets.windows import BudgetWindow, to_window

WAITING_CODE = "budget-exceeded"
"""The `error_code` of ingestion jobs that wait for room in a budget."""


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """The terms of a budget without its scope. `limit` is tokens or pico-units; thresholds are percentages of it."""

    unit: str
    limit: int
    period: str
    tz: str
    enforcement: str
    thresholds: tuple[int, ...] = ()
    webhook_url: str = ""


class BudgetRepository:
    """The budgets of all tenants; `clock` gives Unix seconds.

    Example:
        >>> budgets = BudgetRepository(database, audit)
        >>> for budget in budgets.of(principal):
        ...     print(budget.window.settled, "of", budget.limit, budget.unit)
    """

    def __init__(self, database: Database, audit: AuditLog, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock

    def create(
        self,
        principal: Principal,
        *,
        scope_type: str,
        scope_id: str,
        unit: str,
        limit: int,
        period: str,
        tz: str,
        enforcement: str,
        thresholds: Sequence[int] = (),
        webhook_url: str = "",
        request_id: str = "",
    ) -> Budget:
        """Create a budget of the principal's tenant. It counts calls that are reserved from now on.

        Raises:
            InvalidRequest: A text that cannot be stored.
        """
        terms = BudgetTerms(unit, limit, period, tz, enforcement, tuple(thresholds), webhook_url)
        with self._database.write() as connection:
            return self.create_in(connection, principal, scope_type, scope_id, terms, request_id=request_id)

    def create_in(
        self,
        connection: sa.Connection,
        principal: Principal,
        scope_type: str,
        scope_id: str,
        terms: BudgetTerms,
        *,
        request_id: str = "",
    ) -> Budget:
        """As `create`, inside the transaction that creates the scope of the budget."""
        require_text(scope_id, param="scope_id")
        require_text(terms.webhook_url, param="webhook_url")
        budget_id = new_id("budget")
        values = {
            "scope_type": scope_type,
            "scope_id": scope_id,
            "unit": terms.unit,
            "limit_value": terms.limit,
            "period": terms.period,
            "tz": terms.tz,
            "enforcement": terms.enforcement,
            "thresholds": stored_thresholds(terms.thresholds),
            "webhook_url": terms.webhook_url,
        }
        lock_tenant(connection, principal.tenant_id)
        connection.execute(
            sa.insert(budget).values(
                budget_id=budget_id,
                tenant_id=principal.tenant_id,
                created_by=principal.user_id,
                created_at=self._now(),
                **values,
            )
        )
        self._record(connection, principal, "budget.create", budget_id, {"after": _shown(values)}, request_id)
        note_effect(connection)
        return self._get(connection, budget_id, principal.tenant_id)

    def get(self, budget_id: str, *, tenant_id: str) -> Budget:
        """The budget.

        Raises:
            NotFound: No such budget of this tenant, or it was deleted.
        """
        with self._database.read() as connection:
            return self._get(connection, budget_id, tenant_id)

    def list(self, *, tenant_id: str) -> tuple[Budget, ...]:
        """The tenant's budgets, oldest first."""
        with self._database.read() as connection:
            return read_budgets(connection, self._now(), budget.c.tenant_id == tenant_id)

    def of(self, principal: Principal) -> tuple[Budget, ...]:
        """The budgets that can limit a caller: of its tenant, its user, its key, and the collections of its key."""
        mine = [
            sa.and_(budget.c.scope_type == kind, budget.c.scope_id.in_(ids))
            for kind, ids in (
                ("tenant", [principal.tenant_id]),
                ("user", [principal.user_id]),
                ("key", [principal.key_id]),
                ("collection", list(principal.collections or ())),
            )
        ]
        with self._database.read() as connection:
            return read_budgets(connection, self._now(), budget.c.tenant_id == principal.tenant_id, sa.or_(*mine))

    def update(
        self,
        principal: Principal,
        budget_id: str,
        *,
        limit: int | Keep = KEEP,
        enforcement: str | Keep = KEEP,
        thresholds: Sequence[int] | Keep = KEEP,
        webhook_url: str | Keep = KEEP,
        request_id: str = "",
    ) -> Budget:
        """Change the given terms, also for the current window. Running calls keep their reservations.

        Thresholds that the current window passes by the change fire now.

        Raises:
            NotFound: No such budget of this tenant.
            InvalidRequest: A text that cannot be stored.
        """
        if webhook_url is not KEEP:
            require_text(webhook_url, param="webhook_url")
        given = {
            "limit_value": limit,
            "enforcement": enforcement,
            "thresholds": KEEP if thresholds is KEEP else stored_thresholds(thresholds),
            "webhook_url": webhook_url,
        }
        values = {name: value for name, value in given.items() if value is not KEEP}
        with self._database.write() as connection:
            before = self._locked(connection, budget_id, principal.tenant_id)
            if values:
                self._set(connection, budget_id, **values)
                detail = {"before": _shown({name: before[name] for name in values}), "after": _shown(values)}
                self._record(connection, principal, "budget.update", budget_id, detail, request_id)
                self._retry_jobs(connection, principal.tenant_id)
            after = self._get(connection, budget_id, principal.tenant_id)
            if values:
                fire_in(connection, _crossing(after, at=self._now()))
            return after

    def reset(self, principal: Principal, budget_id: str, *, request_id: str = "") -> Budget:
        """Begin a new series of windows with nothing used. Running calls settle in the former series.

        Raises:
            NotFound: No such budget of this tenant.
        """
        with self._database.write() as connection:
            self._locked(connection, budget_id, principal.tenant_id)
            before = self._get(connection, budget_id, principal.tenant_id).window
            self._set(connection, budget_id, series=budget.c.series + 1)
            detail = {"series": before.series, "used": before.settled, "reserved": before.reserved}
            self._record(connection, principal, "budget.reset", budget_id, detail, request_id)
            self._retry_jobs(connection, principal.tenant_id)
            note_effect(connection)
            return self._get(connection, budget_id, principal.tenant_id)

    def delete(self, principal: Principal, budget_id: str, *, request_id: str = "") -> None:
        """Delete the budget: new calls do not count in it. Its windows are kept, and running calls settle there.

        Raises:
            NotFound: No such budget of this tenant.
        """
        with self._database.write() as connection:
            before = self._locked(connection, budget_id, principal.tenant_id)
            self._set(connection, budget_id, deleted_at=self._now())
            names = ("scope_type", "scope_id", "unit", "limit_value", "period")
            detail = {"before": _shown({name: before[name] for name in names})}
            self._record(connection, principal, "budget.delete", budget_id, detail, request_id)
            self._retry_jobs(connection, principal.tenant_id)

    def windows(
        self, budget_id: str, *, tenant_id: str, limit: int, cursor: str | None = None
    ) -> tuple[tuple[BudgetWindow, ...], str | None]:
        """At most `limit` used windows of a budget, newest first, and the cursor of the next page.

        Raises:
            NotFound: No such budget of this tenant.
            InvalidRequest: A cursor that this list did not give out.
        """
        order = budget_window.c.series, budget_window.c.window_start
        query = sa.select(budget_window).where(budget_window.c.budget_id == budget_id)
        if cursor is not None:
            query = query.where(sa.tuple_(*order) < sa.tuple_(*decode_cursor(cursor, int, int)))
        query = query.order_by(*(column.desc() for column in order)).limit(limit + 1)
        with self._database.read() as connection:
            self._get(connection, budget_id, tenant_id)
            found = tuple(to_window(row) for row in connection.execute(query))
        return cut(found, limit, lambda window: (window.series, window.start))

    def _get(self, connection: sa.Connection, budget_id: str, tenant_id: str) -> Budget:
        found = read_budgets(connection, self._now(), budget.c.budget_id == budget_id, budget.c.tenant_id == tenant_id)
        if not found:
            raise NotFound("There is no such budget.")
        return found[0]

    def _locked(self, connection: sa.Connection, budget_id: str, tenant_id: str) -> sa.RowMapping:
        """The budget's row; no call is admitted against it until this transaction ends."""
        lock_tenant(connection, tenant_id)
        self._get(connection, budget_id, tenant_id)
        return connection.execute(sa.select(budget).where(budget.c.budget_id == budget_id)).mappings().one()

    def _set(self, connection: sa.Connection, budget_id: str, **values: Any) -> None:
        connection.execute(sa.update(budget).where(budget.c.budget_id == budget_id).values(**values))

    def _retry_jobs(self, connection: sa.Connection, tenant_id: str) -> None:
        """Retry ingestions that wait for a period to end at once: there may be room now."""
        waiting = job.c.tenant_id == tenant_id, job.c.status == JobStatus.QUEUED, job.c.error_code == WAITING_CODE
        connection.execute(sa.update(job).where(*waiting).values(next_attempt_at=self._clock()))

    def _record(
        self,
        connection: sa.Connection,
        principal: Principal,
        action: str,
        budget_id: str,
        detail: dict[str, Any],
        request_id: str,
    ) -> None:
        self._audit.record_in(connection, principal, action, budget_id, detail, request_id=request_id)

    def _now(self) -> int:
        return round(self._clock() * 1_000_000)


def _crossing(changed: Budget, *, at: int) -> Crossing:
    """The use of the current window with the current limit and thresholds."""
    return Crossing(
        budget_id=changed.id,
        series=changed.series,
        window_start=changed.window.start,
        thresholds=changed.thresholds,
        limit=changed.limit,
        used=changed.window.settled,
        at=at,
    )


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    """Columns for the audit log; only the host of a webhook, since the rest of its address may be a secret."""
    shown = dict(values)
    if "thresholds" in shown:
        shown["thresholds"] = list(thresholds_of(shown["thresholds"]))
    if "webhook_url" in shown:
        shown["webhook"] = urlsplit(shown.pop("webhook_url")).hostname or ""
    return shown
