"""Routes of limits: what keys and tenants may take in a minute, and at once."""

from typing import Literal, cast

from fastapi import APIRouter

from app.api.dependencies import Cursor, Limit, PrincipalDep, RequestId, StateDep
from app.api.paging import page_of
from app.api.schemas.limits import LimitsBody, NewLimits
from app.api.schemas.shape import Page, problems
from app.errors import NotFound
from app.server.state import State
from app.types import Principal

router = APIRouter(prefix="/v1/admin/limits", tags=["limits"])

Scope = Literal["key", "tenant"]


@router.get("", summary="List limits", responses=problems(422))
def list_limits(
    state: StateDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[LimitsBody]:
    """Those that were set, for the tenant and its keys; all others have the server's defaults."""
    key, tenant = state.admission.quotas.defaults
    return page_of(
        state.quotas.list(tenant_id=principal.tenant_id),
        key=lambda item: f"{item.scope_type} {item.scope_id}",
        body=lambda item: LimitsBody.of(
            cast(Scope, item.scope_type), item.scope_id, item, tenant if item.scope_type == "tenant" else key
        ),
        limit=limit,
        cursor=cursor,
    )


@router.get("/keys/{key_id}", summary="A key's limits", responses=problems(404))
def read_key_limits(key_id: str, state: StateDep, principal: PrincipalDep) -> LimitsBody:
    """What was set for it, or the default."""
    return _read(state, "key", key_id, tenant_id=principal.tenant_id)


@router.put("/keys/{key_id}", summary="Set a key's limits", responses=problems(404, 422))
def put_key_limits(
    key_id: str, body: NewLimits, state: StateDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """They hold within a second. What its tenant may take holds besides."""
    return _put(state, principal, "key", key_id, body, tenant_id=principal.tenant_id, request_id=request_id)


@router.delete("/keys/{key_id}", summary="Let a key's limits be the default again", responses=problems(404))
def delete_key_limits(key_id: str, state: StateDep, principal: PrincipalDep, request_id: RequestId) -> LimitsBody:
    """The answer is what applies now."""
    state.quotas.delete(principal, "key", key_id, tenant_id=principal.tenant_id, request_id=request_id)
    return _read(state, "key", key_id, tenant_id=principal.tenant_id)


@router.get("/tenants/{tenant_id}", summary="A tenant's limits", responses=problems(404))
def read_tenant_limits(tenant_id: str, state: StateDep, principal: PrincipalDep) -> LimitsBody:
    """What was set for all its keys together, or the default. Administrators see their own tenant's.

    Raises:
        NotFound: It is another tenant, and the caller does not operate the installation.
    """
    if tenant_id != principal.tenant_id and not principal.is_operator:
        raise NotFound("There is no such tenant.")
    return _read(state, "tenant", tenant_id, tenant_id=tenant_id)


@router.put("/tenants/{tenant_id}", summary="Set a tenant's limits", responses=problems(404, 422))
def put_tenant_limits(
    tenant_id: str, body: NewLimits, state: StateDep, principal: PrincipalDep, request_id: RequestId
) -> LimitsBody:
    """For all its keys together, within a second; only who operates the installation may."""
    return _put(state, principal, "tenant", tenant_id, body, tenant_id=tenant_id, request_id=request_id)


@router.delete("/tenants/{tenant_id}", summary="Let a tenant's limits be the default again", responses=problems(404))
def delete_tenant_limits(tenant_id: str, state: StateDep, principal: PrincipalDep, request_id: RequestId) -> LimitsBody:
    """The answer is what applies now; only who operates the installation may."""
    state.quotas.delete(principal, "tenant", tenant_id, tenant_id=tenant_id, request_id=request_id)
    return _read(state, "tenant", tenant_id, tenant_id=tenant_id)


def _read(state: State, scope: Scope, scope_id: str, *, tenant_id: str) -> LimitsBody:
    key, tenant = state.admission.quotas.defaults
    found = state.quotas.get(scope, scope_id, tenant_id=tenant_id)
    return LimitsBody.of(scope, scope_id, found, key if scope == "key" else tenant)


def _put(
    state: State,
    principal: Principal,
    scope: Scope,
    scope_id: str,
    body: NewLimits,
    *,
    tenant_id: str,
    request_id: str,
) -> LimitsBody:
    state.quotas.put(principal, scope, scope_id, body.quota(), tenant_id=tenant_id, request_id=request_id)
    return _read(state, scope, scope_id, tenant_id=tenant_id)
