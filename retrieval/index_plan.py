"""Which kind of index a number of vectors wants, and when changing it is worth the training."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Flat below `inverted_from` vectors, inverted lists from there on, flat again below `flat_below`.

    The two bounds lie apart so that a collection about their size is not trained again and again.
    """

    inverted_from: int = 50_000
    flat_below: int = 25_000

    def __post_init__(self) -> None:
        if not 0 < self.flat_below <= self.inverted_from:
            raise ValueError(f"flat_below must lie in 1..{self.inverted_from}, got {self.flat_below}")

    def lists(self, count: int, *, now: int | None = None) -> int:
        """How many inverted lists `count` vectors should have, 0 for a flat index.

        About four times the square root of the count, as FAISS advises ("Guidelines to choose an
        index"), as a power of two; lists that exist are kept until they are twice too many or too few.

        Args:
            count: Vectors held, or to be held.
            now: Lists of the index in use; None when there is none yet.
        """
        if count < (self.flat_below if now else self.inverted_from):
            return 0
        advised = min(4 * math.sqrt(count), count / 2)
        if now and now / 2 < advised < now * 2:
            return now
        return max(1, 1 << round(math.log2(max(1.0, advised))))
