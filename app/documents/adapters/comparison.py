"""Compares an index outside of the database with the rows that it is derived from."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from retrieval.ports import Keys

Look: TypeAlias = Callable[[], tuple[Keys, Keys]]
"""The keys that an index lacks now, and those that it holds in surplus."""

_SECOND_LOOK_SECONDS = 2.0


def seen_twice(look: Look, pause: Callable[[float], None]) -> tuple[Keys, Keys]:
    """The keys missing and in surplus at two looks: a commit reaches SQL first, then the index."""
    missing, surplus = look()
    if len(missing) or len(surplus):
        pause(_SECOND_LOOK_SECONDS)
        missing_still, surplus_still = look()
        missing, surplus = np.intersect1d(missing, missing_still), np.intersect1d(surplus, surplus_still)
    return missing, surplus
