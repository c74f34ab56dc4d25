"""Bodies of vector stores in OpenAI's protocol."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from app.api.schemas.bounds import MOST_QUESTION, Described, Id
from app.api.schemas.search import SearchUsage
from app.api.schemas.shape import NamedBody, RequestBody, ResponseBody
from app.api.schemas.unsupported import unsupported
from app.db.openai_files import StoreSize
from app.types import Collection
from retrieval.types import Hit, Metadata

_Key = Annotated[str, StringConstraints(min_length=1, max_length=64)]
_Text = Annotated[str, StringConstraints(max_length=512)]
_Number = Annotated[float, Field(ge=-(2**63), lt=2**63)]
Attributes = Annotated[dict[_Key, _Text | bool | _Number], Field(max_length=16)]
_Query = Annotated[str, Field(min_length=1, max_length=MOST_QUESTION)]
FileIds = Annotated[list[Id], Field(max_length=500, fail_fast=True)]
_Labels = Annotated[dict[_Key, _Text], Field(max_length=16)]

ATTRIBUTES = "Your own fields, at most 16: strings, numbers and booleans. They are the document's metadata."
CHUNKING = "Only `auto`: chunking is a setting of the server."


class AutoChunking(RequestBody):
    """Chunking by the server's settings."""

    type: Literal["auto"] = Field(description="Always `auto`.")


class WithChunking(RequestBody):
    """Base of requests with chunking and expiry options, of which only the defaults are supported."""

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
    """A vector store to create."""

    name: str | None = Field(default=None, max_length=200, description="Unique per tenant; generated when omitted.")
    description: str | None = Field(
        default=None, max_length=512, description="Stored as the metadata field `description`."
    )
    metadata: _Labels | None = Field(default=None, description="Your own fields, at most 16.")
    file_ids: FileIds | None = Field(default=None, description="Ids of files to add to it.")
    chunking_strategy: AutoChunking | None = Field(default=None, description=CHUNKING)


class VectorStorePatch(WithChunking):
    """Changes; omitted fields stay."""

    name: str | None = Field(default=None, min_length=1, max_length=200, description="A new name.")
    metadata: _Labels | None = Field(default=None, description="Replaces the metadata.")


class RankingOptions(RequestBody):
    """Ranking options."""

    ranker: Literal["none", "auto", "default-2024-11-15"] | None = Field(
        default=None, description="`none`: no reranking; others: the server's reranker, when it has one."
    )
    score_threshold: float | None = Field(default=None, ge=0, le=1, description="Minimum score of a result.")


class StoreSearchRequest(RequestBody):
    """A search in a vector store."""

    query: _Query | Annotated[list[_Query], Field(min_length=1, max_length=8)] = Field(
        description="Search words or a question, or up to 8 of them, whose best results are merged."
    )
    filters: Described | None = Field(
        default=None,
        description="Conditions on attributes: `{type, key, value}` with `eq ne gt gte lt lte in nin`, or "
        "`{type, filters}` with `and or`. Applied during the search.",
        examples=[{"type": "eq", "key": "year", "value": 2025}],
    )
    max_num_results: int | None = Field(default=None, ge=1, le=50, description="Maximum number of results; default 10.")
    ranking_options: RankingOptions | None = Field(default=None, description="Ranking options.")
    rewrite_query: bool | None = Field(
        default=None, description="Accepted; queries are not rewritten, see `search_query`."
    )


class FileCounts(ResponseBody):
    """Files by status."""

    in_progress: int = Field(description="Number of files being ingested.")
    completed: int = Field(description="Number of searchable files.")
    failed: int = Field(description="Number of files whose ingestion failed.")
    cancelled: int = Field(description="Number of files whose ingestion was cancelled.")
    total: int = Field(description="Total number of files.")

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
    status: Literal["in_progress", "completed"] = Field(
        description="`in_progress` while a file in it is being ingested."
    )
    usage_bytes: int = Field(description="Total size of its files in bytes.")
    file_counts: FileCounts = Field(description="Its files by status.")
    last_active_at: int | None = Field(
        description="When one of its files last changed, Unix seconds; null while empty."
    )
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
    """A deleted vector store. Its files are kept."""

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
    """A passage that matches the query."""

    model_config = ConfigDict(extra="forbid")

    file_id: str = Field(description="Its file.", examples=["doc_01k9"])
    filename: str = Field(description="The file's name.", examples=["report.pdf"])
    score: float = Field(description="The reranker's score when reranked, else the search's, in [0, 1].")
    attributes: dict[str, str | bool | float] = Field(description="The file's attributes.")
    content: list[TextContent] = Field(description="The passage.")

    @classmethod
    def of(cls, hit: Hit, metadata: Metadata) -> "StoreHit":
        """The body for a hit."""
        return cls(
            file_id=hit.chunk.document_id,
            filename=hit.chunk.filename,
            score=hit.scores.ranking,
            attributes=attributes_of(metadata),
            content=[TextContent(text=hit.chunk.text)],
        )


class StoreSearchPage(ResponseBody):
    """The results of a search, best first."""

    object: Literal["vector_store.search_results.page"] = Field(
        default="vector_store.search_results.page", description="Always `vector_store.search_results.page`."
    )
    search_query: list[str] = Field(description="The queries that were searched.")
    data: list[StoreHit] = Field(description="The matching passages.")
    has_more: Literal[False] = Field(default=False, description="Always false.")
    next_page: None = Field(default=None, description="Always null.")
    usage: SearchUsage = Field(description="Token usage.")


def attributes_of(metadata: Metadata) -> dict[str, str | bool | float]:
    """The metadata that OpenAI's attributes can hold: no lists, no null."""
    return {name: value for name, value in metadata.items() if isinstance(value, str | bool | int | float)}
