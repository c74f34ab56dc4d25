"""Budgets and prices for tests."""

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.prices import price as price_table
from app.types import Principal, Role
from app.usage.budgets.repository import BudgetRepository
from app.usage.budgets.rows import Budget
from app.usage.budgets.windows import BudgetWindow

ADMIN = Principal("t1", "root", "key_root", Role.ADMIN)


def set_budget(
    budgets: BudgetRepository,
    *,
    limit: int,
    principal: Principal = ADMIN,
    scope_type: str = "tenant",
    scope_id: str | None = None,
    unit: str = "tokens",
    period: str = "day",
    enforcement: str = "hard",
    thresholds: tuple[int, ...] = (),
    webhook_url: str = "",
) -> Budget:
    return budgets.create(
        principal,
        scope_type=scope_type,
        scope_id=principal.tenant_id if scope_id is None else scope_id,
        unit=unit,
        limit=limit,
        period=period,
        tz="Europe/Berlin",
        enforcement=enforcement,
        thresholds=thresholds,
        webhook_url=webhook_url,
    )


def all_windows(budgets: BudgetRepository, budget_id: str, *, tenant_id: str = "t1") -> tuple[BudgetWindow, ...]:
    """Every window of a budget, newest first."""
    return budgets.windows(budget_id, tenant_id=tenant_id, limit=500)[0]


def price(database: Database, *, model: str = "m1", **pico_per_token: int) -> None:
    """Prices from the beginning of time, by meter."""
    with database.write() as connection:
        for meter, pico in pico_per_token.items():
            connection.execute(
                sa.insert(price_table).values(
                    price_id=f"{model}-{meter}",
                    model_id=model,
                    meter=meter,
                    currency="usd",
                    pico_per_token=pico,
                    effective_from=0,
                    created_by="root",
                    created_at=0,
                )
            )
