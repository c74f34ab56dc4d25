"""A cache of chunk headings and texts, which reranking reads in many searches."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

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
        self._most = most_characters
        self._held = 0
        self._known: OrderedDict[int, Headed] = OrderedDict()
        self._lock = Lock()

    @property
    def characters(self) -> int:
        """The number of characters in the cache."""
        return self._held

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
                    self._known.move_to_end(key)
                    found[key] = known
        return found, unknown

    def keep(self, read: Mapping[int, Headed]) -> None:
        """Add entries."""
        with self._lock:
            for key, headed in read.items():
                if key not in self._known:
                    self._known[key] = headed
                    self._held += sum(map(len, headed))
            while self._held > self._most:
                self._held -= sum(map(len, self._known.popitem(last=False)[1]))

    def forget(self, keys: Iterable[int]) -> None:
        """Remove deleted chunks."""
        with self._lock:
            for key in keys:
                if (gone := self._known.pop(key, None)) is not None:
                    self._held -= sum(map(len, gone))
