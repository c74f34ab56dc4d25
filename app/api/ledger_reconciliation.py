"""The route of the ledger's reconciliation."""

import time
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.dependencies import StateDep
from app.api.schemas.ledger_reconciliation import ReconciliationBody
from app.api.schemas.shape import problems

router = APIRouter(prefix="/v1/admin", tags=["administration"])

_DEFAULT_DAYS = 2
_LATEST = 32_503_680_000  # the year 3000: calendars end in 9999, and a range is looked at in whole days and months


@router.get("/usage/reconciliation", summary="Do the books agree", responses=problems(409, 422, 503))
def reconcile_ledger(
    state: StateDep,
    start_time: Annotated[
        int | None,
        Query(ge=0, le=_LATEST, description="Unix seconds; 0 is everything, by default the last two days."),
    ] = None,
) -> ReconciliationBody:
    """Reads every row of the range: minutes for years of use. The server looks at two days every few minutes."""
    since = start_time if start_time is not None else int(time.time()) - _DEFAULT_DAYS * 86_400
    return ReconciliationBody.of(state.ledger_reconciliation.run(since=since * 1_000_000))
