"""The route of the passage search."""

from fastapi import APIRouter

from app.answering.question import Question
from app.api.dependencies import CorpusDep, ModelsDep, PrincipalDep, RequestId, scope_for
from app.api.schemas.search import HitBody, SearchRequest, SearchResponse, SearchUsage
from app.api.schemas.shape import problems
from app.server.serving import Models
from app.server.state import DocumentsState
from app.types import Principal
from retrieval.highlights import nearest_sentences

router = APIRouter(tags=["search"])


@router.post("/v1/search", summary="Find passages", responses=problems(404, 422, 429, 503))
def search(
    body: SearchRequest, corpus: CorpusDep, models: ModelsDep, principal: PrincipalDep, request_id: RequestId
) -> SearchResponse:
    """The chunks that best match a query, without generating an answer."""
    return found_by(body, corpus, models, principal, request_id, endpoint="search")


def found_by(
    body: SearchRequest, corpus: DocumentsState, models: Models, principal: Principal, request_id: str, *, endpoint: str
) -> SearchResponse:
    """The hits of a search, which the ledger names by `endpoint`.

    Raises:
        NotFound: A named collection does not exist for this caller.
        InvalidFilter: The filter is malformed.
        InvalidRequest: A reranker is asked for, and there is none.
        BudgetExceeded: A budget is exhausted.
    """
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
            endpoint=endpoint,
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
