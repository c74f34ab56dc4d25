"""Bodies of index generations."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from app.api.dependencies import (
    AccessDep,
    CorpusDep,
    Cursor,
    EmbedderSwapDep,
    Limit,
    PrincipalDep,
    RequestId,
    ServingDep,
)
from app.api.query_parameters import page_of
from app.api.schemas.shape import Page, ResponseBody, problems, rfc3339
from app.db.generations import Generation, GenerationStatus
from app.server.serving import Building


class GenerationProgress(ResponseBody):
    """How far a generation is that is being built."""

    done: int = Field(description="Chunks that have their vector.", examples=[1200])
    total: int = Field(description="Chunks that need one; 0 while they are counted.", examples=[4000])
    error: str | None = Field(description="Why it stands still until the next start; null while it goes on.")


class GenerationBody(ResponseBody):
    """The vectors of one embedder, over all tenants."""

    id: int = Field(description="The generation's number.", examples=[2])
    object: Literal["generation"] = Field(default="generation", description="Always `generation`.")
    status: GenerationStatus = Field(
        description="building, ready (the swap is next), active (searched), previous (kept until it is confirmed "
        "that it is not needed), or retired (its vectors are gone or going)."
    )
    model: str = Field(description="The embedding model.", examples=["all-MiniLM-L6-v2"])
    revision: str = Field(description="Identifies its weights.")
    dim: int = Field(description="Dimensions.", examples=[384])
    rejected: bool = Field(
        description="An administrator went back from it: a start that asks for its embedder does not build it again."
    )
    progress: GenerationProgress | None = Field(description="Null unless it is being built by this process.")
    created_at: str = Field(description="When its building began, RFC 3339 UTC.")
    activated_at: str | None = Field(description="When it was first searched or searched again; null if never.")
    replaced_at: str | None = Field(description="When another took its place; null if none did.")
    purged: bool = Field(description="It has no vectors any more.")

    @classmethod
    def of(cls, generation: Generation, building: Building | None) -> "GenerationBody":
        """The body for a generation; `building` is what this process builds now."""
        progress = None
        if building is not None and building.generation == generation.id:
            progress = GenerationProgress(done=building.done, total=building.total, error=building.error)
        return cls(
            id=generation.id,
            status=generation.status,
            model=generation.model,
            revision=generation.revision,
            dim=generation.dim,
            rejected=generation.rejected_at is not None,
            progress=progress,
            created_at=rfc3339(generation.created_at),
            activated_at=rfc3339(generation.activated_at) if generation.activated_at is not None else None,
            replaced_at=rfc3339(generation.replaced_at) if generation.replaced_at is not None else None,
            purged=generation.purged_at is not None,
        )


router = APIRouter(prefix="/v1/admin", tags=["administration"])


@router.get("/generations", summary="List index generations", responses=problems(422))
def list_generations(
    corpus: CorpusDep, serving: ServingDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[GenerationBody]:
    """Which embedders' vectors there are, the newest first: searched, being built, kept, and gone."""
    building = serving.embedder_swap.building if serving.embedder_swap is not None else None
    return page_of(
        corpus.generations.list(),
        key=lambda item: str(item.id),
        body=lambda item: GenerationBody.of(item, building),
        limit=limit,
        cursor=cursor,
    )


@router.post("/generations/{generation_id}/confirm", summary="Keep an embedder", responses=problems(404, 409, 422, 503))
def confirm_generation(
    generation_id: int,
    corpus: CorpusDep,
    access: AccessDep,
    principal: PrincipalDep,
    request_id: RequestId,
    embedder_swap: EmbedderSwapDep,
) -> GenerationBody:
    """Keep the generation in use for good; the vectors and the index from before it are deleted in the background."""
    embedder_swap.confirm(
        generation_id, record=access.audit.recording(principal, "generation.retired", request_id=request_id)
    )
    return GenerationBody.of(corpus.generations.get(generation_id), embedder_swap.building)


@router.post(
    "/generations/{generation_id}/rollback",
    status_code=202,
    summary="Go back to the embedder before",
    responses=problems(404, 409, 422, 503),
)
def roll_back_generation(
    generation_id: int,
    access: AccessDep,
    principal: PrincipalDep,
    request_id: RequestId,
    embedder_swap: EmbedderSwapDep,
) -> GenerationBody:
    """Go back from the generation in use to the one before, which takes in what came since and is then searched.

    The answer is the generation that will be searched. Set FOOTNOTE_EMBEDDER back as well: until then every start
    loads the embedder it names and goes on searching by the one before.
    """
    record = access.audit.recording(principal, "generation.rolled_back", request_id=request_id)
    return GenerationBody.of(embedder_swap.roll_back(generation_id, record=record), embedder_swap.building)
