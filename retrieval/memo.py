"""Caches words, sentences and tokens of texts for the duration of an answer.

Within one answer the same sentences are read a dozen times, and the passages that answer one question answer the next.
Entries of one tenant are never used for another, whose waiting time would reveal them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

Result = TypeVar("Result")

_MOST_CHARACTERS = 16 << 20
_LONGEST = 1 << 14  # characters of one text: a longer one is no passage, and would push out many
_MISSING = object()


class Memo:
    """A cache of results by function, tenant and text, bounded by the characters of its texts. Thread-safe.

    Nothing is remembered outside `of`. Two threads may work out the same thing at once; both get the same.
    """

    def __init__(self, *, most_characters: int = _MOST_CHARACTERS) -> None:
        """Empty."""
        self._most = most_characters
        self._held = 0
        self._known: dict[tuple[object, str, str], Any] = {}
        self._adding = Lock()

    @contextmanager
    def of(self, tenant_id: str) -> Iterator[None]:
        """Activates the cache for a tenant in this thread or task."""
        before = _IN_USE.set((self, tenant_id))
        try:
            yield
        finally:
            _IN_USE.reset(before)

    def result(self, function: Callable[[str], Result], text: str, *, salt: str) -> Result:
        """Returns `function(text)`, from the cache if it is there."""
        key = (function, salt, text)
        found = self._known.get(key, _MISSING)
        if found is not _MISSING:
            known: Result = found
            return known
        result = function(text)
        if len(text) <= _LONGEST:
            with self._adding:
                if key not in self._known:
                    self._known[key] = result
                    self._held += len(text)
                while self._held > self._most:  # the oldest goes; it is cheaper to find again than its last use to note
                    oldest = next(iter(self._known))
                    del self._known[oldest]
                    self._held -= len(oldest[2])
        return result

    @property
    def characters(self) -> int:
        """The number of cached characters; a text counts once per function."""
        return self._held


def remembered(function: Callable[[str], Result]) -> Callable[[str], Result]:
    """Wraps a pure function of a text with the active cache; its results must not be modified."""

    @wraps(function)
    def look(text: str) -> Result:
        in_use = _IN_USE.get()
        if in_use is None:
            return function(text)
        memo, salt = in_use
        return memo.result(function, text, salt=salt)

    return look


_IN_USE: ContextVar[tuple[Memo, str] | None] = ContextVar("memo", default=None)
