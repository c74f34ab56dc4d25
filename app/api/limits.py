"""Bodies of limits: what a key or a tenant may take in a minute, and at once."""

from typing import Literal, cast

from fastapi import APIRouter
from pydantic import Field

from app.admission.quotas import Override, Quota
from app.api.dependencies import Cursor, Limit, LimitsDep, PrincipalDep, RequestId
from app.api.query_parameters import page_of
from app.api.schemas.shape import Page, RequestBody, ResponseBody, problems, rfc3339
from app.errors import NotFound
from app.server.state import Limits
from app.types import Principal

_MOST = 10**12
_REQUESTS = "Requests in any minute; null is no limit."
_TOKENS = "Tokens in any minute, input and output; null is no limit."
_CONCURRENT = "Requests at work at once; null is no limit."


class NewLimits(RequestBody):
    """Limits to set, in place of the defaults: what is left out is not limited."""

    requests_per_minute: int | None = Field(default=None, ge=1, le=_MOST, description=_REQUESTS, examples=[60])
    tokens_per_minute: int | None = Field(default=None, ge=1, le=_MOST, description=_TOKENS, examples=[100_000])
    concurrent_requests: int | None = Field(default=None, ge=1, le=_MOST, description=_CONCURRENT, examples=[4])

    def quota(self) -> Quota:
        """What they allow."""
        return Quota(
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            concurrent_requests=self.concurrent_requests,
        )


class LimitsBody(ResponseBody):
    """What a key or a tenant may take. Both apply to a request: its key's, and its tenant's over all keys."""

    id: str = Field(description="Id of the key or tenant.", examples=["key_01j8x4"])
    object: Literal["limits"] = Field(default="limits", description="Always `limits`.")
    scope_type: Literal["key", "tenant"] = Field(description="Whose limits they are.")
    requests_per_minute: int | None = Field(description=_REQUESTS)
    tokens_per_minute: int | None = Field(description=_TOKENS)
    concurrent_requests: int | None = Field(description=_CONCURRENT)
    is_default: bool = Field(description="Whether nothing was set for it, so that the server's defaults apply.")
    updated_at: str | None = Field(description="When they were set, RFC 3339 UTC; null for the defaults.")

    @classmethod
    def of(
        cls, scope_type: Literal["key", "tenant"], scope_id: str, found: Override | None, default: Quota
    ) -> "LimitsBody":
        """What was set, or else the default."""
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
    """Those that were set, for the tenant and its keys; all others have the server's defaults."""
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


@router.get("/keys/{key_id}", summary="A key's limits", responses=problems(404))
def read_key_limits(key_id: str, limits: LimitsDep, principal: PrincipalDep) -> LimitsBody:
    """What was set for it, or the default."""
    return _read(limits, "key", key_id, tenant_id=principal.tenant_id)


@router.put("/keys/{key_id}", summary="Set a key's limits", responses=problems(404, 422))
def put_key_limits(
    key_id: str, body: NewLimits, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """They hold within a second. What its tenant may take holds besides."""
    return _put(limits, principal, "key", key_id, body, tenant_id=principal.tenant_id, request_id=request_id)


@router.delete("/keys/{key_id}", summary="Let a key's limits be the default again", responses=problems(404))
def delete_key_limits(key_id: str, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId) -> LimitsBody:
    """The answer is what applies now."""
    limits.quotas.delete(principal, "key", key_id, tenant_id=principal.tenant_id, request_id=request_id)
    return _read(limits, "key", key_id, tenant_id=principal.tenant_id)


@router.get("/tenants/{tenant_id}", summary="A tenant's limits", responses=problems(404))
def read_tenant_limits(tenant_id: str, limits: LimitsDep, principal: PrincipalDep) -> LimitsBody:
    """What was set for all its keys together, or the default. Administrators see their own tenant's.

    Raises:
        NotFound: It is another tenant, and the caller does not operate the installation.
    """
    if tenant_id != principal.tenant_id and not principal.is_operator:
        raise NotFound("There is no such tenant.")
    return _read(limits, "tenant", tenant_id, tenant_id=tenant_id)


@router.put("/tenants/{tenant_id}", summary="Set a tenant's limits", responses=problems(404, 422))
def put_tenant_limits(
    tenant_id: str, body: NewLimits, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """For all its keys together, within a second; only who operates the installation may."""
    return _put(limits, principal, "tenant", tenant_id, body, tenant_id=tenant_id, request_id=request_id)


@router.delete("/tenants/{tenant_id}", summary="Let a tenant's limits be the default again", responses=problems(404))
def delete_tenant_limits(
    tenant_id: str, limits: LimitsDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """The answer is what applies now; only who operates the installation may."""
    limits.quotas.delete(principal, "tenant", tenant_id, tenant_id=tenant_id, request_id=request_id)
    return _read(limits, "tenant", tenant_id, tenant_id=tenant_id)


def _read(limits: Limits, scope: Scope, scope_id: str, *, tenant_id: str) -> LimitsBody:
    key, tenant = limits.admission.quotas.defaults
    found = limits.quotas.get(scope, scope_id, tenant_id=tenant_id)
    return LimitsBody.of(scope, scope_id, found, key if scope == "key" else tenant)


def _put(
    limits: Limits,
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
