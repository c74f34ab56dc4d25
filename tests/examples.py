"""How many examples a slow property tries: all of them with `--exhaustive`, a third of them otherwise."""

from hypothesis import settings

_USUAL = 100
_FEWEST = 5


def examples(count: int) -> int:
    """The number of examples for `@settings(max_examples=…)`; `count` with `--exhaustive`.

    `tests/conftest.py` loads the Hypothesis profile before any test module is imported.
    """
    return count if settings().max_examples >= _USUAL else min(count, max(_FEWEST, count // 3))
