"""Routes of tenants, for the operator. Tenants are disabled, never deleted, since the ledger refers to them."""

from fastapi import APIRouter

from app.api.dependencies import AccessDep, Cursor, Limit, PrincipalDep, RequestId
from app.api.keys import expiry_of
from app.api.schemas.bounds import Id
from app.api.schemas.keys import NewKeyBody
from app.api.schemas.shape import Page, problems
from app.api.schemas.tenants import NewTenant, NewTenantKey, TenantBody, TenantPatch
from app.db.values import KEEP
from app.ids import new_id

router = APIRouter(prefix="/v1/admin/tenants", tags=["administration"])


@router.post("", status_code=201, summary="Create a tenant", responses=problems(409, 422))
def create_tenant(body: NewTenant, access: AccessDep, principal: PrincipalDep, request_id: RequestId) -> TenantBody:
    """Create a tenant with separate documents, keys and bills. Then create its first key by `POST …/{id}/keys`."""
    record = access.audit.recording(principal, "tenant.created", request_id=request_id)
    return TenantBody.of(access.tenants.create(body.id or new_id("tenant"), name=body.name, record=record))


@router.get("", summary="List tenants", responses=problems(422))
def list_tenants(access: AccessDep, limit: Limit = 100, cursor: Cursor = None) -> Page[TenantBody]:
    """All tenants, oldest first, including disabled ones."""
    found, following = access.tenants.list(limit=limit, cursor=cursor)
    data = [TenantBody.of(tenant) for tenant in found]
    return Page(data=data, has_more=following is not None, next_cursor=following)


@router.get("/{tenant_id}", summary="Read a tenant", responses=problems(404))
def read_tenant(tenant_id: Id, access: AccessDep) -> TenantBody:
    """A tenant, with its name and whether it is disabled."""
    return TenantBody.of(access.tenants.get(tenant_id))


@router.patch("/{tenant_id}", summary="Change a tenant", responses=problems(404, 409, 422))
def patch_tenant(
    tenant_id: Id, body: TenantPatch, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> TenantBody:
    """Rename a tenant, or disable it: all its keys and sessions are refused, its data stay."""
    changed = access.tenants.update(
        tenant_id,
        name=body.name if body.name is not None else KEEP,
        disabled=body.disabled if body.disabled is not None else KEEP,
        record=access.audit.recording(principal, "tenant.changed", request_id=request_id),
    )
    return TenantBody.of(changed)


@router.post("/{tenant_id}/keys", status_code=201, summary="Create a tenant's key", responses=problems(404, 422))
def create_tenant_key(
    tenant_id: Id, body: NewTenantKey, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> NewKeyBody:
    """Create a key of a tenant, by default an administrator's. The secret is shown only once."""
    tenant = access.tenants.get(tenant_id)
    key, secret = access.keys.create(
        tenant_id=tenant.id,
        user_id=body.user_id,
        name=body.name,
        role=body.role,
        collections=None,
        expires_at=expiry_of(body, now=access.keys.now()),
        record=access.audit.recording(principal, "tenant.key_created", request_id=request_id),
    )
    return NewKeyBody.created(key, secret)
