"""Routes of prices: what a model's tokens cost from when on, and settled calls at prices that came later."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.dependencies import AccessDep, Cursor, Limit, PrincipalDep, RequestId, SettingsDep, UsageDep
from app.api.schemas.prices import LATEST_S, NewPrice, NewRerating, PriceBody, ReratingBody
from app.api.schemas.shape import Page, problems

router = APIRouter(prefix="/v1/admin/prices", tags=["prices"])


@router.post("", status_code=201, summary="Begin a price", responses=problems(409, 422))
def add_price(body: NewPrice, usage: UsageDep, principal: PrincipalDep, request_id: RequestId) -> PriceBody:
    """Ends the price in force at that moment. The past is never changed: it can only be given a price it had not."""
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
    model: Annotated[str | None, Query(description="Only this model.")] = None,
    meter: Annotated[str | None, Query(description="Only this meter.")] = None,
    at: Annotated[float | None, Query(ge=0, le=LATEST_S, description="Only those in force then, Unix seconds.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[PriceBody]:
    """Past, present and coming prices of the installation, by model, meter and beginning."""
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
    """Writes what calls cost at the prices now known for their time, less what they did, as adjustments.

    Ledger rows and budgets stay as they are, and adjustments count from now on. Running it twice adjusts nothing the
    second time.
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
