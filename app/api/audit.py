"""The audit log: its entries and their route."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.dependencies import AccessDep, Cursor, Limit, PrincipalDep
from app.api.schemas.shape import Page, ResponseBody, problems
from app.db.audit import AuditEntry
from app.usage.reports.instants import utc


class AuditBody(ResponseBody):
    """An entry of the audit log: an act of an administrator, or a deletion by anybody."""

    id: str = Field(description="The entry's id.", examples=["audit_01k9"])
    object: Literal["audit_event"] = Field(default="audit_event", description="Always `audit_event`.")
    at: str = Field(description="Time of the act, RFC 3339 UTC.")
    user_id: str = Field(description="The user who acted.")
    user_name: str = Field(description="The user's display name; its id when none was set.")
    api_key_id: str = Field(description="The key that was used.")
    request_id: str | None = Field(description="The request; null for acts without one.")
    action: str = Field(description="Kind of act.", examples=["key.created"])
    target: str = Field(description="Id of the object acted on.", examples=["key_01k9"])
    target_name: str | None = Field(description="The object's name, or that of a budget's scope; null without one.")
    target_user_name: str | None = Field(description="The display name of a key's user; null for other objects.")
    detail: dict[str, Any] = Field(description="The changes, without secrets.")

    @classmethod
    def of(cls, entry: AuditEntry) -> "AuditBody":
        """The body for an entry."""
        return cls(
            id=entry.audit_id,
            at=utc(entry.at),
            user_id=entry.user_id,
            user_name=entry.user_name,
            api_key_id=entry.key_id,
            request_id=entry.request_id or None,
            action=entry.action,
            target=entry.target,
            target_name=entry.target_name,
            target_user_name=entry.target_user_name,
            detail=entry.detail,
        )


router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.get("/audit", summary="Read the audit log", responses=problems(422, 503))
def list_acts(
    access: AccessDep,
    principal: PrincipalDep,
    action: Annotated[
        str | None, Query(max_length=200, description="Only acts of this kind, such as `key.created`.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[AuditBody]:
    """Acts of administrators of the caller's tenant, newest first: keys, prices, budgets, adjustments, repairs."""
    found, next_cursor = access.audit.list(tenant_id=principal.tenant_id, action=action, limit=limit, cursor=cursor)
    bodies = [AuditBody.of(entry) for entry in found]
    return Page(data=bodies, has_more=next_cursor is not None, next_cursor=next_cursor)
