"""A fake span reader that points at given words."""

from collections.abc import Sequence

from retrieval.types import Pointer


class PointingReader:
    """Implements `SpanReader`: points at the same words in every passage that has them, with given probabilities.

    In other passages it points at the first character, with probability .01.
    """

    model = "pointing"
    revision = "r1"
    threshold = 0.4

    def __init__(self, words: str, *, probabilities: Sequence[float] = (0.9,), failing: bool = False) -> None:
        """The last of the probabilities is also that of all further passages."""
        self._words = words
        self._probabilities = probabilities
        self._failing = failing
        self.passages: list[str] = []

    def count_tokens(self, question: str, passages: Sequence[str]) -> int:
        return sum(len(question.split()) + len(passage.split()) for passage in passages)

    def read(self, question: str, passages: Sequence[str]) -> list[Pointer | None]:
        if self._failing:
            raise RuntimeError("the model broke")
        self.passages += passages
        return [self._pointer(passage, place) for place, passage in enumerate(passages)]

    def _pointer(self, passage: str, place: int) -> Pointer | None:
        if not passage:
            return None
        start = passage.find(self._words)
        if start < 0:
            return Pointer(0, 1, 0.01)
        probability = self._probabilities[min(place, len(self._probabilities) - 1)]
        return Pointer(start, start + len(self._words), probability)
