"""What verification asks of models. Implementations are handed in for each answer, so that they can be billed."""

from collections.abc import Sequence
from typing import Protocol

from retrieval.ports import Vectors


class SentenceEmbedder(Protocol):
    """Turns sentences into unit vectors."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dim) float32 unit rows, in the order of `texts`."""
        ...
