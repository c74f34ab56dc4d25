"""The vectors of questions: each is embedded at most once for an answer, and cached for those who ask it again.

And those of passages that were sent with a question: embedded for it, on its bill, and kept nowhere.
"""

from threading import Lock

from cachetools import LRUCache

from app.answering.metering.meter import Meter
from app.answering.metering.token_usage import Purpose
from app.answering.question import Question
from app.documents.inline_library import InlineLibrary
from app.telemetry.timing import timed
from retrieval.ports import Embedder, Vectors

MOST_CACHED = 1024
"""Questions whose vectors are cached."""


class QuestionVectors:
    """Embeds questions, and caches the vectors of the last ones. Safe to call from several threads.

    The key is the exact text and the tenant: one tenant's questions must not show in another's bill or waiting time.
    Two threads that embed the same new question at once may both do so, and both are billed.

    >>> vector = QuestionVectors(embedder).of(question, meter)
    >>> vector().shape  # embedded now, at the earliest
    (384,)
    """

    def __init__(self, embedder: Embedder, *, most: int = MOST_CACHED) -> None:
        """Keep at most `most` vectors of `embedder`, at least 1."""
        assert most >= 1, "a cache of nothing would embed a question for each use"
        self._embedder = embedder
        self._lock = Lock()
        self._cached: LRUCache[tuple[str, str], Vectors] = LRUCache(most)

    def of(self, question: Question, meter: Meter) -> "QuestionVector":
        """The vector of a question's text, which `meter` meters when it is embedded."""
        return QuestionVector(self, question, meter)

    def embedded(self, question: Question, meter: Meter) -> Vectors:
        """(dim,) float32 unit vector, read-only; metered where it is not cached.

        Raises:
            EmbedderUnavailable: The model failed.
            BudgetExceeded, StoreUnavailable, StorageFull: The call was not reserved, and not made.
        """
        key = (question.principal.tenant_id, question.text)
        with self._lock:
            cached = self._cached.get(key)
        if cached is not None:
            return cached
        info, tokens = self._embedder.info, self._embedder.count_query(question.text)
        with (
            meter.reading(Purpose.EMBED_QUERY, model=info.model, revision=info.revision, tokens=tokens),
            timed("embed_query"),
        ):
            vector = self._embedder.embed_query(question.text).copy()
        vector.flags.writeable = False  # it is handed out again
        with self._lock:
            self._cached[key] = vector
        return vector


class QuestionVector:
    """The vector of one answer's question, embedded when it is first needed. Used by one thread at a time."""

    def __init__(self, vectors: QuestionVectors, question: Question, meter: Meter) -> None:
        self._vectors, self._question, self._meter = vectors, question, meter
        self._vector: Vectors | None = None

    def __call__(self) -> Vectors:
        """The vector; raises as `QuestionVectors.embedded`."""
        if self._vector is None:
            self._vector = self._vectors.embedded(self._question, self._meter)
        return self._vector


class PassageVectors:
    """Embeds the passages of documents that were sent with a question, once and before the first search.

    >>> PassageVectors(embedder, library).ready(meters.of(question))
    >>> library.embedded
    True
    """

    def __init__(self, embedder: Embedder, library: InlineLibrary) -> None:
        """`embedder` embeds questions too."""
        self._embedder = embedder
        self._library = library

    def ready(self, meter: Meter) -> None:
        """Embed the passages, if they are not; `meter` meters it.

        Raises:
            EmbedderUnavailable: The model failed.
            CallsClosed: Nobody waits for the answer any more.
            BudgetExceeded, StoreUnavailable, StorageFull: The call was not reserved, and not made.
        """
        if self._library.embedded:
            return
        info, tokens, texts = self._embedder.info, self._library.tokens, self._library.passages
        reading = meter.reading(Purpose.EMBED_PASSAGES, model=info.model, revision=info.revision, tokens=tokens)
        with reading as on_batch, timed("embed_passages"):
            # which passages a batch had is not told: their tokens are taken to be equally many
            vectors = self._embedder.embed_documents(texts, on_batch=lambda done: on_batch(tokens * done // len(texts)))
        self._library.add(vectors)
