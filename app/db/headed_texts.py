"""Headings and texts of chunks that searches weigh again and again, kept between searches."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

Headed = tuple[str, str]
"""The innermost heading, or "", and the text."""

_MOST_CHARACTERS = 16 << 20


class HeadedTexts:
    """At most so many characters of them by chunk key, which is given once and whose chunk never changes.

    Safe to use from several threads; the chunk unused longest goes first. A chunk is one tenant's, so nobody waits
    less for what another asked.
    """

    def __init__(self, *, most_characters: int = _MOST_CHARACTERS) -> None:
        """Empty."""
        self._most = most_characters
        self._held = 0
        self._known: OrderedDict[int, Headed] = OrderedDict()
        self._lock = Lock()

    @property
    def characters(self) -> int:
        """How many are kept."""
        return self._held

    def of(self, keys: Sequence[int]) -> tuple[dict[int, Headed], list[int]]:
        """What is known of `keys`, and the other ones."""
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
        """Keep what was read."""
        with self._lock:
            for key, headed in read.items():
                if key not in self._known:
                    self._known[key] = headed
                    self._held += sum(map(len, headed))
            while self._held > self._most:
                self._held -= sum(map(len, self._known.popitem(last=False)[1]))

    def forget(self, keys: Iterable[int]) -> None:
        """Drop chunks that are gone."""
        with self._lock:
            for key in keys:
                if (gone := self._known.pop(key, None)) is not None:
                    self._held -= sum(map(len, gone))
