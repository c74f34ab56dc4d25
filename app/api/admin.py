"""Index generations, the vectors of one embedder each: their bodies and routes."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path
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
from app.api.schemas.bounds import LARGEST_INTEGER
from app.api.schemas.shape import Page, ResponseBody, problems, rfc3339
from app.db.index_generations import GenerationStatus, IndexGeneration
from app.server.serving import Building


class GenerationProgress(ResponseBody):
    """Progress of a generation that is being built."""

    done: int = Field(description="Number of embedded chunks.", examples=[1200])
    total: int = Field(description="Number of chunks to embed; 0 while they are counted.", examples=[4000])
    error: str | None = Field(description="Why it stopped until the next start of the server; null while it runs.")


class GenerationBody(ResponseBody):
    """An index generation: the vectors of one embedder, over all tenants."""

    id: int = Field(description="The generation's number.", examples=[2])
    object: Literal["generation"] = Field(default="generation", description="Always `generation`.")
    status: GenerationStatus = Field(
        description="building, ready (next to be swapped in), active (searched), previous (kept until the active one "
        "is confirmed), or retired (its vectors are deleted or being deleted)."
    )
    model: str = Field(description="The embedding model.", examples=["all-MiniLM-L6-v2"])
    revision: str = Field(description="Revision of the model's weights.")
    dim: int = Field(description="Number of dimensions.", examples=[384])
    rejected: bool = Field(
        description="An administrator rolled it back: a server configured with its embedder does not build it again."
    )
    progress: GenerationProgress | None = Field(
        description="Progress of the building; null unless this process builds it."
    )
    created_at: str = Field(description="When building it began, RFC 3339 UTC.")
    activated_at: str | None = Field(description="When it last became active, RFC 3339 UTC; null: never.")
    replaced_at: str | None = Field(
        description="When another generation replaced it, RFC 3339 UTC; null: it was not replaced."
    )
    purged: bool = Field(description="Whether its vectors were deleted.")

    @classmethod
    def of(cls, generation: IndexGeneration, building: Building | None) -> "GenerationBody":
        """The body for a generation; `building`: the generation this process builds now."""
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

GenerationId = Annotated[int, Path(ge=1, le=LARGEST_INTEGER, description="The generation's number.")]


@router.get("/generations", summary="List index generations", responses=problems(422))
def list_generations(
    corpus: CorpusDep, serving: ServingDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[GenerationBody]:
    """All index generations, newest first, including retired ones."""
    building = serving.embedder_swap.building if serving.embedder_swap is not None else None
    return page_of(
        corpus.generations.list(),
        key=lambda item: str(item.id),
        body=lambda item: GenerationBody.of(item, building),
        limit=limit,
        cursor=cursor,
    )


@router.post(
    "/generations/{generation_id}/confirm",
    summary="Confirm an index generation",
    responses=problems(404, 409, 422, 503),
)
def confirm_generation(
    generation_id: GenerationId,
    corpus: CorpusDep,
    access: AccessDep,
    principal: PrincipalDep,
    request_id: RequestId,
    embedder_swap: EmbedderSwapDep,
) -> GenerationBody:
    """Keep the active generation for good; the vectors and index of the previous one are deleted in the background."""
    embedder_swap.confirm(
        generation_id, record=access.audit.recording(principal, "generation.retired", request_id=request_id)
    )
    return GenerationBody.of(corpus.generations.get(generation_id), embedder_swap.building)


@router.post(
    "/generations/{generation_id}/rollback",
    status_code=202,
    summary="Roll back to the previous embedder",
    responses=problems(404, 409, 422, 503),
)
def roll_back_generation(
    generation_id: GenerationId,
    access: AccessDep,
    principal: PrincipalDep,
    request_id: RequestId,
    embedder_swap: EmbedderSwapDep,
) -> GenerationBody:
    """Roll back from the active generation to the previous one, which embeds newer documents and is then searched.

    Returns the generation that will be searched. Also set FOOTNOTE_EMBEDDER back: until then every start loads the
    embedder it names, but searches with the previous one.
    """
    record = access.audit.recording(principal, "generation.rolled_back", request_id=request_id)
    return GenerationBody.of(embedder_swap.roll_back(generation_id, record=record), embedder_swap.building)
