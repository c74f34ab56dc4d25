"""Collections: their bodies and routes."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.dependencies import AccessDep, CorpusDep, Cursor, Limit, PrincipalDep, RequestId, visible_collection
from app.api.documents import checked_metadata
from app.api.query_parameters import page_of
from app.api.schemas.bounds import Id
from app.api.schemas.documents import DeletedBody
from app.api.schemas.jobs import ReindexBody
from app.api.schemas.shape import Metadata, NewMetadata, Page, RequestBody, ResponseBody, problems, rfc3339
from app.db.values import KEEP
from app.errors import Forbidden
from app.types import Collection

MOST_INSTRUCTIONS = 2_000
"""Characters."""

_INSTRUCTIONS = (
    "How a language model is to word answers to questions that are asked of this collection alone: tone, length, "
    "terms. They come before a request's own. Quotes are words of the documents, so they stay as they are."
)


class NewCollection(RequestBody):
    """A collection to create."""

    name: str = Field(min_length=1, max_length=200, description="Unique per tenant.", examples=["contracts"])
    metadata: NewMetadata = Field(default_factory=dict, description="Your own fields.")
    instructions: str = Field(default="", max_length=MOST_INSTRUCTIONS, description=_INSTRUCTIONS, examples=[""])


class CollectionPatch(RequestBody):
    """Changes; omitted fields stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    metadata: NewMetadata | None = Field(default=None, description="Replaces the metadata.")
    instructions: str | None = Field(default=None, max_length=MOST_INSTRUCTIONS, description="Replaces them.")


class CollectionBody(ResponseBody):
    """A collection."""

    id: str = Field(description="The collection's id.", examples=["col_01k9"])
    object: Literal["collection"] = Field(default="collection", description="Always `collection`.")
    name: str = Field(description="Its name.", examples=["default"])
    metadata: Metadata = Field(description="Your own fields.")
    instructions: str = Field(description=_INSTRUCTIONS, examples=["Answer in two sentences."])
    documents: int = Field(description="Number of documents in it.", examples=[3])
    created_at: str = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, collection: Collection) -> "CollectionBody":
        """The body for a collection."""
        return cls(
            id=collection.id,
            name=collection.name,
            metadata=dict(collection.metadata),
            instructions=collection.instructions,
            documents=collection.documents,
            created_at=rfc3339(collection.created_at),
        )


router = APIRouter(tags=["collections"])


@router.post("/v1/collections", status_code=201, summary="Create a collection", responses=problems(409, 422))
def create_collection(body: NewCollection, corpus: CorpusDep, principal: PrincipalDep) -> CollectionBody:
    """Create a group of documents. Keys and questions can be limited to collections."""
    if principal.collections is not None:
        raise Forbidden("A key that is limited to collections cannot create new ones.")
    made = corpus.collections.create(
        principal.tenant_id, body.name, metadata=checked_metadata(body.metadata), instructions=body.instructions
    )
    return CollectionBody.of(made)


@router.get("/v1/collections", summary="List collections", responses=problems(422))
def list_collections(
    corpus: CorpusDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[CollectionBody]:
    """The collections that this key can access."""
    found = corpus.collections.list(principal.tenant_id, allowed=principal.collections)
    return page_of(found, key=lambda item: item.id, body=CollectionBody.of, limit=limit, cursor=cursor)


@router.get("/v1/collections/{collection_id}", summary="Read a collection", responses=problems(404))
def read_collection(collection_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> CollectionBody:
    """Its name, metadata and size."""
    return CollectionBody.of(visible_collection(corpus, principal, collection_id))


@router.patch("/v1/collections/{collection_id}", summary="Change a collection", responses=problems(404, 409, 422))
def patch_collection(
    collection_id: Id, body: CollectionPatch, corpus: CorpusDep, principal: PrincipalDep
) -> CollectionBody:
    """Rename it, or replace its metadata or its instructions."""
    visible_collection(corpus, principal, collection_id)
    changed = corpus.collections.update(
        collection_id,
        tenant_id=principal.tenant_id,
        allowed=principal.collections,
        name=body.name if body.name is not None else KEEP,
        metadata=checked_metadata(body.metadata) if body.metadata is not None else KEEP,
        instructions=body.instructions if body.instructions is not None else KEEP,
    )
    return CollectionBody.of(changed)


@router.post(
    "/v1/collections/{collection_id}/reindex",
    status_code=202,
    summary="Reindex a collection",
    responses=problems(404),
)
def reindex_collection(collection_id: Id, corpus: CorpusDep, principal: PrincipalDep) -> ReindexBody:
    """Extract, chunk and embed every indexed document again, for example after an upgrade or a new chunk size.

    The current version of each document is searched until its new one is ready. Answers 202 once all are queued; see
    `GET /v1/jobs/{id}`. Encrypted files fail and keep their version, since passwords are not stored.
    """
    return ReindexBody.of(corpus.reindexer.begin(collection_id, principal=principal))


@router.delete("/v1/collections/{collection_id}", summary="Delete a collection", responses=problems(404, 409))
def delete_collection(
    collection_id: Id,
    corpus: CorpusDep,
    access: AccessDep,
    principal: PrincipalDep,
    request_id: RequestId,
    force: Annotated[
        bool, Query(description="Also delete its documents; without it, a collection with documents is a 409.")
    ] = False,
) -> DeletedBody:
    """Delete a collection and, with `force`, its documents."""
    removal = corpus.intake.delete_collection(
        collection_id,
        principal=principal,
        force=force,
        record=access.audit.recording(principal, "collection.deleted", request_id=request_id),
        record_document=access.audit.recording(principal, "document.deleted", request_id=request_id),
    )
    return DeletedBody.of(removal.deleted, documents=removal.documents)
