"""Makes the verifier of each answer, whose model calls are metered on the ledger."""

from collections.abc import Sequence

from app.answering.metering.meter import Meter
from app.answering.metering.token_usage import Purpose
from app.answering.question import Question
from app.answering.verification.verifier import Verifier
from retrieval.ports import Embedder, EntailmentJudge, Vectors
from retrieval.types import Judgement, Source


class Verification:
    """Makes the verifier of each answer. One instance serves every request.

    Example:
        >>> verifier = Verification(embedder=embedder).verifier(question, sources, meter=meter)
        >>> verifier.best("The plant closed on 4 May.")
    """

    def __init__(self, *, embedder: Embedder, entailment: EntailmentJudge | None = None) -> None:
        """An entailment model, where there is one, judges claims in the embedder's place."""
        self._embedder = embedder
        self._entailment = entailment

    def verifier(self, question: Question, sources: Sequence[Source], *, meter: Meter) -> Verifier:
        """The verifier of the answer to `question`."""
        models = MeteredModels(meter, embedder=self._embedder, entailment=self._entailment)
        judge = models if self._entailment is not None else None
        return Verifier(sources, question=question.text, embedder=models, judge=judge)


class MeteredModels:
    """Implements `SentenceEmbedder` and, where there is an entailment model, `Judge`, for one question."""

    def __init__(self, meter: Meter, *, embedder: Embedder, entailment: EntailmentJudge | None = None) -> None:
        self._meter = meter
        self._embedder = embedder
        self._entailment = entailment

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 unit rows, in the order of `texts`.

        Raises:
            StoreUnavailable, StorageFull: The call could not be written to the ledger, and was not made.
        """
        embedder, info = self._embedder, self._embedder.info
        counted = [min(embedder.count_tokens(text), info.max_tokens) for text in texts]
        tokens = embedder.count_documents(texts, counted=counted)
        with self._meter.reading(Purpose.VERIFY, model=info.model, revision=info.revision, tokens=tokens):
            return embedder.embed_documents(texts)

    def judge(self, claim: str, passages: Sequence[str]) -> list[Judgement]:
        """Probabilities that each passage entails or contradicts the claim, in the order of `passages`.

        Raises:
            StoreUnavailable, StorageFull: The call could not be written to the ledger, and was not made.
            VerifierUnavailable: The model gave NaN or infinity.
        """
        entailment = self._entailment
        assert entailment is not None, "a judge only where there is a model"
        tokens = entailment.count_tokens(claim, passages)
        model, revision = entailment.model, entailment.revision
        with self._meter.reading(Purpose.VERIFY, model=model, revision=revision, tokens=tokens):
            return entailment.judge(claim, passages)
