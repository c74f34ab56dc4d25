"""Bodies of vector stores, OpenAI-shaped."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from app.api.schemas.search import SearchUsage
from app.api.schemas.shape import NamedBody, RequestBody, ResponseBody
from app.api.schemas.unsupported import unsupported
from app.db.openai_files import StoreSize
from app.types import Collection
from retrieval.types import Hit, Metadata

_Key = Annotated[str, StringConstraints(min_length=1, max_length=64)]
_Text = Annotated[str, StringConstraints(max_length=512)]
Attributes = Annotated[dict[_Key, _Text | bool | float], Field(max_length=16)]
_Labels = Annotated[dict[_Key, _Text], Field(max_length=16)]

ATTRIBUTES = "Your own fields, at most 16: text, numbers and booleans. They are the document's metadata."
CHUNKING = "Only `auto`: how documents are cut is a setting of the server."


class AutoChunking(RequestBody):
    """The server decides."""

    type: Literal["auto"] = Field(description="Always `auto`.")


class WithChunking(RequestBody):
    """What asks for chunking, and to be kept for a time, where OpenAI would do it."""

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        if data.get("expires_after") is not None:
            raise unsupported("expires_after", "'expires_after' is not supported: nothing expires.")
        strategy = data.get("chunking_strategy")
        if isinstance(strategy, dict) and strategy.get("type") != "auto":
            raise unsupported("chunking_strategy", f"'chunking_strategy' is not supported with this type. {CHUNKING}")
        return {name: value for name, value in data.items() if name != "expires_after"}


class NewVectorStore(WithChunking):
    """A vector store to make."""

    name: str | None = Field(
        default=None, max_length=200, description="Unique per tenant; one is made up where there is none."
    )
    description: str | None = Field(
        default=None, max_length=512, description="Kept as the metadata field of this name."
    )
    metadata: _Labels | None = Field(default=None, description="Your own fields, at most 16.")
    file_ids: Annotated[list[str], Field(max_length=500)] | None = Field(
        default=None, description="Files to put into it."
    )
    chunking_strategy: AutoChunking | None = Field(default=None, description=CHUNKING)


class VectorStorePatch(WithChunking):
    """What to change; fields left out stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    metadata: _Labels | None = Field(default=None, description="Replaces the metadata.")


class RankingOptions(RequestBody):
    """How results are ranked."""

    ranker: Literal["none", "auto", "default-2024-11-15"] | None = Field(
        default=None, description="`none`: not reranked; others: by the server's reranker, where it has one."
    )
    score_threshold: float | None = Field(default=None, ge=0, le=1, description="The least score of a result.")


class StoreSearchRequest(RequestBody):
    """What to look for in a vector store."""

    query: (
        Annotated[str, Field(min_length=1)]
        | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=8)]
    ) = Field(description="Words or a question, or up to 8, of which the best results of any are returned.")
    filters: dict[str, Any] | None = Field(
        default=None,
        description="Conditions on attributes: `{type, key, value}` with `eq ne gt gte lt lte in nin`, or "
        "`{type, filters}` with `and or`. Applied inside the search.",
        examples=[{"type": "eq", "key": "year", "value": 2025}],
    )
    max_num_results: int | None = Field(default=None, ge=1, le=50, description="Most results; default 10.")
    ranking_options: RankingOptions | None = Field(default=None, description="How results are ranked.")
    rewrite_query: bool | None = Field(
        default=None, description="Allowed; nothing came before a query, so it stands as it is: see `search_query`."
    )


class FileCounts(ResponseBody):
    """Files by status."""

    in_progress: int = Field(description="Being ingested.")
    completed: int = Field(description="Searchable.")
    failed: int = Field(description="Not readable.")
    cancelled: int = Field(description="Their ingestion was cancelled.")
    total: int = Field(description="All of them.")

    @classmethod
    def of(cls, size: StoreSize) -> "FileCounts":
        """The counts of a store or a batch."""
        return cls(
            in_progress=size.in_progress,
            completed=size.completed,
            failed=size.failed,
            cancelled=size.cancelled,
            total=size.total,
        )


class VectorStoreBody(NamedBody):
    """A vector store: a collection."""

    id: str = Field(description="The collection's id.", examples=["col_01k9"])
    object: Literal["vector_store"] = Field(default="vector_store", description="Always `vector_store`.")
    created_at: int = Field(description="Unix seconds.")
    name: str = Field(description="The collection's name.", examples=["contracts"])
    status: Literal["in_progress", "completed"] = Field(description="Whether a file in it is being ingested.")
    usage_bytes: int = Field(description="Bytes of its files' originals.")
    file_counts: FileCounts = Field(description="Its files by status.")
    last_active_at: int | None = Field(description="When one of its files changed, Unix seconds; null while empty.")
    metadata: dict[str, Any] = Field(description="Your own fields.")
    expires_after: None = Field(default=None, description="Always null: nothing expires.")
    expires_at: None = Field(default=None, description="Always null.")

    @classmethod
    def of(cls, collection: Collection, size: StoreSize) -> "VectorStoreBody":
        """The body for a collection."""
        return cls(
            id=collection.id,
            created_at=int(collection.created_at),
            name=collection.name,
            status="in_progress" if size.in_progress else "completed",
            usage_bytes=size.bytes,
            file_counts=FileCounts.of(size),
            last_active_at=None if size.updated_at is None else int(size.updated_at),
            metadata=dict(collection.metadata),
        )


class VectorStoreDeleted(ResponseBody):
    """What became of a vector store. Its files are kept."""

    id: str = Field(description="Its id.")
    object: Literal["vector_store.deleted"] = Field(
        default="vector_store.deleted", description="Always `vector_store.deleted`."
    )
    deleted: Literal[True] = Field(default=True, description="Always true.")


class TextContent(ResponseBody):
    """A piece of text."""

    type: Literal["text"] = Field(default="text", description="Always `text`.")
    text: str = Field(description="The text.")


class StoreHit(ResponseBody):
    """A passage that matches."""

    model_config = ConfigDict(extra="forbid")

    file_id: str = Field(description="Its file.", examples=["doc_01k9"])
    filename: str = Field(description="The file's name.", examples=["report.pdf"])
    score: float = Field(description="The reranker's score where one read it, else the search's, in [0, 1].")
    attributes: dict[str, str | bool | float] = Field(description="The file's attributes.")
    content: list[TextContent] = Field(description="The passage.")

    @classmethod
    def of(cls, hit: Hit, metadata: Metadata) -> "StoreHit":
        """The body for a hit."""
        return cls(
            file_id=hit.chunk.document_id,
            filename=hit.chunk.filename,
            score=score_of(hit),
            attributes=attributes_of(metadata),
            content=[TextContent(text=hit.chunk.text)],
        )


class StoreSearchPage(ResponseBody):
    """What was found, best first."""

    object: Literal["vector_store.search_results.page"] = Field(
        default="vector_store.search_results.page", description="Always `vector_store.search_results.page`."
    )
    search_query: list[str] = Field(description="What was searched for.")
    data: list[StoreHit] = Field(description="The passages.")
    has_more: Literal[False] = Field(default=False, description="Always false.")
    next_page: None = Field(default=None, description="Always null.")
    usage: SearchUsage = Field(description="What it cost.")


def score_of(hit: Hit) -> float:
    """What a hit is ordered by."""
    return hit.scores.fused if hit.scores.rerank is None else hit.scores.rerank


def attributes_of(metadata: Metadata) -> dict[str, str | bool | float]:
    """Those metadata that OpenAI's protocol can say: no lists, no null."""
    return {name: value for name, value in metadata.items() if isinstance(value, str | bool | int | float)}
