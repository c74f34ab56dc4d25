"""Bodies of `POST /v1/search`, and the scope fields that other requests share."""

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from app.answering.metering.token_usage import Purpose
from app.answering.retrieving.finder import SearchedPassages
from app.api.schemas.bounds import MOST_QUESTION, Described, DocumentIds, Ids
from app.api.schemas.shape import RequestBody, ResponseBody
from app.api.schemas.token_usage import CallBody
from retrieval.types import Hit, SearchMode, Span

FILTER = (
    "MongoDB-style conditions on document metadata: `$eq $ne $in $nin $gt $gte $lt $lte $and $or $not`; "
    "an unknown operator is a 422. Applied during the search, not to its results."
)

RERANK = "Rerank the best hits with a cross-encoder; null: when the server has one; true is a 422 when it has none."


class Scoped(RequestBody):
    """The documents to search."""

    collection_ids: Ids | None = Field(
        default=None, description="Only these collections; null: every collection of the key."
    )
    document_ids: DocumentIds | None = Field(default=None, description="Only these documents.")
    filter: Described | None = Field(default=None, description=FILTER, examples=[{"year": {"$gte": 2024}}])


class SearchRequest(Scoped):
    """A query and search options."""

    query: str = Field(
        min_length=1,
        max_length=MOST_QUESTION,
        description="Search words or a question.",
        examples=["revenue growth 2025"],
    )
    top_k: int = Field(default=8, ge=1, le=200, description="Maximum number of hits.")
    mode: SearchMode = Field(
        default=SearchMode.HYBRID, description="`dense` searches by meaning, `lexical` by words, `hybrid` by both."
    )
    rerank: bool | None = Field(default=None, description=RERANK)
    highlights: bool = Field(
        default=False, description="Return, for every hit, the sentences that share most words with the query."
    )


class HighlightBody(ResponseBody):
    """A sentence that shares words with the query, as a range of characters of the canonical text."""

    start_char: int = Field(description="First character in the canonical text.", examples=[10233])
    end_char: int = Field(description="One past its last character.", examples=[10291])


class HitScores(ResponseBody):
    """The scores of a hit; null from a search that did not find it."""

    dense: float | None = Field(description="Cosine similarity.", examples=[0.63])
    lexical: float | None = Field(description="Score of the word search (BM25), higher is better.", examples=[7.1])
    fused: float = Field(
        description="Weighted sum of both scores in [0, 1], by which hits are ordered.", examples=[0.87]
    )
    rerank: float | None = Field(
        description="Score of the reranker; reranked hits come first, ordered by it. Null when not reranked."
    )


class HitBody(ResponseBody):
    """A chunk that matches the query."""

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
    scores: HitScores = Field(description="Its scores.")
    highlights: list[HighlightBody] = Field(
        description="At most two sentences of `text` that share most words with the query, in reading order. Empty "
        "without `highlights` in the request, or when the chunk shares no word with the query."
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
    """Token usage of the search; equal to the ledger's rows of this request."""

    total_tokens: int = Field(description="Tokens that all model calls read.", examples=[6])
    embedding_tokens: int = Field(description="Tokens of the query that the embedder read.", examples=[6])
    rerank_tokens: int = Field(description="Tokens of queries and passages that the reranker read.", examples=[0])
    calls: list[CallBody] = Field(description="The model calls, in the order they were made.")

    @classmethod
    def of(cls, *searches: SearchedPassages) -> "SearchUsage":
        """The usage of one search, or of several together."""
        calls = [call for search in searches for call in search.calls]
        tokens = Counter[Purpose]()
        for call in calls:
            tokens[call.purpose] += call.total_tokens
        return cls(
            total_tokens=tokens.total(),
            embedding_tokens=tokens[Purpose.EMBED_QUERY],
            rerank_tokens=tokens[Purpose.RERANK],
            calls=[CallBody.of(call) for call in calls],
        )


class SearchResponse(ResponseBody):
    """Hits, best first."""

    object: str = Field(default="list", description="Always `list`.")
    data: list[HitBody] = Field(description="The hits, best first.")
    usage: SearchUsage = Field(description="Token usage.")
