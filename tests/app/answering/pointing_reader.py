"""A fake span reader that points at given words."""

from collections.abc import Callable, Sequence
from math import exp

from retrieval.types import Pointer, Span

SURE = 30.0
"""A margin beyond which nothing is surer; minus this much, nothing is less so."""


class PointingReader:
    """Implements `SpanReader`: points at the same words in every piece that has them, with given margins.

    In other pieces it points at the first character, with margin `-SURE`.
    """

    model = "pointing"
    revision = "r1"
    threshold = 0.4

    def __init__(
        self, words: str, *, asked: str = "", other: str = "", margins: Sequence[float] = (SURE,), failing: bool = False
    ) -> None:
        """Point at `words`, in pieces without them at `other`, where the question has the text `asked`.

        The margins are of the passages in their order, the last of them also of all further passages.
        """
        self._words = words
        self._asked = asked
        self._other = other
        self._margins = margins
        self._failing = failing
        self.passages: list[str] = []
        self.pieces: list[Sequence[Span]] = []

    def count_tokens(self, question: str, passages: Sequence[str]) -> int:
        return sum(len(question.split()) + len(passage.split()) for passage in passages)

    def read(self, question: str, passages: Sequence[str]) -> list[Pointer | None]:
        return [found[0] for found in self.mark(question, passages, [[Span(0, len(one))] for one in passages])]

    def mark(
        self,
        question: str,
        passages: Sequence[str],
        pieces: Sequence[Sequence[Span]],
        *,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Pointer | None]]:
        if self._failing:
            raise RuntimeError("the model broke")
        self.passages += passages
        self.pieces += pieces
        found = [
            [
                self._pointer(
                    passage, piece, self._margins[min(place, len(self._margins) - 1)], found=self._asked in question
                )
                for piece in of_passage
            ]
            for place, (passage, of_passage) in enumerate(zip(passages, pieces, strict=True))
        ]
        if on_batch is not None:
            on_batch(self.count_tokens(question, passages))
        return found

    def _pointer(self, passage: str, piece: Span, margin: float, *, found: bool) -> Pointer | None:
        text = passage[piece.start_char : piece.end_char]
        if not text:
            return None
        words = self._words if self._words in text or not self._other else self._other
        at = text.find(words) if found else -1
        first, length = (piece.start_char, 1) if at < 0 else (piece.start_char + at, len(words))
        margin = -SURE if at < 0 else margin
        return Pointer(first, first + length, 1 / (1 + exp(-margin)), margin)
