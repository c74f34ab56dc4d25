"""Routes of API keys."""

from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter

from app.api.budgets import checked_terms
from app.api.dependencies import (
    AccessDep,
    CorpusDep,
    Cursor,
    Limit,
    PrincipalDep,
    RequestId,
    SettingsDep,
    UsageDep,
    visible_collection,
)
from app.api.query_parameters import page_of
from app.api.schemas.bounds import Id
from app.api.schemas.budgets import BudgetBody
from app.api.schemas.keys import Expiry, KeyBody, KeyPatch, KeySpend, ListedKeyBody, NewKey, NewKeyBody, Rotation
from app.api.schemas.shape import Page, problems, rfc3339
from app.db.values import KEEP, Keep
from app.errors import InvalidRequest, NotFound
from app.server.state import AccessState, DocumentsState
from app.types import ApiKey, Principal
from app.usage.budgets.rows import Budget
from app.usage.reports.reports import KeyMonth

router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.post("/keys", status_code=201, summary="Create a key", responses=problems(404, 422))
def create_key(
    body: NewKey,
    corpus: CorpusDep,
    access: AccessDep,
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> NewKeyBody:
    """Only this response holds the secret. A key limited to collections creates keys within its own limit."""
    collections = _within(body.collections, corpus, principal)
    terms = checked_terms(body.budget, usage, settings) if body.budget is not None else None
    named = body.user_id  # without one, the name of the key is a user's id: it is not looked up among display names
    user_id = body.name if named is None else access.users.id_of(named, tenant_id=principal.tenant_id)
    write_down = access.audit.recording(principal, "key.created", request_id=request_id)
    budgets: list[Budget] = []

    def record(connection: sa.Connection, key_id: str, detail: dict[str, Any]) -> None:
        write_down(connection, key_id, detail)
        if terms is not None:
            made = usage.budgets.create_in(connection, principal, "key", key_id, terms, request_id=request_id)
            budgets.append(made)

    key, secret = access.keys.create(
        tenant_id=principal.tenant_id,
        user_id=user_id,
        name=body.name,
        role=body.role,
        collections=collections,
        expires_at=expiry_of(body, now=access.keys.now()),
        record=record,
    )
    bodies = [BudgetBody.of(budget, currency=settings.currency) for budget in budgets]
    return NewKeyBody.created(key, secret, *bodies)


@router.get("/keys", summary="List keys", responses=problems(422))
def list_keys(
    access: AccessDep, usage: UsageDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[ListedKeyBody]:
    """Every key of the tenant with its use this month, also revoked ones; for a limited key, those within its limit."""
    keys = [key for key in access.keys.list(tenant_id=principal.tenant_id) if _is_within(key, principal)]
    month = usage.reports.month_by_key(tenant_id=principal.tenant_id)
    return page_of(keys, key=lambda item: item.id, body=lambda item: _listed(item, month), limit=limit, cursor=cursor)


@router.get("/keys/{key_id}", summary="Read a key", responses=problems(404))
def read_key(key_id: Id, access: AccessDep, usage: UsageDep, principal: PrincipalDep) -> ListedKeyBody:
    """A key, with its role, collections, dates and use this month."""
    found = _manageable(key_id, access, principal)
    return _listed(found, usage.reports.month_by_key(tenant_id=principal.tenant_id))


@router.patch("/keys/{key_id}", summary="Change a key", responses=problems(404, 422))
def patch_key(
    key_id: Id, body: KeyPatch, corpus: CorpusDep, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> KeyBody:
    """Change its name, role, collections or expiry; effective everywhere within one second."""
    _manageable(key_id, access, principal)
    given = body.model_fields_set
    collections: tuple[str, ...] | Keep | None = KEEP
    if "collections" in given:
        collections = _within(body.collections, corpus, principal)
    changed = access.keys.update(
        key_id,
        tenant_id=principal.tenant_id,
        name=body.name if body.name is not None else KEEP,
        role=body.role if body.role is not None else KEEP,
        collections=collections,
        expires_at=expiry_of(body, now=access.keys.now()) if given & {"expires_in", "expires_at"} else KEEP,
        record=access.audit.recording(principal, "key.changed", request_id=request_id),
    )
    return KeyBody.of(changed)


@router.post("/keys/{key_id}/rotate", summary="Rotate a key", responses=problems(404, 409, 422))
def rotate_key(
    key_id: Id, body: Rotation, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> NewKeyBody:
    """Create a new secret, which only this response holds. The previous one stays valid for `overlap_s`, up to a week.

    The key keeps its budgets, limits, conversations and usage. Sessions that were signed in with the previous secret
    end with it.
    """
    _manageable(key_id, access, principal)
    record = access.audit.recording(principal, "key.rotated", request_id=request_id)
    key, secret = access.keys.rotate(key_id, tenant_id=principal.tenant_id, overlap_s=body.overlap_s, record=record)
    return NewKeyBody.created(key, secret)


@router.delete("/keys/{key_id}", summary="Revoke a key", responses=problems(404))
def revoke_key(key_id: Id, access: AccessDep, principal: PrincipalDep, request_id: RequestId) -> KeyBody:
    """Revoke a key, which is then refused. Its usage history stays."""
    _manageable(key_id, access, principal)
    record = access.audit.recording(principal, "key.revoked", request_id=request_id)
    return KeyBody.of(access.keys.revoke(key_id, tenant_id=principal.tenant_id, record=record))


def expiry_of(body: Expiry, *, now: float) -> float | None:
    """The expiry of a key in Unix seconds, as `now` is; None: never.

    Raises:
        InvalidRequest: Both fields are given, or the time has passed.
    """
    if body.expires_in is not None and body.expires_at is not None:
        raise InvalidRequest("Give one of expires_in and expires_at.", param="expires_at")
    if body.expires_at is not None:
        if body.expires_at.timestamp() <= now:
            raise InvalidRequest("expires_at has passed; to end a key, revoke it.", param="expires_at")
        return body.expires_at.timestamp()
    return None if body.expires_in is None else now + body.expires_in


def _listed(key: ApiKey, month: KeyMonth) -> ListedKeyBody:
    used = month.of(key.id)
    spend = KeySpend(
        since=rfc3339(month.since),
        input_tokens=used.measures.input_tokens,
        output_tokens=used.measures.output_tokens,
        cost=month.cost(key.id),
        currency=month.currency,
    )
    return ListedKeyBody.with_spend(key, spend)


def _within(wanted: list[str] | None, corpus: DocumentsState, principal: Principal) -> tuple[str, ...] | None:
    """The collections to limit a new key to, all of which the caller must have access to.

    Raises:
        NotFound: One of them does not exist for the caller.
        InvalidRequest: None are given, but the caller is limited to collections.
    """
    if wanted is None:
        if principal.collections is not None:
            raise InvalidRequest("Your key is limited to collections: name some of them.", param="collections")
        return None
    for collection_id in wanted:
        visible_collection(corpus, principal, collection_id)
    return tuple(wanted)


def _manageable(key_id: str, access: AccessState, principal: Principal) -> ApiKey:
    """The key, when its access is within the caller's.

    Raises:
        NotFound: There is no such key for this caller.
    """
    key = access.keys.get(key_id, tenant_id=principal.tenant_id)
    if not _is_within(key, principal):
        raise NotFound("There is no such key.")
    return key


def _is_within(key: ApiKey, principal: Principal) -> bool:
    """Whether the key's collections are within the caller's."""
    limit = principal.collections
    return limit is None or (key.collections is not None and set(key.collections) <= set(limit))
