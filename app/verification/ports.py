"""What verification asks of models. Implementations are handed in for each answer, so that they can be billed."""

from collections.abc import Sequence
from typing import Protocol

from retrieval.entailment import Judgement
from retrieval.ports import Vectors


class SentenceEmbedder(Protocol):
    """Turns sentences into unit vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 unit rows, in the order of `texts`."""
        ...


class Judge(Protocol):
    """Reads a claim and a passage together."""

    def judge(self, claim: str, passages: Sequence[str]) -> list[Judgement]:
        """What each passage says of the claim, in the order of `passages`."""
        ...


class EntailmentJudge(Judge, Protocol):
    """A model that judges claims. Safe to call from several threads."""

    @property
    def model(self) -> str:
        """What the model is called."""
        ...

    @property
    def revision(self) -> str:
        """Identifies its weights."""
        ...

    def count_tokens(self, claim: str, passages: Sequence[str]) -> int:
        """Tokens `judge` reads of all pairs."""
        ...
