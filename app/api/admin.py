"""Routes of administration: API keys and index generations."""

import time

from fastapi import APIRouter

from app.api.dependencies import Cursor, CutoverDep, Limit, PrincipalDep, RequestId, StateDep, visible_collection
from app.api.paging import page_of
from app.api.schemas.admin import GenerationBody, KeyBody, KeyPatch, NewKey, NewKeyBody
from app.api.schemas.shape import Page, problems
from app.db.patch import KEEP

router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.post("/keys", status_code=201, summary="Make a key", responses=problems(404, 422))
def create_key(body: NewKey, state: StateDep, principal: PrincipalDep, request_id: RequestId) -> NewKeyBody:
    """The secret is in this answer and nowhere else."""
    for collection_id in body.collections or ():
        visible_collection(state, principal, collection_id)
    key, secret = state.keys.create(
        tenant_id=principal.tenant_id,
        user_id=body.user_id or body.name,
        name=body.name,
        role=body.role,
        collections=tuple(body.collections) if body.collections is not None else None,
        expires_at=time.time() + body.expires_in if body.expires_in is not None else None,
        record=state.audit.recording(principal, "key.created", request_id=request_id),
    )
    return NewKeyBody.created(key, secret)


@router.get("/keys", summary="List keys", responses=problems(422))
def list_keys(state: StateDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None) -> Page[KeyBody]:
    """Every key of the tenant, revoked ones too."""
    keys = state.keys.list(tenant_id=principal.tenant_id)
    return page_of(keys, key=lambda item: item.id, body=KeyBody.of, limit=limit, cursor=cursor)


@router.get("/keys/{key_id}", summary="A key", responses=problems(404))
def read_key(key_id: str, state: StateDep, principal: PrincipalDep) -> KeyBody:
    """Its role, limits and life."""
    return KeyBody.of(state.keys.get(key_id, tenant_id=principal.tenant_id))


@router.patch("/keys/{key_id}", summary="Change a key", responses=problems(404, 422))
def patch_key(key_id: str, body: KeyPatch, state: StateDep, principal: PrincipalDep, request_id: RequestId) -> KeyBody:
    """Rename it, change its role or its collections."""
    for collection_id in body.collections or ():
        visible_collection(state, principal, collection_id)
    given = body.model_fields_set
    limited = tuple(body.collections) if body.collections is not None else None
    changed = state.keys.update(
        key_id,
        tenant_id=principal.tenant_id,
        name=body.name if body.name is not None else KEEP,
        role=body.role if body.role is not None else KEEP,
        collections=limited if "collections" in given else KEEP,
        record=state.audit.recording(principal, "key.changed", request_id=request_id),
    )
    return KeyBody.of(changed)


@router.delete("/keys/{key_id}", summary="Revoke a key", responses=problems(404))
def revoke_key(key_id: str, state: StateDep, principal: PrincipalDep, request_id: RequestId) -> KeyBody:
    """Refused from now on; its usage history stays."""
    record = state.audit.recording(principal, "key.revoked", request_id=request_id)
    return KeyBody.of(state.keys.revoke(key_id, tenant_id=principal.tenant_id, record=record))


@router.get("/generations", summary="List index generations", responses=problems(422))
def list_generations(state: StateDep, limit: Limit = 100, cursor: Cursor = None) -> Page[GenerationBody]:
    """Which embedders' vectors there are, the newest first: searched, being built, kept, and gone."""
    building = state.cutover.building if state.cutover is not None else None
    return page_of(
        state.generations.list(),
        key=lambda item: str(item.id),
        body=lambda item: GenerationBody.of(item, building),
        limit=limit,
        cursor=cursor,
    )


@router.post("/generations/{generation_id}/confirm", summary="Keep an embedder", responses=problems(404, 409, 422, 503))
def confirm_generation(
    generation_id: int, state: StateDep, principal: PrincipalDep, request_id: RequestId, cutover: CutoverDep
) -> GenerationBody:
    """Keep the generation in use for good; the vectors and the index from before it are deleted in the background."""
    cutover.confirm(generation_id, record=state.audit.recording(principal, "generation.retired", request_id=request_id))
    return GenerationBody.of(state.generations.get(generation_id), cutover.building)


@router.post(
    "/generations/{generation_id}/rollback",
    status_code=202,
    summary="Go back to the embedder before",
    responses=problems(404, 409, 422, 503),
)
def roll_back_generation(
    generation_id: int, state: StateDep, principal: PrincipalDep, request_id: RequestId, cutover: CutoverDep
) -> GenerationBody:
    """Go back from the generation in use to the one before, which takes in what came since and is then searched.

    The answer is the generation that will be searched. Set FOOTNOTE_EMBEDDER back as well: until then every start
    loads the embedder it names and goes on searching by the one before.
    """
    record = state.audit.recording(principal, "generation.rolled_back", request_id=request_id)
    return GenerationBody.of(cutover.roll_back(generation_id, record=record), cutover.building)
