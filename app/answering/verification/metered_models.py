"""Makes the verifier of each answer, whose model calls are metered on the ledger."""

from collections.abc import Sequence

from app.answering.calls import CallNumber
from app.answering.question import Question
from app.answering.token_usage import ModelCall, Purpose, called
from app.answering.verification.verifier import Verifier
from app.types import Operation, Reservation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder, EntailmentJudge, Vectors
from retrieval.types import Judgement, Source


class Verification:
    """Makes the verifier of each answer. One instance serves every request.

    Example:
        >>> verifier, models = Verification(ledger=ledger, embedder=embedder).begin(question, sources)
        >>> verifier.best("The plant closed on 4 May.")
        >>> sum(call.prompt_tokens for call in models.calls)
        31
    """

    def __init__(self, *, ledger: Ledger, embedder: Embedder, entailment: EntailmentJudge | None = None) -> None:
        """An entailment model, where there is one, judges claims in the embedder's place."""
        self._ledger = ledger
        self._embedder = embedder
        self._entailment = entailment

    def begin(self, question: Question, sources: Sequence[Source]) -> tuple[Verifier, "MeteredModels"]:
        """A verifier of the answer to `question`, and its models, which note their calls."""
        models = MeteredModels(question, ledger=self._ledger, embedder=self._embedder, entailment=self._entailment)
        judge = models if self._entailment is not None else None
        return Verifier(sources, question=question.text, embedder=models, judge=judge), models


class MeteredModels:
    """Implements `SentenceEmbedder` and, where there is an entailment model, `Judge`, for one question.

    It makes one call at a time. `calls` are those made so far, each with its ledger row.
    """

    def __init__(
        self, question: Question, *, ledger: Ledger, embedder: Embedder, entailment: EntailmentJudge | None = None
    ) -> None:
        self._question = question
        self._ledger = ledger
        self._embedder = embedder
        self._entailment = entailment
        self._reserved = 0
        self.calls: list[ModelCall] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 unit rows, in the order of `texts`.

        Raises:
            StoreUnavailable, StorageFull: The call could not be written to the ledger, and was not made.
        """
        embedder = self._embedder
        limit = embedder.info.max_tokens
        tokens = embedder.count_documents(texts, counted=[min(embedder.count_tokens(text), limit) for text in texts])
        with self._ledger.metered(self._reservation(embedder.info.model, embedder.info.revision, tokens)):
            vectors = embedder.embed_documents(texts)
        self._note(embedder.info.model, tokens)
        return vectors

    def judge(self, claim: str, passages: Sequence[str]) -> list[Judgement]:
        """Probabilities that each passage entails or contradicts the claim, in the order of `passages`.

        Raises:
            StoreUnavailable, StorageFull: The call could not be written to the ledger, and was not made.
            VerifierUnavailable: The model gave NaN or infinity.
        """
        entailment = self._entailment
        assert entailment is not None, "a judge only where there is a model"
        tokens = entailment.count_tokens(claim, passages)
        with self._ledger.metered(self._reservation(entailment.model, entailment.revision, tokens)):
            judgements = entailment.judge(claim, passages)
        self._note(entailment.model, tokens)
        return judgements

    def _reservation(self, model: str, revision: str, tokens: int) -> Reservation:
        """The next call of this verification, as the ledger writes it down."""
        reservation = self._question.reservation(
            call=CallNumber.FIRST_VERIFICATION + self._reserved,
            operation=Operation.JUDGE,
            model=model,
            tokenizer_revision=revision,
            input_tokens=tokens,
        )
        self._reserved += 1
        return reservation

    def _note(self, model: str, tokens: int) -> None:
        self.calls.extend(called(ModelCall(purpose=Purpose.VERIFY, model=model, prompt_tokens=tokens)))
