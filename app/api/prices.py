"""Routes of prices, and of re-rating settled calls at prices that were added later."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.dependencies import AccessDep, Cursor, Limit, PrincipalDep, RequestId, SettingsDep, UsageDep
from app.api.schemas.bounds import Id
from app.api.schemas.prices import LATEST_S, NewPrice, NewRerating, PriceBody, ReratingBody
from app.api.schemas.shape import Page, problems

router = APIRouter(prefix="/v1/admin/prices", tags=["prices"])


@router.post("", status_code=201, summary="Add a price", responses=problems(409, 422))
def add_price(body: NewPrice, usage: UsageDep, principal: PrincipalDep, request_id: RequestId) -> PriceBody:
    """Add a price, which ends the one in force at its start. Past prices never change; gaps can be filled."""
    added = usage.prices.add(
        principal,
        model=body.model,
        meter=body.meter,
        price_per_million=body.price_per_million,
        effective_from=None if body.effective_from is None else _micros(body.effective_from),
        source=body.source,
        request_id=request_id,
    )
    return PriceBody.of(added)


@router.get("", summary="List prices", responses=problems(422))
def list_prices(
    usage: UsageDep,
    model: Annotated[Id | None, Query(description="Only this model.")] = None,
    meter: Annotated[Id | None, Query(description="Only this meter.")] = None,
    at: Annotated[
        float | None, Query(ge=0, le=LATEST_S, description="Only prices in force at this time, Unix seconds.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[PriceBody]:
    """Past, current and future prices of the installation, by model, meter and start."""
    prices, next_cursor = usage.prices.list(
        model=model, meter=meter, at=None if at is None else _micros(at), limit=limit, cursor=cursor
    )
    data = [PriceBody.of(price) for price in prices]
    return Page(data=data, has_more=next_cursor is not None, next_cursor=next_cursor)


@router.post("/rerate", summary="Re-rate settled calls", responses=problems(404, 422))
def rerate(
    body: NewRerating,
    access: AccessDep,
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> ReratingBody:
    """Write adjustments: the cost of calls at the prices now known for their time, minus their recorded cost.

    Ledger rows and budgets do not change, and adjustments count from now on. A second run finds nothing to adjust.
    """
    tenant_id = access.tenants.get(body.tenant_id or principal.tenant_id).id
    rerating = usage.rerater.run(
        replace(principal, tenant_id=tenant_id),  # in that tenant's audit log too
        start=body.start_time * 1_000_000,
        end=body.end_time * 1_000_000,
        models=body.models,
        reason=body.reason,
        dry_run=body.dry_run,
        request_id=request_id,
    )
    return ReratingBody.of(rerating, currency=settings.currency)


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)
