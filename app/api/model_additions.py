"""Adding a model of the Hugging Face hub: bodies and routes. A setting says which model answers, and stays as it is."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from app.api.dependencies import AccessDep, CorpusDep, DatabaseDep, PrincipalDep, RequestId, ServingDep
from app.api.schemas.bounds import Id
from app.api.schemas.shape import RequestBody, ResponseBody, problems
from app.models.additions import Addition, AdditionState, ModelAdditions
from app.server.serving import Serving

router = APIRouter(prefix="/v1/admin/models", tags=["admin"])


class ModelToAdd(RequestBody):
    """A model of the Hugging Face hub."""

    model: str = Field(
        min_length=3,
        max_length=200,
        description="ORGANISATION/NAME, with @ and a branch, tag or commit.",
        examples=["Qwen/Qwen3-1.7B"],
    )
    accept_terms: bool = Field(
        default=False, description="Accept the terms of a licence that does not allow every use."
    )


class AdditionBody(ResponseBody):
    """The addition of a model."""

    id: str = Field(description="Identifier of the addition.", examples=["mod_01jd2x8k3vq5zt7m9n4r6s8w0y"])
    object: Literal["model_addition"] = Field(default="model_addition", description="Always `model_addition`.")
    model: str = Field(
        description="The model's id at the hub; FOOTNOTE_GENERATOR for it.", examples=["Qwen/Qwen3-1.7B"]
    )
    commit: str = Field(description="The commit of the hub that is downloaded.")
    licence: str = Field(description="Its licence as the hub names it, or `unknown`.", examples=["apache-2.0"])
    bytes: int = Field(description="Size of the files that are downloaded.", examples=[4063515200])
    done_bytes: int = Field(description="How much of that is here.")
    state: AdditionState = Field(description="Whether it is downloading, added, failed or cancelled.")
    detail: str | None = Field(description="The reason of a failure in one sentence; else null.")
    started_at: int = Field(description="Unix seconds.")

    @classmethod
    def of(cls, addition: Addition) -> "AdditionBody":
        """The body for an addition."""
        return cls(
            id=addition.id,
            model=addition.model,
            commit=addition.commit,
            licence=addition.licence,
            bytes=addition.bytes,
            done_bytes=addition.done_bytes,
            state=addition.state,
            detail=addition.detail,
            started_at=addition.started_at,
        )


class AdditionsBody(ResponseBody):
    """The additions since the server started."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[AdditionBody] = Field(description="The newest first, at most 20.")


@router.post("", status_code=202, summary="Add a model of the hub", responses=problems(409, 422, 503))
async def add_model(
    body: ModelToAdd,
    serving: ServingDep,
    corpus: CorpusDep,
    access: AccessDep,
    database: DatabaseDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> AdditionBody:
    """Look a model up and begin its download: safetensors alone, each file checked by the digest of the hub.

    A licence that does not allow every use is answered with 409 `terms-not-accepted`, which names it. What a download
    that ended early has is kept, and the next one goes on from there.
    """
    additions = _of(serving)

    def begin() -> Addition:
        found = additions.add(body.model, accept_terms=body.accept_terms)
        detail = {"commit": found.commit, "licence": found.licence}
        try:
            with database.write() as connection:
                access.audit.record_in(connection, principal, "model.added", found.model, detail, request_id=request_id)
        except Exception:
            additions.cancel(found.id)  # nothing goes on that the audit log does not have
            raise
        return found

    return AdditionBody.of(await corpus.page_threads.run(begin, party=principal.tenant_id))


@router.get("/additions", summary="List the models being added")
def list_additions(serving: ServingDep) -> AdditionsBody:
    """The additions since the server started, with how much of each is here."""
    return AdditionsBody(data=[AdditionBody.of(one) for one in _of(serving).list()])


@router.delete("/additions/{addition_id}", summary="Cancel the addition of a model", responses=problems(404))
def cancel_addition(addition_id: Id, serving: ServingDep) -> AdditionBody:
    """End a download. One that has ended already stays as it is."""
    return AdditionBody.of(_of(serving).cancel(addition_id))


def _of(serving: Serving) -> ModelAdditions:
    assert serving.additions is not None, "a server adds models"
    return serving.additions
