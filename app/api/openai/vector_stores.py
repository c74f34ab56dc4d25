"""OpenAI's protocol: vector stores, which are collections, with their dependencies and attribute filters."""

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from app.answering.question import Question
from app.answering.retrieving.finder import SearchedPassages
from app.api.dependencies import AccessDep, CorpusDep, ModelsDep, PrincipalDep, RequestId, scope_for, visible_collection
from app.api.openai.schemas.vector_stores import (
    NewVectorStore,
    RankingOptions,
    StoreHit,
    StoreSearchPage,
    StoreSearchRequest,
    VectorStoreBody,
    VectorStoreDeleted,
    VectorStorePatch,
)
from app.api.schemas.bounds import Id
from app.api.schemas.search import SearchUsage
from app.api.schemas.shape import ListBody, problems
from app.db.paging import PageRequest
from app.db.values import KEEP
from app.errors import Forbidden, NotFound
from app.ids import new_id
from app.server.state import DocumentsState
from app.types import Collection, Document
from retrieval.errors import InvalidFilter
from retrieval.filters import MAX_DEPTH
from retrieval.types import Hit


def store_in_path(vector_store_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> Collection:
    """The collection in a route's path."""
    return visible_collection(corpus, principal, vector_store_id)


def file_in_path(file_id: Id, store: "StoreDep", corpus: CorpusDep, principal: PrincipalDep) -> Document:
    """The document in a route's path, in the path's collection.

    Raises:
        NotFound: It is not in this collection, or does not exist.
    """
    document = corpus.documents.get(file_id, tenant_id=principal.tenant_id, collections=principal.collections)
    if document.collection_id != store.id:
        raise NotFound("There is no such file in this vector store.")
    return document


def place_of(
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of items on a page.")] = 20,
    order: Annotated[Literal["asc", "desc"], Query(description="`desc`: newest first; `asc`: oldest first.")] = "desc",
    after: Annotated[str | None, Query(max_length=100, description="`last_id` of the previous page.")] = None,
    before: Annotated[str | None, Query(max_length=100, description="`first_id` of the next page.")] = None,
) -> PageRequest:
    """The requested part of a list."""
    return PageRequest(limit=limit, order=order, after=after, before=before)


StoreDep = Annotated[Collection, Depends(store_in_path)]
StoreFileDep = Annotated[Document, Depends(file_in_path)]
PlaceDep = Annotated[PageRequest, Depends(place_of)]

_COMPARING = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"})
_COMBINING = frozenset({"and", "or"})


def translated(raw: object, *, depth: int = 1) -> dict[str, object]:
    """Translate OpenAI's attribute filter into a metadata filter, which `parse_filter` then validates.

    `{"type": "gte", "key": "year", "value": 2024}` becomes `{"year": {"$gte": 2024}}`.

    Raises:
        InvalidFilter: A member is missing or unknown, or it is nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise InvalidFilter(f"The filter is nested more than {MAX_DEPTH} levels deep.")
    if not isinstance(raw, Mapping):
        raise InvalidFilter("A filter must be an object.")
    kind = raw.get("type")
    if kind in _COMPARING and set(raw) == {"type", "key", "value"}:
        key = raw["key"]
        if not isinstance(key, str) or key.startswith("$"):
            raise InvalidFilter("The 'key' of a filter must be the name of an attribute, and not begin with '$'.")
        return {key: {f"${kind}": raw["value"]}}
    if kind in _COMBINING and set(raw) == {"type", "filters"} and isinstance(raw["filters"], list):
        return {f"${kind}": [translated(one, depth=depth + 1) for one in raw["filters"]]}
    raise InvalidFilter(
        "A filter has 'type' (eq, ne, gt, gte, lt, lte, in, nin), 'key' and 'value', or 'type' (and, or) and 'filters'."
    )


router = APIRouter(tags=["openai"])


@router.post("/v1/vector_stores", summary="Create a vector store", responses=problems(400, 404, 409, 422))
def create_vector_store(body: NewVectorStore, corpus: CorpusDep, principal: PrincipalDep) -> VectorStoreBody:
    """Create a collection, and add files to it."""
    if principal.collections is not None:
        raise Forbidden("A key that is limited to collections cannot create new ones.")
    metadata = {**(body.metadata or {}), **({"description": body.description} if body.description else {})}
    for file_id in body.file_ids or ():
        corpus.openai_files.find(file_id, principal=principal)
    made = corpus.collections.create(principal.tenant_id, body.name or new_id("vector_store"), metadata=metadata)
    if body.file_ids:
        wanted = [(file_id, None) for file_id in body.file_ids]
        corpus.openai_files.attach_batch(wanted, made.id, principal=principal)
    return _body(corpus, made)


@router.get("/v1/vector_stores", summary="List vector stores", responses=problems(422))
def list_vector_stores(corpus: CorpusDep, principal: PrincipalDep, place: PlaceDep) -> ListBody[VectorStoreBody]:
    """The collections that this key can access."""
    rows = corpus.openai_files.rows
    listed = rows.stores(principal, place)
    sizes = rows.sizes([store.id for store in listed.items])
    return ListBody[VectorStoreBody].of(listed, lambda store: VectorStoreBody.of(store, sizes[store.id]))


@router.get("/v1/vector_stores/{vector_store_id}", summary="Read a vector store", responses=problems(404))
def read_vector_store(store: StoreDep, corpus: CorpusDep) -> VectorStoreBody:
    """A vector store, with its metadata and the status of its files."""
    return _body(corpus, store)


@router.post(
    "/v1/vector_stores/{vector_store_id}", summary="Change a vector store", responses=problems(400, 404, 409, 422)
)
def patch_vector_store(
    store: StoreDep, body: VectorStorePatch, corpus: CorpusDep, principal: PrincipalDep
) -> VectorStoreBody:
    """Rename it or replace its metadata."""
    changed = corpus.collections.update(
        store.id,
        tenant_id=principal.tenant_id,
        allowed=principal.collections,
        name=body.name if body.name is not None else KEEP,
        metadata=body.metadata if body.metadata is not None else KEEP,
    )
    return _body(corpus, changed)


@router.delete("/v1/vector_stores/{vector_store_id}", summary="Delete a vector store", responses=problems(404))
def delete_vector_store(
    store: StoreDep, corpus: CorpusDep, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> VectorStoreDeleted:
    """Delete the collection. Its files are kept outside of any; delete them by `DELETE /v1/files/{id}`."""
    corpus.openai_files.delete_store(
        store.id,
        principal=principal,
        record=access.audit.recording(principal, "collection.deleted", request_id=request_id),
        record_document=access.audit.recording(principal, "document.detached", request_id=request_id),
    )
    return VectorStoreDeleted(id=store.id)


@router.post(
    "/v1/vector_stores/{vector_store_id}/search",
    summary="Search a vector store",
    responses=problems(404, 422, 429, 503),
)
def search_vector_store(
    store: StoreDep,
    body: StoreSearchRequest,
    corpus: CorpusDep,
    models: ModelsDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> StoreSearchPage:
    """The best passages for one or several queries, without generating an answer."""
    queries = [body.query] if isinstance(body.query, str) else body.query
    ranking, limit = body.ranking_options or RankingOptions(), body.max_num_results or 10
    scope = scope_for(
        corpus,
        principal,
        collection_ids=[store.id],
        document_ids=None,
        raw_filter=translated(body.filters) if body.filters is not None else None,
    )
    best: dict[int, Hit] = {}
    searches: list[SearchedPassages] = []
    for choice, query in enumerate(queries):
        found = models.answerer.search(
            Question(
                request_id=request_id,
                endpoint="vector_stores.search",
                principal=principal,
                text=query,
                scope=scope,
                top_k=limit,
                rerank=False if ranking.ranker == "none" else None,
                choice=choice,
            )
        )
        searches.append(found)
        for hit in found.hits:
            known = best.get(hit.chunk.key)
            if known is None or known.scores.ranking < hit.scores.ranking:
                best[hit.chunk.key] = hit
    hits = list(best.values())
    if len(queries) > 1:
        hits.sort(key=lambda hit: hit.scores.ranking, reverse=True)
    least = ranking.score_threshold
    shown = [hit for hit in hits if least is None or hit.scores.ranking >= least][:limit]
    documents = corpus.openai_files.rows.metadata_of({hit.chunk.document_id for hit in shown})
    return StoreSearchPage(
        search_query=queries,
        data=[StoreHit.of(hit, documents.get(hit.chunk.document_id, {})) for hit in shown],
        usage=SearchUsage.of(*searches),
    )


def _body(corpus: DocumentsState, store: Collection) -> VectorStoreBody:
    return VectorStoreBody.of(store, corpus.openai_files.rows.sizes([store.id])[store.id])
