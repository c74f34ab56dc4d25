"""The route of reconciliation."""

from fastapi import APIRouter

from app.api.dependencies import StateDep
from app.api.schemas.reconciliation import FindingsBody, ReconcileRequest
from app.api.schemas.shape import problems

router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.post("/reconcile", summary="Compare database, files and index", responses=problems(409, 422, 503))
def reconcile(body: ReconcileRequest, state: StateDep) -> FindingsBody:
    """Reads all text: minutes on a large installation. The server does the same every night, with repair."""
    index = state.models.index if state.models is not None else None
    return FindingsBody.of(state.reconciler.run(index, repair=body.repair))
