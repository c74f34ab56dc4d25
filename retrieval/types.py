"""The data types of retrieval. Imports no module of Footnote, so any module may import it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

MetadataValue: TypeAlias = str | int | float | bool | None


class SearchMode(StrEnum):
    """Which searches take part: both fused, or one alone."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one document version: the unit that is embedded, searched and cited.

    `text` is exactly `content[start_char:end_char]` of that version's canonical text; offsets
    count Unicode code points. `key` is its integer in the vector index and the store. `title` is the document's:
    it is read with the text, and neither embedded nor searched.

    `table_header` is what a chunk that begins inside a table lacks: the table's caption, the names of its columns and,
    inside a row, the row's first cell, a line each. It is read with the text and is no part of it.
    """

    key: int
    id: str
    document_id: str
    version: int
    collection_id: str
    filename: str
    external_id: str | None
    ordinal: int
    text: str
    start_char: int
    end_char: int
    page_start: int | None
    page_end: int | None
    heading_path: tuple[str, ...]
    token_count: int
    table_header: str = ""
    title: str = ""

    @classmethod
    def of_text(cls, text: str, *, key: int = 0, filename: str = "", heading_path: tuple[str, ...] = ()) -> "Chunk":
        """A chunk of a text that is in no store: the whole of a document of its own, whose tokens are not counted."""
        return cls(
            key=key,
            id=str(key),
            document_id=str(key),
            version=1,
            collection_id="",
            filename=filename,
            external_id=None,
            ordinal=0,
            text=text,
            start_char=0,
            end_char=len(text),
            page_start=None,
            page_end=None,
            heading_path=heading_path,
            token_count=0,
        )

    def text_at(self, span: "Span") -> str:
        """The text of a span of the document; the part of it outside this chunk is left out."""
        start, end = span.start_char - self.start_char, span.end_char - self.start_char
        return self.text[max(start, 0) : max(end, 0)]


@dataclass(frozen=True, slots=True)
class Scores:
    """How a chunk matched; a search that did not return it leaves `None`.

    `dense` is a cosine similarity in [-1, 1], `lexical` a BM25-like score (higher is better),
    `fused` the rank-fusion score the hits are ordered by.
    """

    fused: float
    dense: float | None = None
    lexical: float | None = None
    rerank: float | None = None

    @property
    def ranking(self) -> float:
        """The score by which hits are ordered: the reranker's where there is one, else `fused`."""
        return self.fused if self.rerank is None else self.rerank


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk and how well it matches the question."""

    chunk: Chunk
    scores: Scores


@dataclass(frozen=True, slots=True)
class Comparison:
    """`field op value` on a document's metadata, for example `year $gte 2024`."""

    field: str
    op: Literal["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte"]
    value: MetadataValue | tuple[MetadataValue, ...]


@dataclass(frozen=True, slots=True)
class Combination:
    """`$and` / `$or` of several filters, or `$not` of exactly one."""

    op: Literal["$and", "$or", "$not"]
    operands: tuple["Filter", ...]


Filter: TypeAlias = Comparison | Combination


@dataclass(frozen=True, slots=True)
class Scope:
    """The documents a search may return: the caller's access and filters. Applied inside both searches, never after.

    `tenant_id` comes from the authenticated principal alone. `None` means no restriction, an
    empty tuple means nothing is in scope.
    """

    tenant_id: str
    collection_ids: tuple[str, ...] | None = None
    document_ids: tuple[str, ...] | None = None
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `[start_char, end_char)` of a document version's canonical text."""

    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class Source:
    """One numbered source as the generator reads it: `header` then `body`.

    `spans` are the kept passages in document order; `body` has them joined by an ellipsis, or a summary
    in place of some of them.
    `tokens` is `count_tokens(header) + count_tokens(body)`, the two being tokenised apart.

    Chunks that overlap or touch are one source. Then `hit` is the best of them with a chunk that
    reaches over all: its id, key and ordinal are the best one's, its text, offsets and pages
    everyone's, so that every span still slices out of it. `chunks` has them as they were found, in
    document order; `compressed` says that some of their text is not in `body`.
    """

    number: int
    hit: Hit
    spans: tuple[Span, ...]
    header: str
    body: str
    tokens: int
    compressed: bool
    chunks: tuple[Chunk, ...] = ()

    def chunk_at(self, span: Span) -> Chunk:
        """The found chunk that holds most of `span`, the first of equals; a citation of the span names it."""

        def shared(chunk: Chunk) -> int:
            return min(span.end_char, chunk.end_char) - max(span.start_char, chunk.start_char)

        return max(self.chunks, key=shared, default=self.hit.chunk)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A hit that did not become a source, and the reason.

    budget: none of its text is in the context. duplicate: a better hit has the same text. merged: its
    text is in the source of a better hit that it overlaps or touches.
    """

    chunk_id: str
    reason: Literal["budget", "duplicate", "merged"]


@dataclass(frozen=True, slots=True)
class Context:
    """The generator's context: `[n]` in the answer refers to `sources[n - 1]`.

    `tokens` are its tokens, `retrieved_tokens` those of all hits, each with a header.
    """

    sources: tuple[Source, ...]
    dropped: tuple[Dropped, ...]
    tokens: int
    retrieved_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Pointer:
    """The span of a passage that answers a question, if any: its characters `start` to `end`.

    Attributes:
        start: First character.
        end: The character after the last.
        probability: That the passage holds an answer at all, in [0, 1].
        margin: Log-odds of these words against "no answer", as the model gives it.
        evidence: The largest log-odds that a token of the piece read belongs to the evidence; None where the model
            does not tag evidence.
    """

    start: int
    end: int
    probability: float
    margin: float = 0.0
    evidence: float | None = None


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """Identifies the vectors of one index generation; two embedders never mix.

    `max_tokens` is the model's input limit including its special tokens.
    """

    model: str
    revision: str
    dim: int
    max_tokens: int


Metadata: TypeAlias = Mapping[str, MetadataValue | list[MetadataValue]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Probabilities in [0, 1] that a passage entails a claim and that it contradicts it."""

    entailment: float
    contradiction: float
