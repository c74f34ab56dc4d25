"""Routes of budgets, their periods and their alerts."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.dependencies import (
    AccessDep,
    CorpusDep,
    Cursor,
    DatabaseDep,
    Limit,
    PrincipalDep,
    RequestId,
    SettingsDep,
    UsageDep,
    visible_collection,
)
from app.api.exports import EXPORTS, exported_list
from app.api.query_parameters import page_of
from app.api.schemas.bounds import Id
from app.api.schemas.budgets import (
    AlertBody,
    BudgetBody,
    BudgetPatch,
    DeletedBudget,
    NewBudget,
    Terms,
    WindowBody,
    amount_of,
    require_zone,
    sorted_thresholds,
)
from app.api.schemas.shape import Page, problems
from app.db.values import KEEP
from app.errors import InvalidRequest
from app.server.state import AccessState, DocumentsState, UsageState
from app.settings import Settings
from app.types import Principal
from app.usage.budgets.repository import BudgetTerms
from app.usage.reports.tables import ReportTable, Row

router = APIRouter(prefix="/v1/admin", tags=["budgets"])


@router.post("/budgets", status_code=201, summary="Create a budget", responses=problems(404, 422))
def create_budget(
    body: NewBudget,
    corpus: CorpusDep,
    access: AccessDep,
    usage: UsageDep,
    settings: SettingsDep,
    database: DatabaseDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> BudgetBody:
    """Create a budget that counts calls from now on. A call must fit into all budgets that apply to it."""
    terms, scope_id = checked_terms(body, usage, settings), _scope_id(body, corpus, access, principal)
    with database.write() as connection:
        created = usage.budgets.create_in(
            connection, principal, body.scope_type, scope_id, terms, request_id=request_id
        )
    return BudgetBody.of(created, currency=settings.currency)


def _rows(page: Mapping[str, Any]) -> Iterator[Row]:
    """The budgets; the percentages of alerts share a cell."""
    for budget in page["data"]:
        yield {**budget, "thresholds": ", ".join(map(str, budget["thresholds"]))}


_TABLE = ReportTable("budgets", tuple(name for name in BudgetBody.model_fields if name != "object"), _rows)


@router.get(
    "/budgets",
    summary="List budgets",
    response_model=Page[BudgetBody],
    responses={**EXPORTS, **problems(422)},
)
def list_budgets(
    request: Request,
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The tenant's budgets, oldest first, with their use in the current period."""
    budgets = usage.budgets.list(tenant_id=principal.tenant_id)

    def read(most: int, after: str | None) -> tuple[list[BudgetBody], str | None]:
        page = page_of(
            budgets,
            key=lambda item: item.id,
            body=lambda item: BudgetBody.of(item, currency=settings.currency),
            limit=most,
            cursor=after,
        )
        return page.data, page.next_cursor

    return exported_list(request, _TABLE, read, limit=limit, cursor=cursor, end=int(usage.ledger.seconds()))


@router.get("/budgets/{budget_id}", summary="Read a budget", responses=problems(404))
def read_budget(budget_id: Id, usage: UsageDep, settings: SettingsDep, principal: PrincipalDep) -> BudgetBody:
    """A budget, with its use in the current period."""
    found = usage.budgets.get(budget_id, tenant_id=principal.tenant_id)
    return BudgetBody.of(found, currency=settings.currency)


@router.patch("/budgets/{budget_id}", summary="Change a budget", responses=problems(404, 422))
def patch_budget(
    budget_id: Id,
    body: BudgetPatch,
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> BudgetBody:
    """Change a budget at once; running calls keep their reservations. Recorded in the audit log."""
    before = usage.budgets.get(budget_id, tenant_id=principal.tenant_id)
    if body.webhook_url:
        usage.webhooks.check(body.webhook_url)
    changed = usage.budgets.update(
        principal,
        budget_id,
        limit=amount_of(body.limit, unit=before.unit) if body.limit is not None else KEEP,
        enforcement=body.enforcement if body.enforcement is not None else KEEP,
        thresholds=sorted_thresholds(body.thresholds) if body.thresholds is not None else KEEP,
        webhook_url=body.webhook_url if body.webhook_url is not None else KEEP,
        request_id=request_id,
    )
    return BudgetBody.of(changed, currency=settings.currency)


@router.delete("/budgets/{budget_id}", summary="Delete a budget", responses=problems(404))
def delete_budget(budget_id: Id, usage: UsageDep, principal: PrincipalDep, request_id: RequestId) -> DeletedBudget:
    """Delete a budget, which then applies to no call. Its past use stays; recorded in the audit log."""
    usage.budgets.delete(principal, budget_id, request_id=request_id)
    return DeletedBudget(id=budget_id)


@router.get("/budgets/{budget_id}/windows", summary="List a budget's periods", responses=problems(404, 422))
def list_windows(
    budget_id: Id, usage: UsageDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[WindowBody]:
    """Periods with calls that the budget applied to, newest first."""
    unit = usage.budgets.get(budget_id, tenant_id=principal.tenant_id).unit
    windows, following = usage.budgets.windows(budget_id, tenant_id=principal.tenant_id, limit=limit, cursor=cursor)
    data = [WindowBody.of(window, unit=unit) for window in windows]
    return Page(data=data, has_more=following is not None, next_cursor=following)


@router.post("/budgets/{budget_id}/reset", summary="Reset a budget", responses=problems(404))
def reset_budget(
    budget_id: Id, usage: UsageDep, settings: SettingsDep, principal: PrincipalDep, request_id: RequestId
) -> BudgetBody:
    """Begin a new count from zero; running calls settle in the old one. Recorded in the audit log."""
    reset = usage.budgets.reset(principal, budget_id, request_id=request_id)
    return BudgetBody.of(reset, currency=settings.currency)


@router.get("/alerts", summary="List budget alerts", responses=problems(422))
def list_alerts(
    usage: UsageDep,
    principal: PrincipalDep,
    budget_id: Annotated[Id | None, Query(description="Only alerts of this budget.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[AlertBody]:
    """Alerts, newest first, also of deleted budgets."""
    alerts, following = usage.alerts.list(
        tenant_id=principal.tenant_id, budget_id=budget_id, limit=limit, cursor=cursor
    )
    return Page(data=[AlertBody.of(alert) for alert in alerts], has_more=following is not None, next_cursor=following)


def checked_terms(body: Terms, usage: UsageState, settings: Settings) -> BudgetTerms:
    """The validated terms of a budget.

    Raises:
        InvalidRequest: The limit, a threshold, the time zone or the webhook address is not valid.
    """
    if body.webhook_url:
        usage.webhooks.check(body.webhook_url)
    return BudgetTerms(
        unit=body.unit,
        limit=amount_of(body.limit, unit=body.unit),
        period=body.period,
        tz=require_zone(body.tz) if body.tz is not None else settings.reporting_zone,
        enforcement=body.enforcement,
        thresholds=sorted_thresholds(body.thresholds),
        webhook_url=body.webhook_url,
    )


def _scope_id(body: NewBudget, corpus: DocumentsState, access: AccessState, principal: Principal) -> str:
    """The id of the scope whose calls count. Keys and collections must exist in the tenant, users need not yet.

    Raises:
        NotFound: No such key or collection.
        InvalidRequest: No scope id is given, or that of another tenant.
    """
    if body.scope_type == "tenant":
        if body.scope_id not in {None, principal.tenant_id}:
            raise InvalidRequest("A tenant's budget is your own tenant's: leave scope_id out.", param="scope_id")
        return principal.tenant_id
    if body.scope_id is None:
        raise InvalidRequest(f"Name the {body.scope_type} in scope_id.", param="scope_id")
    if body.scope_type == "key":
        access.keys.get(body.scope_id, tenant_id=principal.tenant_id)
    if body.scope_type == "collection":
        visible_collection(corpus, principal, body.scope_id)
    return body.scope_id
