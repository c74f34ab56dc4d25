"""Bodies of collections."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import Metadata, RequestBody, ResponseBody, rfc3339
from app.types import Collection


class NewCollection(RequestBody):
    """A collection to make."""

    name: str = Field(min_length=1, max_length=200, description="Unique per tenant.", examples=["contracts"])
    metadata: Metadata = Field(default_factory=dict, description="Your own fields.")


class CollectionPatch(RequestBody):
    """What to change; fields left out stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    metadata: Metadata | None = Field(default=None, description="Replaces the metadata.")


class CollectionBody(ResponseBody):
    """A collection."""

    id: str = Field(description="The collection's id.", examples=["col_01k9"])
    object: Literal["collection"] = Field(default="collection", description="Always `collection`.")
    name: str = Field(description="Its name.", examples=["default"])
    metadata: Metadata = Field(description="Your own fields.")
    documents: int = Field(description="Documents in it.", examples=[3])
    created_at: str = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, collection: Collection) -> "CollectionBody":
        """The body for a collection."""
        return cls(
            id=collection.id,
            name=collection.name,
            metadata=dict(collection.metadata),
            documents=collection.documents,
            created_at=rfc3339(collection.created_at),
        )
