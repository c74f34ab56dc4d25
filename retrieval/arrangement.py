"""The order in which sources are read."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from retrieval.types import Source

Order: TypeAlias = Callable[[Sequence[Source]], Sequence[int]]
"""Given sources best first, numbered as they stand, every index once in the order to be read."""


def edges_first(sources: Sequence[Source]) -> list[int]:
    """Best-first sources 1 2 3 4 5 as 1 3 5 4 2.

    Models attend least to the middle of a long prompt (Liu et al. 2023, arXiv:2307.03172).
    """
    return [*range(0, len(sources), 2), *reversed(range(1, len(sources), 2))]
