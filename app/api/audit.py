"""The audit log: its entries and their route."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from app.api.dependencies import AccessDep, Cursor, Limit, PrincipalDep, UsageDep
from app.api.exports import EXPORTS, exported_list
from app.api.schemas.shape import Page, ResponseBody, problems
from app.db.audit import AuditEntry
from app.usage.reports.instants import utc
from app.usage.reports.tables import ReportTable, Row


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


_COLUMNS = (
    "at", "id", "user_id", "user_name", "api_key_id", "request_id", "action", "target", "target_name",
    "target_user_name", "detail",
)  # fmt: skip


def _rows(page: Mapping[str, Any]) -> Iterator[Row]:
    """The entries; the changes share a cell, as JSON."""
    for entry in page["data"]:
        yield {**entry, "detail": json.dumps(entry["detail"], ensure_ascii=False)}


_TABLE = ReportTable("audit", _COLUMNS, _rows)


@router.get(
    "/audit",
    summary="Read the audit log",
    response_model=Page[AuditBody],
    responses={**EXPORTS, **problems(422, 503)},
)
def list_acts(
    request: Request,
    access: AccessDep,
    usage: UsageDep,
    principal: PrincipalDep,
    action: Annotated[
        str | None, Query(max_length=200, description="Only acts of this kind, such as `key.created`.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Acts of administrators of the caller's tenant, newest first: keys, prices, budgets, adjustments, repairs."""

    def read(most: int, after: str | None) -> tuple[list[AuditBody], str | None]:
        found, following = access.audit.list(tenant_id=principal.tenant_id, action=action, limit=most, cursor=after)
        return [AuditBody.of(entry) for entry in found], following

    return exported_list(request, _TABLE, read, limit=limit, cursor=cursor, end=int(usage.ledger.seconds()))
