"""Routes of index generations: which embedder's vectors are searched."""

from fastapi import APIRouter

from app.api.dependencies import Cursor, EmbedderSwapDep, Limit, PrincipalDep, RequestId, StateDep
from app.api.paging import page_of
from app.api.schemas.admin import GenerationBody
from app.api.schemas.shape import Page, problems

router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.get("/generations", summary="List index generations", responses=problems(422))
def list_generations(state: StateDep, limit: Limit = 100, cursor: Cursor = None) -> Page[GenerationBody]:
    """Which embedders' vectors there are, the newest first: searched, being built, kept, and gone."""
    building = state.embedder_swap.building if state.embedder_swap is not None else None
    return page_of(
        state.generations.list(),
        key=lambda item: str(item.id),
        body=lambda item: GenerationBody.of(item, building),
        limit=limit,
        cursor=cursor,
    )


@router.post("/generations/{generation_id}/confirm", summary="Keep an embedder", responses=problems(404, 409, 422, 503))
def confirm_generation(
    generation_id: int, state: StateDep, principal: PrincipalDep, request_id: RequestId, embedder_swap: EmbedderSwapDep
) -> GenerationBody:
    """Keep the generation in use for good; the vectors and the index from before it are deleted in the background."""
    embedder_swap.confirm(
        generation_id, record=state.audit.recording(principal, "generation.retired", request_id=request_id)
    )
    return GenerationBody.of(state.generations.get(generation_id), embedder_swap.building)


@router.post(
    "/generations/{generation_id}/rollback",
    status_code=202,
    summary="Go back to the embedder before",
    responses=problems(404, 409, 422, 503),
)
def roll_back_generation(
    generation_id: int, state: StateDep, principal: PrincipalDep, request_id: RequestId, embedder_swap: EmbedderSwapDep
) -> GenerationBody:
    """Go back from the generation in use to the one before, which takes in what came since and is then searched.

    The answer is the generation that will be searched. Set FOOTNOTE_EMBEDDER back as well: until then every start
    loads the embedder it names and goes on searching by the one before.
    """
    record = state.audit.recording(principal, "generation.rolled_back", request_id=request_id)
    return GenerationBody.of(embedder_swap.roll_back(generation_id, record=record), embedder_swap.building)
