"""The sentences of a text, and which of them are the same in two versions of it.

A sentence that both texts have once is the same in both. From each such pair the next equal sentences on both sides are
the same, too, also behind a few that differ. So of sentences that are written many times each is paired by the text
around it, and a block that was moved stays together.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from ingestion.wording import bare_words
from retrieval.sentences import unit_spans
from retrieval.types import Span
from retrieval.words import UNSPACED

_MOST_COMPARED = 20_000  # pairs of equal sentences; of more each is paired with the next one
_SKIPPED = 4  # sentences that may differ between two that are the same
_STEPS = sorted(
    ((mine, theirs) for mine in range(1, _SKIPPED + 2) for theirs in range(1, _SKIPPED + 2)),
    key=lambda step: (abs(step[0] - step[1]), max(step)),
)
_NUMBER = "0"  # stands for all numbers: a renumbered sentence is the same sentence
_FIRST_UNSPACED = UNSPACED[0]


class SentencedText:
    """A text, its words joined by single spaces (flat), and its sentences."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words_at = [*_runs(text)]
        self._starts: list[int] = []
        at = 0
        for start, end in self.words_at:
            self._starts.append(at)
            at += end - start + 1
        self.flat = " ".join(text[start:end] for start, end in self.words_at)

    def flat_place(self, offset: int) -> int:
        """The place in the flat text of the first character at or after `offset` that is no white space."""
        at = bisect_right(self.words_at, offset, key=lambda word: word[1])
        if at == len(self.words_at):
            return len(self.flat)
        return self._starts[at] + max(0, offset - self.words_at[at][0])

    def span(self, start: int, end: int) -> Span:
        """The characters of a part of the flat text."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        return Span(
            self.words_at[first][0] + start - self._starts[first],
            self.words_at[last][0] + end - self._starts[last],
        )

    def places(self, needle: str) -> list[int]:
        """Where the flat text has these words, apart from each other and not within longer words."""
        found = []
        at = self.flat.find(needle)
        while at >= 0:
            end = at + len(needle)
            inside = _joined(self.flat[at - 1 : at], needle[0]) or _joined(needle[-1], self.flat[end : end + 1])
            if not inside:
                found.append(at)
            at = self.flat.find(needle, at + 1 if inside else end)
        return found

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """The sentences, in order."""
        return unit_spans(self.text)

    @cached_property
    def keys(self) -> list[str]:
        """The sentences with single spaces."""
        return [flat(self.text[start:end]) for start, end in self.spans]

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each sentence."""
        return [bare_words(key) for key in self.keys]

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(key for words in self.words for key in {*words, *map(shape, words)})

    @cached_property
    def _weights(self) -> dict[str, float]:
        return {word: self._weight(count) for word, count in self._counts.items()}

    @cached_property
    def _rarest(self) -> float:
        return self._weight(0)

    def _weight(self, count: int) -> float:
        return math.log(1 + (len(self.keys) + 1) / (1 + count))

    def weight(self, word: str) -> float:
        """How much a word says: more the fewer sentences have it."""
        return self._weights.get(word, self._rarest)

    def weights(self, words: Iterable[str]) -> float:
        """How much words say together."""
        known, rarest = self._weights, self._rarest
        return sum(known.get(word, rarest) for word in words)

    def units_over(self, start: int, end: int) -> range:
        """The sentences that have a character of `[start, end)`."""
        return range(
            bisect_right(self.spans, start, key=lambda span: span[1]), bisect_left(self.spans, end, key=lambda s: s[0])
        )

    def unit_at(self, place: int) -> int:
        """The sentence at a place of the flat text."""
        start = self.span(place, place + 1).start_char
        return max(0, bisect_right(self.spans, start, key=lambda span: span[0]) - 1)

    def flat_start(self, unit: int) -> int:
        """Where a sentence begins in the flat text."""
        return self.flat_place(self.spans[unit][0])


def same_sentences(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """For each sentence of `old` that is one of `new`, its number there. No two of them are the same one."""
    mine, theirs = _having(old), _having(new)
    pairs = {units[0]: theirs[key][0] for key, units in mine.items() if len(units) == 1 == len(theirs.get(key, ()))}
    taken = set(pairs.values())
    for steps in (_STEPS[:1], _STEPS):
        for unit, other in sorted(pairs.items()):
            for way in (1, -1):
                _extend(old, new, unit, other, way, steps, pairs, taken)
    near = expected_places(pairs, len(old))
    for key, units in mine.items():
        left = [unit for unit in units if unit not in pairs]
        open_ = [other for other in theirs.get(key, ()) if other not in taken]
        if not left or not open_:
            continue
        if len(left) * len(open_) > _MOST_COMPARED:
            _note(zip(left, open_, strict=False), pairs, taken)
            continue
        ranked = sorted((distance(near[unit], other), unit, other) for unit in left for other in open_)
        _note(((unit, other) for _, unit, other in ranked), pairs, taken)
    return pairs


def expected_places(pairs: Mapping[int, int], count: int) -> list[tuple[int, ...]]:
    """Where each of so many sentences would be, by the nearest pair before it and the nearest one after it."""
    before: list[int | None] = []
    for unit in range(count):
        before.append(pairs[unit] if unit in pairs else before[-1] + 1 if before and before[-1] is not None else None)
    after: list[int | None] = [None] * count
    for unit in reversed(range(count)):
        behind = after[unit + 1] if unit + 1 < count else None
        after[unit] = pairs[unit] if unit in pairs else behind - 1 if behind is not None else None
    return [
        tuple(place for place in both if place is not None) or (unit,)
        for unit, both in enumerate(zip(before, after, strict=True))
    ]


def distance(expected: Sequence[int], place: int) -> int:
    """How far a place is from the nearest expected one."""
    return min(abs(place - one) for one in expected)


def _note(found: Iterable[tuple[int, int]], pairs: dict[int, int], taken: set[int]) -> None:
    for unit, other in found:
        if unit not in pairs and other not in taken:
            pairs[unit] = other
            taken.add(other)


def shape(word: str) -> str:
    """A word, or for every word with a digit the same sign."""
    return word if word.isalpha() or not any(map(str.isdigit, word)) else _NUMBER


def _having(keys: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for unit, key in enumerate(keys):
        found[key].append(unit)
    return found


def _extend(
    old: Sequence[str],
    new: Sequence[str],
    unit: int,
    other: int,
    way: int,
    steps: Sequence[tuple[int, int]],
    pairs: dict[int, int],
    taken: set[int],
) -> None:
    """Pair the equal sentences that follow a pair in one direction, until another pair or nothing equal is near."""
    going = True
    while going:
        going = False
        mine = next((step for step in range(1, _SKIPPED + 2) if unit + way * step in pairs), _SKIPPED + 2)
        theirs = next((step for step in range(1, _SKIPPED + 2) if other + way * step in taken), _SKIPPED + 2)
        for step, other_step in steps:
            after, other_after = unit + way * step, other + way * other_step
            there = step < mine and other_step < theirs and 0 <= after < len(old) and 0 <= other_after < len(new)
            if there and old[after] == new[other_after]:
                pairs[after] = other_after
                taken.add(other_after)
                unit, other, going = after, other_after, True
                break


def flat(text: str) -> str:
    """The words of a text with single spaces between them."""
    return " ".join(text.split())


def _runs(text: str) -> Iterable[tuple[int, int]]:
    at = 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        yield start, at


def _joined(before: str, after: str) -> bool:
    """Whether two characters are within one word."""
    return before.isalnum() and after.isalnum() and before < _FIRST_UNSPACED and after < _FIRST_UNSPACED
