"""Caches the vectors of recent questions, so that the same words are not embedded twice."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from retrieval.ports import Embedder, Vectors
from retrieval.types import EmbedderInfo


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A question's vector and the tokens computed for it: 0 on a cache hit."""

    vector: Vectors
    tokens: int


class QueryCache:
    """An `Embedder` that wraps another one and caches the vectors of the last `size` questions.

    The key is the exact text and the tenant: one tenant's questions must not
    show in another's bill or waiting time. Safe to call from several threads; two that embed the
    same new question at once may both compute it, and both get its token count.
    """

    def __init__(self, embedder: Embedder, *, size: int) -> None:
        """Keep at most `size` vectors of `embedder`.

        Raises:
            ValueError: `size` is less than 1.
        """
        if size < 1:
            raise ValueError(f"a query cache holds at least 1 vector, got {size}")
        self._embedder = embedder
        self._size = size
        self._lock = Lock()
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()

    @property
    def info(self) -> EmbedderInfo:
        """The wrapped embedder's info."""
        return self._embedder.info

    def count_tokens(self, text: str) -> int:
        """Tokens by the other embedder's tokenizer."""
        return self._embedder.count_tokens(text)

    def count_query(self, text: str) -> int:
        """Tokens the other embedder reads."""
        return self._embedder.count_query(text)

    def count_documents(self, texts: Sequence[str], *, counted: Sequence[int]) -> int:
        """Tokens the other embedder reads."""
        return self._embedder.count_documents(texts, counted=counted)

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        """(len(texts), dim) float32 unit rows; documents are not remembered."""
        return self._embedder.embed_documents(texts, on_batch=on_batch)

    def embed_query(self, text: str) -> Vectors:
        """(dim,) float32 unit vector, read-only."""
        return self.embed_counted(text).vector

    def remembered(self, text: str, *, salt: str = "") -> Vectors | None:
        """The cached vector of a question, or None; nothing is computed."""
        with self._lock:
            found = self._vectors.get((salt, text))
            if found is not None:
                self._vectors.move_to_end((salt, text))
            return found

    def embed_counted(self, text: str, *, salt: str = "") -> EmbeddedQuery:
        """The vector and its billable tokens; the cache is shared by callers with the same `salt`."""
        question = (salt, text)
        with self._lock:
            found = self._vectors.get(question)
            if found is not None:
                self._vectors.move_to_end(question)
                return EmbeddedQuery(found, tokens=0)
        vector = self._embedder.embed_query(text).copy()
        vector.flags.writeable = False  # it is handed out again
        with self._lock:
            self._vectors[question] = vector
            self._vectors.move_to_end(question)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return EmbeddedQuery(vector, tokens=self._embedder.count_query(text))
