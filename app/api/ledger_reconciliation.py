"""Reconciliation of the usage ledger: its bodies and route."""

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.dependencies import UsageDep
from app.api.schemas.shape import ResponseBody, problems
from app.usage.reconciliation.checks import Check
from app.usage.reconciliation.reconciliation import Reconciliation


class CheckBody(ResponseBody):
    """One comparison."""

    name: str = Field(description="Name of the comparison.", examples=["engine_decode"])
    ok: bool = Field(description="Whether both sides agree, or nothing could be compared.")
    expected: int | None = Field(description="Expected value; null when nothing was compared.", examples=[4711])
    found: int | None = Field(description="Value in the ledger or its rollups.", examples=[4711])
    detail: str = Field(description="Explanation, or the reason why nothing was compared.")

    @classmethod
    def of(cls, check: Check) -> "CheckBody":
        """The body for a check."""
        return cls(name=check.name, ok=check.ok, expected=check.expected, found=check.found, detail=check.detail)


class ReconciliationBody(ResponseBody):
    """Comparison of the ledger with the engine's counters, its rollups and the budgets, over all tenants."""

    object: Literal["reconciliation"] = Field(default="reconciliation", description="Always `reconciliation`.")
    ok: bool = Field(description="Whether everything agrees.")
    as_of: int = Field(description="Time of the comparison, Unix seconds.", examples=[1763640000])
    checks: list[CheckBody] = Field(description="The comparisons; those with the engine once per process and model.")

    @classmethod
    def of(cls, found: Reconciliation) -> "ReconciliationBody":
        """The body for a reconciliation."""
        return cls(ok=found.ok, as_of=found.as_of, checks=[CheckBody.of(check) for check in found.checks])


router = APIRouter(prefix="/v1/admin", tags=["administration"])

_DEFAULT_DAYS = 2
_LATEST = 32_503_680_000  # the year 3000: calendars end in 9999, and a range is checked in whole days and months


@router.get("/usage/reconciliation", summary="Reconcile the usage ledger", responses=problems(409, 422, 503))
def reconcile_ledger(
    usage: UsageDep,
    start_time: Annotated[
        int | None,
        Query(ge=0, le=_LATEST, description="Start of the range, Unix seconds; 0: everything; default: two days ago."),
    ] = None,
) -> ReconciliationBody:
    """Compare every ledger row of the range, which takes minutes for years. The server checks two days periodically."""
    since = start_time if start_time is not None else int(time.time()) - _DEFAULT_DAYS * 86_400
    return ReconciliationBody.of(usage.reconciliation.run(since=since * 1_000_000))
