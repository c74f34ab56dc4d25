"""A cache of chunk headings and texts, which reranking reads in many searches."""

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

from cachetools import LRUCache

Headed = tuple[str, str]
"""The innermost heading, or "", and the text."""

_MOST_CHARACTERS = 16 << 20


class HeadedTexts:
    """An LRU cache by chunk key, bounded in characters. Safe to use from several threads.

    Entries never become stale: a key is assigned once and its chunk never changes. A chunk belongs to one tenant, so
    the cache leaks no timing between tenants.

    Example:
        >>> found, missing = cache.of([1, 2])
        >>> cache.keep({key: read(key) for key in missing})
    """

    def __init__(self, *, most_characters: int = _MOST_CHARACTERS) -> None:
        """Create an empty cache of at most `most_characters`."""
        self._known: LRUCache[int, Headed] = LRUCache(most_characters, getsizeof=_characters)
        self._lock = Lock()

    @property
    def characters(self) -> int:
        """The number of characters in the cache."""
        return int(self._known.currsize)

    def of(self, keys: Sequence[int]) -> tuple[dict[int, Headed], list[int]]:
        """The cached entries among `keys`, and the keys without one."""
        found: dict[int, Headed] = {}
        unknown: list[int] = []
        with self._lock:
            for key in keys:
                known = self._known.get(key)
                if known is None:
                    unknown.append(key)
                else:
                    found[key] = known
        return found, unknown

    def keep(self, read: Mapping[int, Headed]) -> None:
        """Add entries."""
        with self._lock:
            for key, headed in read.items():
                if key not in self._known and _characters(headed) <= self._known.maxsize:
                    self._known[key] = headed

    def forget(self, keys: Iterable[int]) -> None:
        """Remove deleted chunks."""
        with self._lock:
            for key in keys:
                self._known.pop(key, None)


def _characters(headed: Headed) -> int:
    return sum(map(len, headed))
