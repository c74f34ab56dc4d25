"""What routes of vector stores are handed: the store in the path, and which part of a list is asked for."""

from typing import Annotated, Literal

from fastapi import Depends, Query

from app.api.dependencies import CorpusDep, PrincipalDep, visible_collection
from app.db.paging import Place
from app.errors import NotFound
from app.types import Collection, Document


def store_in_path(vector_store_id: str, corpus: CorpusDep, principal: PrincipalDep) -> Collection:
    """The collection a route's path names."""
    return visible_collection(corpus, principal, vector_store_id)


def file_in_path(file_id: str, store: "StoreDep", corpus: CorpusDep, principal: PrincipalDep) -> Document:
    """The document of the collection a route's path names.

    Raises:
        NotFound: It is not in this collection, or does not exist.
    """
    document = corpus.documents.get(file_id, tenant_id=principal.tenant_id, collections=principal.collections)
    if document.collection_id != store.id:
        raise NotFound("There is no such file in this vector store.")
    return document


def place_of(
    limit: Annotated[int, Query(ge=1, le=100, description="Most items on a page.")] = 20,
    order: Annotated[Literal["asc", "desc"], Query(description="Newest first, or oldest.")] = "desc",
    after: Annotated[str | None, Query(max_length=100, description="`last_id` of the page before.")] = None,
    before: Annotated[str | None, Query(max_length=100, description="`first_id` of the page after.")] = None,
) -> Place:
    """Which part of a list."""
    return Place(limit=limit, order=order, after=after, before=before)


StoreDep = Annotated[Collection, Depends(store_in_path)]
StoreFileDep = Annotated[Document, Depends(file_in_path)]
PlaceDep = Annotated[Place, Depends(place_of)]
