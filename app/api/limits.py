"""Rate limits of keys and tenants: their bodies and routes."""

from typing import Literal, cast

from fastapi import APIRouter
from pydantic import Field

from app.admission.quotas import Override, Quota
from app.api.dependencies import Cursor, Limit, LimitsDep, PrincipalDep, RequestId
from app.api.query_parameters import page_of
from app.api.schemas.bounds import Id
from app.api.schemas.shape import Page, RequestBody, ResponseBody, problems, rfc3339
from app.errors import NotFound
from app.server.state import AdmissionState
from app.types import Principal

_MOST = 10**12
_REQUESTS = "Requests in any 60 seconds; null: no limit."
_TOKENS = "Input and output tokens in any 60 seconds; null: no limit."
_CONCURRENT = "Concurrent requests; null: no limit."


class NewLimits(RequestBody):
    """Limits to set instead of the defaults; an omitted limit does not apply."""

    requests_per_minute: int | None = Field(default=None, ge=1, le=_MOST, description=_REQUESTS, examples=[60])
    tokens_per_minute: int | None = Field(default=None, ge=1, le=_MOST, description=_TOKENS, examples=[100_000])
    concurrent_requests: int | None = Field(default=None, ge=1, le=_MOST, description=_CONCURRENT, examples=[4])

    def quota(self) -> Quota:
        """The limits as a quota."""
        return Quota(
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            concurrent_requests=self.concurrent_requests,
        )


class LimitsBody(ResponseBody):
    """The limits of a key or a tenant. Both apply to a request: its key's, and its tenant's over all keys."""

    id: str = Field(description="Id of the key or tenant.", examples=["key_01j8x4"])
    object: Literal["limits"] = Field(default="limits", description="Always `limits`.")
    scope_type: Literal["key", "tenant"] = Field(description="Whether they are the limits of a key or of a tenant.")
    requests_per_minute: int | None = Field(description=_REQUESTS)
    tokens_per_minute: int | None = Field(description=_TOKENS)
    concurrent_requests: int | None = Field(description=_CONCURRENT)
    is_default: bool = Field(description="Whether the server's defaults apply, because none were set.")
    updated_at: str | None = Field(description="When they were set, RFC 3339 UTC; null for the defaults.")

    @classmethod
    def of(
        cls, scope_type: Literal["key", "tenant"], scope_id: str, found: Override | None, default: Quota
    ) -> "LimitsBody":
        """The body for the limits that were set, or for the defaults."""
        quota = default if found is None else found.quota
        return cls(
            id=scope_id,
            scope_type=scope_type,
            requests_per_minute=quota.requests_per_minute,
            tokens_per_minute=quota.tokens_per_minute,
            concurrent_requests=quota.concurrent_requests,
            is_default=found is None,
            updated_at=None if found is None else rfc3339(found.updated_at),
        )


router = APIRouter(prefix="/v1/admin/limits", tags=["limits"])

Scope = Literal["key", "tenant"]


@router.get("", summary="List limits", responses=problems(422))
def list_limits(
    limits: LimitsDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[LimitsBody]:
    """The limits that were set for the tenant and its keys; others have the server's defaults."""
    key, tenant = limits.admission.quotas.defaults
    return page_of(
        limits.quotas.list(tenant_id=principal.tenant_id),
        key=lambda item: f"{item.scope_type} {item.scope_id}",
        body=lambda item: LimitsBody.of(
            cast(Scope, item.scope_type), item.scope_id, item, tenant if item.scope_type == "tenant" else key
        ),
        limit=limit,
        cursor=cursor,
    )


@router.get("/keys/{key_id}", summary="Read a key's limits", responses=problems(404))
def read_key_limits(key_id: Id, limits: LimitsDep, principal: PrincipalDep) -> LimitsBody:
    """The limits of a key, set or default."""
    return _read(limits, "key", key_id, tenant_id=principal.tenant_id)


@router.put("/keys/{key_id}", summary="Set a key's limits", responses=problems(404, 422))
def put_key_limits(
    key_id: Id, body: NewLimits, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """Set the limits of a key, within one second. The limits of its tenant also apply."""
    return _put(limits, principal, "key", key_id, body, tenant_id=principal.tenant_id, request_id=request_id)


@router.delete("/keys/{key_id}", summary="Reset a key's limits to the default", responses=problems(404))
def delete_key_limits(key_id: Id, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId) -> LimitsBody:
    """Remove the limits of a key. Returns the limits that apply now."""
    limits.quotas.delete(principal, "key", key_id, tenant_id=principal.tenant_id, request_id=request_id)
    return _read(limits, "key", key_id, tenant_id=principal.tenant_id)


@router.get("/tenants/{tenant_id}", summary="Read a tenant's limits", responses=problems(404))
def read_tenant_limits(tenant_id: Id, limits: LimitsDep, principal: PrincipalDep) -> LimitsBody:
    """The limits of all keys of a tenant together, set or default. Only the operator sees other tenants' limits."""
    if tenant_id != principal.tenant_id and not principal.is_operator:
        raise NotFound("There is no such tenant.")
    return _read(limits, "tenant", tenant_id, tenant_id=tenant_id)


@router.put("/tenants/{tenant_id}", summary="Set a tenant's limits", responses=problems(404, 422))
def put_tenant_limits(
    tenant_id: Id, body: NewLimits, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """Set the limits of all keys of a tenant together, within one second. Only for the operator."""
    return _put(limits, principal, "tenant", tenant_id, body, tenant_id=tenant_id, request_id=request_id)


@router.delete("/tenants/{tenant_id}", summary="Reset a tenant's limits to the default", responses=problems(404))
def delete_tenant_limits(
    tenant_id: Id, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """Remove the limits of a tenant. Returns the limits that apply now. Only for the operator."""
    limits.quotas.delete(principal, "tenant", tenant_id, tenant_id=tenant_id, request_id=request_id)
    return _read(limits, "tenant", tenant_id, tenant_id=tenant_id)


def _read(limits: AdmissionState, scope: Scope, scope_id: str, *, tenant_id: str) -> LimitsBody:
    key, tenant = limits.admission.quotas.defaults
    found = limits.quotas.get(scope, scope_id, tenant_id=tenant_id)
    return LimitsBody.of(scope, scope_id, found, key if scope == "key" else tenant)


def _put(
    limits: AdmissionState,
    principal: Principal,
    scope: Scope,
    scope_id: str,
    body: NewLimits,
    *,
    tenant_id: str,
    request_id: str,
) -> LimitsBody:
    limits.quotas.put(principal, scope, scope_id, body.quota(), tenant_id=tenant_id, request_id=request_id)
    return _read(limits, scope, scope_id, tenant_id=tenant_id)
