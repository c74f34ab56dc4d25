"""The ports of retrieval. Their docstrings are contracts, which tests run over every implementation."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from retrieval.judge_layout import JudgedText
from retrieval.key_set import KeySet
from retrieval.types import Chunk, EmbedderInfo, Judgement, Pointer, Scope, Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vectors: TypeAlias = npt.NDArray[np.float32]
Keys: TypeAlias = npt.NDArray[np.int64]
ExactVectors: TypeAlias = Callable[[Keys], tuple[Keys, Vectors]]
"""The keys that have a stored vector, `(n,)`, and the vectors, `(n, dim)` float32."""
Timer: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Times a block under the name of its activity."""


class Embedder(Protocol):
    """Embeds texts as unit vectors. Safe to call from several threads."""

    @property
    def info(self) -> EmbedderInfo:
        """Identifies the vectors it produces."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` by the embedder's tokenizer, special tokens included, untruncated."""
        ...

    def count_query(self, text: str) -> int:
        """Tokens `embed_query` reads: the model's prompt and special tokens included, cut where the model cuts."""
        ...

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        """Tokens `embed_documents` reads of all `texts`, the model's prompt before each of them included.

        `counted` are the texts' own tokens by `count_tokens`, none of them above `info.max_tokens`.
        """
        ...

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        """(len(texts), dim) float32 unit rows, in the order of `texts`; `on_batch(done)` after each batch."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """(dim,) float32 unit vector."""
        ...


@runtime_checkable
class ChunkingEmbedder(Embedder, Protocol):
    """An embedder that gives access to its tokenizer, by which documents are cut into chunks.

    Example:
        >>> Chunker(embedder.tokenizer, max_tokens=embedder.info.max_tokens)
        >>> embedder.tokenizer.decode([101, 2023, 102])
        'this'
    """

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer, without truncation and padding."""
        ...


class VectorIndex(Protocol):
    """Nearest neighbours by inner product over int64 keys.

    Searches may run while another thread adds or removes. SQL is the truth: an index that is lost
    is rebuilt from it.
    """

    def __len__(self) -> int: ...

    def keys(self) -> Keys:
        """Every key held, sorted ascending."""
        ...

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add `(n,)` keys with `(n, dim)` rows. A key already held is replaced."""
        ...

    def remove(self, keys: Keys) -> int:
        """Remove keys, ignoring unknown ones; returns how many were held."""
        ...

    def search(self, query: Vectors, *, k: int, allowed: KeySet | None) -> list[tuple[int, float]]:
        """At most `k` (key, cosine) best first, ties by key ascending.

        `allowed` restricts the search itself (never a filter afterwards): at most its keys can
        come back, and `k` of them do when that many are held. `None` allows every key. An index may be
        approximate: it may miss a key among the nearest, it never adds one.
        """
        ...


class DenseIndex(Protocol):
    """Vector search over the same chunks: all that a search knows of where vectors are kept."""

    def search_vector(self, vector: Vectors, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """At most `k` (key, cosine) nearest to a `(dim,)` unit vector, best first, ties by key, scope applied inside.

        A hit may be a chunk that was deleted a moment ago; who asks reads hits from SQL, which leaves it out.
        """
        ...


class LexicalIndex(Protocol):
    """Keyword search over the same chunks."""

    def search_text(self, query: str, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """At most `k` (key, score) best first, scope applied inside. Any text is a valid query.

        Scores are like BM25's: 0 is no match, and twice the score is twice the evidence.
        """
        ...


class ChunkStore(Protocol):
    """Reads visible chunks: those of the live version of an indexed document."""

    def holds(self, scope: Scope) -> bool:
        """Whether a chunk in scope is visible, or was a moment ago: where none is, no question need be embedded."""
        ...

    def chunks(self, keys: Sequence[int], *, scope: Scope) -> dict[int, Chunk]:
        """The visible chunks among `keys`, scope checked again; others are left out."""
        ...

    def headed_texts(self, keys: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Innermost heading (or "") and text of the chunks among `keys`, unchecked: to weigh, not to show."""
        ...


class Reranker(Protocol):
    """Scores how well a passage matches a question. Safe to call from several threads."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def revision(self) -> str:
        """Identifies its weights."""
        ...

    def count_tokens(self, query: str, passages: Sequence[str]) -> int:
        """Tokens `score` reads: of every pair, special tokens included, cut where the model cuts, without padding."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """One finite score a passage, in the order of `passages`; higher is better.

        In [0, 1] where the model was trained to give the probability of a match.
        """
        ...


class SpanReader(Protocol):
    """Reads a question with passages and points at the answer in each. Safe to call from several threads.

    Example:
        >>> (pointer,) = reader.read("When did the plant close?", ["The plant closed on 4 May."])
        >>> "The plant closed on 4 May."[pointer.start : pointer.end]
        '4 May'
    """

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def revision(self) -> str:
        """Identifies its weights."""
        ...

    @property
    def threshold(self) -> float:
        """The least probability of an answer, the best passage's of several, from which on to answer."""
        ...

    def count_tokens(self, question: str, passages: Sequence[str]) -> int:
        """Tokens `read` reads: of every window, special tokens and the question included, without padding."""
        ...

    def read(self, question: str, passages: Sequence[str]) -> list[Pointer | None]:
        """The likeliest answer in each passage, in the order of `passages`; None where there is no text to read."""
        ...

    def mark(
        self,
        question: str,
        passages: Sequence[str],
        pieces: Sequence[Sequence[Span]],
        *,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Pointer | None]]:
        """The likeliest answer within each piece of each passage; it reads what `read` reads.

        Args:
            question: As it was asked.
            passages: The texts.
            pieces: For each passage, spans of its characters that an answer must not cross.
            on_batch: Called after each batch with the number of tokens read so far; its exceptions end the reading.

        Returns:
            For each passage one pointer for each piece, in their order; None for a piece without text.
        """
        ...


class CandidateJudge(Protocol):
    """Compares what could be quoted as the answer to a question. Safe to call from several threads.

    Example:
        >>> scores = judge.judge("When did the plant close?", [JudgedText("", "", "The plant closed on 4 May."), other])
        >>> scores[0] > scores[1]
        True
    """

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def revision(self) -> str:
        """Identifies its weights."""
        ...

    def count_tokens(self, question: str, candidates: Sequence[JudgedText]) -> int:
        """Tokens `judge` reads."""
        ...

    def judge(self, question: str, candidates: Sequence[JudgedText]) -> list[float]:
        """A finite score for each candidate, in their order: the log-odds that it answers."""
        ...


class Judge(Protocol):
    """Reads a claim and a passage together.

    Example:
        >>> (judgement,) = judge.judge("The plant closed.", ["The plant in Oslo closed on 4 May."])
        >>> judgement.entailment > judgement.contradiction
        True
    """

    def judge(self, claim: str, passages: Sequence[str]) -> list[Judgement]:
        """The judgement of the claim by each passage, in the order of `passages`."""
        ...


class EntailmentJudge(Judge, Protocol):
    """A model that judges claims. Safe to call from several threads."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def revision(self) -> str:
        """Identifies its weights."""
        ...

    def count_tokens(self, claim: str, passages: Sequence[str]) -> int:
        """Tokens `judge` reads of all pairs."""
        ...
