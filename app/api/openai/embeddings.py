"""OpenAI's protocol: embeddings."""

import base64

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.api.dependencies import AnswerDeadline, ModelsDep, PrincipalDep, RequestId, UsageDep
from app.api.event_stream import unless_disconnected
from app.api.openai.models import NAME
from app.api.openai.schemas.embeddings import EmbeddingBody, EmbeddingList, EmbeddingRequest, EmbeddingUsage
from app.api.openai.text_embedding import MAX_TOKENS, Embedded, TextEmbedding, text_of, too_many_tokens
from app.api.schemas.shape import problems
from app.errors import NotFound, UnsupportedParameter
from retrieval.ports import Embedder
from retrieval.types import EmbedderInfo

router = APIRouter(tags=["openai"])


@router.post(
    "/v1/embeddings",
    response_model=EmbeddingList,
    summary="Embed texts, in OpenAI's protocol",
    responses=problems(400, 404, 422, 429, 503, 504),
)
async def create_embeddings(
    body: EmbeddingRequest,
    request: Request,
    usage: UsageDep,
    models: ModelsDep,
    principal: PrincipalDep,
    request_id: RequestId,
    deadline: AnswerDeadline,
) -> Response:
    """Vectors of the model that searches passages. A text longer than its input is refused, never truncated."""
    embedder = models.embedder
    _check(body, embedder.info)
    embedding = TextEmbedding(embedder, usage.ledger, request_id=request_id, principal=principal, deadline=deadline)

    def run() -> bytes:
        embedded = embedding.run(_texts(body, embedder), input_type=body.footnote.input_type)
        return _rendered(embedded, embedder.info, in_base64=body.encoding_format == "base64")

    async def work() -> bytes:
        try:
            return await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            embedding.abandon()
            raise

    return Response(await unless_disconnected(request, work), media_type="application/json")


def _check(body: EmbeddingRequest, info: EmbedderInfo) -> None:
    if body.model not in {info.model, NAME}:
        raise NotFound(f"There is no embedding model '{body.model[:100]}'; ask '{info.model}' or '{NAME}'.")
    if body.dimensions is not None and body.dimensions != info.dim:
        raise UnsupportedParameter(
            f"dimensions: the vectors of {info.model} have {info.dim}, and others are not made.", param="dimensions"
        )


def _texts(body: EmbeddingRequest, embedder: Embedder) -> list[str]:
    given = body.input
    if isinstance(given, str):
        return [given]
    ids = [item for item in given if isinstance(item, int)]
    if ids:
        return [text_of(ids, embedder, place=0)]
    items = [item for item in given if not isinstance(item, int)]
    if (total := sum(len(item) for item in items if not isinstance(item, str))) > MAX_TOKENS:
        raise too_many_tokens(total)
    return [item if isinstance(item, str) else text_of(item, embedder, place=place) for place, item in enumerate(items)]


def _rendered(embedded: Embedded, info: EmbedderInfo, *, in_base64: bool) -> bytes:
    """The response as bytes, serialized in a thread, since it may be large."""
    data = [
        EmbeddingBody(
            index=index,
            embedding=base64.b64encode(row.astype("<f4").tobytes()).decode() if in_base64 else row.tolist(),
        )
        for index, row in enumerate(embedded.vectors)
    ]
    usage = EmbeddingUsage(prompt_tokens=embedded.tokens, total_tokens=embedded.tokens)
    return EmbeddingList(data=data, model=info.model, usage=usage).model_dump_json().encode()
