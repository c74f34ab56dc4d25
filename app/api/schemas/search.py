"""Bodies of search."""

from collections.abc import Sequence

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody
from retrieval.types import Hit, SearchMode, Span

FILTER = (
    "Mongo-like conditions on document metadata: `$eq $ne $in $nin $gt $gte $lt $lte $and $or $not`; "
    "an unknown operator is 422. Applied inside the search, never after it."
)

RERANK = (
    "Whether a cross-encoder puts the best hits in order; null does so where the server has one, "
    "and true is 422 where it has none."
)


class Scoped(RequestBody):
    """Which documents take part."""

    collection_ids: list[str] | None = Field(
        default=None, max_length=1000, description="Only these collections; null is every collection of the key."
    )
    document_ids: list[str] | None = Field(default=None, max_length=10_000, description="Only these documents.")
    filter: dict[str, object] | None = Field(default=None, description=FILTER, examples=[{"year": {"$gte": 2024}}])


class SearchRequest(Scoped):
    """What to look for."""

    query: str = Field(min_length=1, description="Words or a question.", examples=["revenue growth 2025"])
    top_k: int = Field(default=8, ge=1, le=200, description="Most hits to return.")
    mode: SearchMode = Field(
        default=SearchMode.HYBRID, description="`hybrid` fuses meaning and words; `dense` and `lexical` use one."
    )
    rerank: bool | None = Field(default=None, description=RERANK)
    highlights: bool = Field(
        default=False, description="Tell of every hit which of its sentences share most words with the query."
    )


class HighlightBody(ResponseBody):
    """A sentence near to the query, by its characters in the canonical text."""

    start_char: int = Field(description="First character in the canonical text.", examples=[10233])
    end_char: int = Field(description="One past its last character.", examples=[10291])


class HitScores(ResponseBody):
    """How a chunk matched; null where a search did not return it."""

    dense: float | None = Field(description="Cosine similarity.", examples=[0.63])
    lexical: float | None = Field(description="BM25-like, higher is better.", examples=[7.1])
    fused: float = Field(description="What the search orders by: both scores weighed, in [0, 1].", examples=[0.87])
    rerank: float | None = Field(
        description="What the reranker orders by, those it read before all others; null where it did not read."
    )


class HitBody(ResponseBody):
    """A chunk that matches."""

    chunk_id: str = Field(description="The chunk.", examples=["chk_12"])
    document_id: str = Field(description="Its document.", examples=["doc_01k9"])
    external_id: str | None = Field(description="The document's `external_id`.")
    version: int = Field(description="The document version the offsets refer to.")
    filename: str = Field(description="The document's name.", examples=["report.pdf"])
    page_start: int | None = Field(description="First page, from 1; null where the format has none.")
    page_end: int | None = Field(description="Last page.")
    start_char: int = Field(description="First character in the canonical text.")
    end_char: int = Field(description="One past its last character.")
    text: str = Field(description="Exactly `content[start_char:end_char]`.")
    token_count: int = Field(description="Embedder tokens.")
    scores: HitScores = Field(description="How it matched.")
    highlights: list[HighlightBody] = Field(
        description="The sentences of `text` that share most words with the query, two at most, in the order of "
        "reading. None where `highlights` was not asked for, or where it matches by meaning and shares no word."
    )

    @classmethod
    def of(cls, hit: Hit, highlights: Sequence[Span]) -> "HitBody":
        """The body for a hit, with the characters of its nearest sentences."""
        chunk, scores = hit.chunk, hit.scores
        return cls(
            chunk_id=chunk.id,
            document_id=chunk.document_id,
            external_id=chunk.external_id,
            version=chunk.version,
            filename=chunk.filename,
            page_start=chunk.page_start,
            page_end=chunk.page_end,
            start_char=chunk.start_char,
            end_char=chunk.end_char,
            text=chunk.text,
            token_count=chunk.token_count,
            scores=HitScores(dense=scores.dense, lexical=scores.lexical, fused=scores.fused, rerank=scores.rerank),
            highlights=[HighlightBody(start_char=span.start_char, end_char=span.end_char) for span in highlights],
        )


class SearchUsage(ResponseBody):
    """What the search cost."""

    embedding_tokens: int = Field(description="Tokens of the query the embedder read.", examples=[6])
    rerank_tokens: int = Field(description="Tokens of queries and passages the reranker read.", examples=[0])


class SearchResponse(ResponseBody):
    """Hits, best first."""

    object: str = Field(default="list", description="Always `list`.")
    data: list[HitBody] = Field(description="Best first.")
    usage: SearchUsage = Field(description="What it cost.")
