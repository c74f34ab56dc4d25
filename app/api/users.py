"""Routes of users. A user's id is permanent, since usage is recorded for it."""

from fastapi import APIRouter

from app.api.dependencies import AccessDep, Cursor, Limit, PrincipalDep, RequestId
from app.api.schemas.bounds import Id
from app.api.schemas.shape import Page, problems
from app.api.schemas.tenants import NewUser, UserBody, UserPatch
from app.db.values import KEEP
from app.errors import Conflict, Forbidden
from app.ids import new_id
from app.types import Principal

router = APIRouter(prefix="/v1/admin/users", tags=["administration"])


@router.post("", status_code=201, summary="Create a user", responses=problems(409, 422))
def create_user(body: NewUser, access: AccessDep, principal: PrincipalDep, request_id: RequestId) -> UserBody:
    """Create a user without a key. Creating a key also creates its user."""
    _unlimited(principal)
    made = access.users.create(
        body.id or new_id("user"),
        tenant_id=principal.tenant_id,
        name=body.name,
        record=access.audit.recording(principal, "user.created", request_id=request_id),
    )
    return UserBody.of(made)


@router.get("", summary="List users", responses=problems(422))
def list_users(access: AccessDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None) -> Page[UserBody]:
    """The tenant's users, oldest first, including disabled ones."""
    found, following = access.users.list(tenant_id=principal.tenant_id, limit=limit, cursor=cursor)
    return Page(data=[UserBody.of(user) for user in found], has_more=following is not None, next_cursor=following)


@router.get("/{user_id}", summary="Read a user", responses=problems(404))
def read_user(user_id: Id, access: AccessDep, principal: PrincipalDep) -> UserBody:
    """A user, with its name and whether it is disabled."""
    return UserBody.of(access.users.get(user_id, tenant_id=principal.tenant_id))


@router.patch("/{user_id}", summary="Change a user", responses=problems(404, 409, 422))
def patch_user(
    user_id: Id, body: UserPatch, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> UserBody:
    """Rename a user, or disable it: its keys and sessions are refused until it is enabled again."""
    _unlimited(principal)
    if body.disabled:
        _not_yourself(principal, user_id)
    changed = access.users.update(
        user_id,
        tenant_id=principal.tenant_id,
        name=body.name if body.name is not None else KEEP,
        disabled=body.disabled if body.disabled is not None else KEEP,
        record=access.audit.recording(principal, "user.changed", request_id=request_id),
    )
    return UserBody.of(changed)


@router.delete("/{user_id}", summary="Delete a user", responses=problems(404, 409))
def remove_user(user_id: Id, access: AccessDep, principal: PrincipalDep, request_id: RequestId) -> UserBody:
    """Disable a user, and end its keys and sessions for good. Its usage stays under its id."""
    _unlimited(principal)
    _not_yourself(principal, user_id)
    record = access.audit.recording(principal, "user.removed", request_id=request_id)
    return UserBody.of(access.users.remove(user_id, tenant_id=principal.tenant_id, record=record))


def _unlimited(principal: Principal) -> None:
    """Refuse keys that are limited to collections: users belong to the whole tenant.

    Raises:
        Forbidden: The caller's key is limited to collections.
    """
    if principal.collections is not None:
        raise Forbidden("This needs a key that is not limited to collections.")


def _not_yourself(principal: Principal, user_id: str) -> None:
    """Refuse to disable the caller's own user, against lock-out by mistake.

    Raises:
        Conflict: The user is the caller.
    """
    if user_id == principal.user_id:
        raise Conflict("You cannot disable or delete your own user; ask another administrator.")
