"""The route of the passage search."""

from fastapi import APIRouter

from app.answering.question import Question
from app.api.dependencies import CorpusDep, ModelsDep, PrincipalDep, RequestId, scope_for
from app.api.schemas.search import HitBody, SearchRequest, SearchResponse, SearchUsage
from app.api.schemas.shape import problems
from retrieval.highlights import nearest_sentences

router = APIRouter(tags=["search"])


@router.post("/v1/search", summary="Find passages", responses=problems(404, 422, 429, 503))
def search(
    body: SearchRequest, corpus: CorpusDep, models: ModelsDep, principal: PrincipalDep, request_id: RequestId
) -> SearchResponse:
    """The chunks that best match a query, without generating an answer."""
    scope = scope_for(
        corpus,
        principal,
        collection_ids=body.collection_ids,
        document_ids=body.document_ids,
        raw_filter=body.filter,
    )
    found = models.answerer.search(
        Question(
            request_id=request_id,
            endpoint="search",
            principal=principal,
            text=body.query,
            scope=scope,
            top_k=body.top_k,
            mode=body.mode,
            rerank=body.rerank,
        )
    )
    chunks = [hit.chunk for hit in found.hits]
    nearest = nearest_sentences(chunks, query=body.query) if body.highlights else ((),) * len(chunks)
    return SearchResponse(
        data=[HitBody.of(hit, spans) for hit, spans in zip(found.hits, nearest, strict=True)],
        usage=SearchUsage.of(found),
    )
