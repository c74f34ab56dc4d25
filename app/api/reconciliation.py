"""The route of reconciliation."""

from fastapi import APIRouter

from app.api.dependencies import PrincipalDep, RequestId, StateDep
from app.api.schemas.reconciliation import FindingsBody, ReconcileRequest
from app.api.schemas.shape import problems

router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.post("/reconcile", summary="Compare database, files and index", responses=problems(409, 422, 503))
def reconcile(body: ReconcileRequest, state: StateDep, principal: PrincipalDep, request_id: RequestId) -> FindingsBody:
    """Reads all text: minutes on a large installation. The server does the same every night, with repair."""
    index = state.models.index if state.models is not None else None
    found = state.reconciler.run(index, repair=body.repair)
    if body.repair:
        mended = {finding.kind.value: finding.count for finding in found.findings if finding.mended}
        with state.database.write() as connection:
            state.audit.record_in(
                connection, principal, "reconciliation.repaired", "installation", mended, request_id=request_id
            )
    return FindingsBody.of(found)
