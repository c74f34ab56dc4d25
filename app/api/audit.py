"""The route of the audit log."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.dependencies import Cursor, Limit, PrincipalDep, StateDep
from app.api.schemas.audit import AuditBody
from app.api.schemas.shape import Page, problems

router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.get("/audit", summary="What administrators did", responses=problems(422, 503))
def list_acts(
    state: StateDep,
    principal: PrincipalDep,
    action: Annotated[str | None, Query(max_length=200, description="Only such acts: `key.created`.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[AuditBody]:
    """Keys, prices, budgets, corrections, generations and repairs of the caller's tenant, the newest first."""
    found, next_cursor = state.audit.list(tenant_id=principal.tenant_id, action=action, limit=limit, cursor=cursor)
    bodies = [AuditBody.of(entry) for entry in found]
    return Page(data=bodies, has_more=next_cursor is not None, next_cursor=next_cursor)
