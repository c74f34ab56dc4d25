"""Finds the passages of a text in its next version: unchanged, at another place, altered or gone.

A passage that stands in the new text word for word is found by its words; where it stands more than once, the sentences
around it decide. Otherwise the sentences that only the new text has are compared: the one that shares the passage's
rarest words, or lies between its neighbours, is taken for its new wording, unless another lost sentence resembles it
more. No model is called.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from enum import StrEnum
from functools import cached_property

from ingestion.sentence_pairs import SentencedText, distance, expected_places, flat, same_sentences, shape
from ingestion.wording import bare_words
from retrieval.types import Span
from retrieval.words import word_spans

_SEEDS = 4  # sentences by shared words that are compared word by word
_RIVALS = 3  # lost sentences that may be what a sentence was before, by shared words
_LEAST_SHARED = 0.5  # of the passage's words, by weight, in its new wording
_NEIGHBOUR = 0.15  # less is needed for each neighbouring sentence that is still beside it
_WAY = 0.1  # more, for a new wording far from where it is likely
_FARTHEST = 40  # sentences; farther ones are as far
_OTHER_COUNT = 0.05  # more, for a new wording of another number of sentences
_LEAST_EVER = 0.2
_LONGER = 1.6  # a new wording of so many times the words has something before or after it
_NUMBER_WEIGHT = 0.25  # of the exact numbers in the comparison


class PassageState(StrEnum):
    """What became of a passage: `MOVED` is unchanged at another place."""

    CURRENT = "current"
    MOVED = "moved"
    ALTERED = "altered"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """The state of a passage and its place in the new text; `span` is None where it is gone."""

    state: PassageState
    span: Span | None = None


_GONE = FoundPassage(PassageState.GONE)


class Revision:
    """A new text, beside the old one where that is still known.

    Example:
        >>> revision = Revision("One. Two. Three.", old="One. Three.")
        >>> revision.find("Three.", start_char=5)
        FoundPassage(state=<PassageState.MOVED: 'moved'>, span=Span(start_char=10, end_char=16))
    """

    def __init__(self, new: str, *, old: str | None = None) -> None:
        """Nothing is compared yet."""
        self._new = SentencedText(new)
        self._old = None if old is None else SentencedText(old)

    def find(self, passage: str, *, start_char: int) -> FoundPassage:
        """What became of `passage`, which began at `start_char` (code points) of the old text.

        White space may differ. Without the old text, of several equal places the nearest one is taken.
        """
        end_char = start_char + len(passage)
        if self._old is not None and end_char <= self._same_characters:
            return FoundPassage(PassageState.CURRENT, Span(start_char, end_char))
        needle = flat(passage)
        if not needle:
            return _GONE
        place = self._exact(needle, start_char, end_char)
        if place is not None:
            span = self._new.span(place, place + len(needle))
            same = span.start_char == start_char and self._new.text[start_char:end_char] == passage
            return FoundPassage(PassageState.CURRENT if same else PassageState.MOVED, span)
        reworded = self._reworded(passage, needle, start_char)
        return _GONE if reworded is None else FoundPassage(PassageState.ALTERED, reworded)

    @property
    def pairs(self) -> Mapping[int, int]:
        """For each sentence of the old text that is in the new one, its number there; none where it is not known."""
        return self._pairs

    @property
    def sentences(self) -> tuple[SentencedText, SentencedText]:
        """The old text and the new one; the old one must be known."""
        assert self._old is not None, "asked only with both texts"
        return self._old, self._new

    @cached_property
    def _same_characters(self) -> int:
        """How many characters both texts begin with."""
        assert self._old is not None, "asked only with both texts"
        low, high = 0, min(len(self._old.text), len(self._new.text))
        while low < high:
            middle = (low + high + 1) // 2
            if self._old.text[:middle] == self._new.text[:middle]:
                low = middle
            else:
                high = middle - 1
        return low

    @cached_property
    def _pairs(self) -> dict[int, int]:
        """For each sentence of the old text that is in the new one, its number there."""
        return {} if self._old is None else same_sentences(self._old.keys, self._new.keys)

    @cached_property
    def _owners(self) -> dict[int, int]:
        return {other: unit for unit, other in self._pairs.items()}

    def _exact(self, needle: str, start_char: int, end_char: int) -> int | None:
        """Where the words stand in the flat new text; None where they do not, or every such place is another's."""
        places = self._new.places(needle)
        if not places:
            return None
        if self._old is None:
            shift = self._new.flat_place(start_char)
            return min(places, key=lambda place: abs(place - shift))
        if len(places) == 1 == len(self._old.places(needle)):
            return places[0]
        units = self._old.units_over(start_char, end_char)
        mine, ours = units.start, self._old.flat_place(start_char)
        if mine in self._pairs:
            likely = self._new.flat_start(self._pairs[mine]) + ours - self._old.flat_start(mine)
            if likely in places:
                return likely
        open_ = [place for place in places if self._owners.get(self._new.unit_at(place), mine) in units]
        return min(open_, key=lambda place: self._way(mine, self._new.unit_at(place)), default=None)

    def _way(self, unit: int, other: int) -> float:
        """How far a sentence of the new text is from where one of the old text is likely, in [0, 1]."""
        return min(1.0, distance(self._expected[unit], other) / _FARTHEST)

    @cached_property
    def _expected(self) -> list[tuple[int, ...]]:
        assert self._old is not None, "asked only with both texts"
        return expected_places(self._pairs, len(self._old.keys))

    def _reworded(self, passage: str, needle: str, start_char: int) -> Span | None:
        """The new wording of a passage whose words stand nowhere."""
        words = bare_words(passage)
        if not words:
            return None
        units = self._old.units_over(start_char, start_char + len(passage)) if self._old is not None else range(1)
        mine = {self._pairs[unit] for unit in units if unit in self._pairs}
        count = len(units)
        seeds = self._seeds(words, units, mine)
        windows = {window for seed in seeds for window in self._windows(seed, count, mine)}
        near = {one: self._nearness(units, one) - _OTHER_COUNT * abs(len(one) - count) for one in windows}
        rough = {one: near[one] + self._common(words, self._words_in(one)) for one in windows}
        scored: dict[range, float] = {}
        for window in sorted(windows, key=lambda one: (-rough[one], one.start, one.stop))[:_SEEDS]:
            if needle in " ".join(self._new.keys[window.start : window.stop]):
                continue  # the place of another passage of equal words
            shared = self._likeness(words, self._words_in(window))
            if shared >= _LEAST_EVER:
                scored[window] = shared + near[window]
        for window in sorted(scored, key=lambda one: -scored[one])[:_SEEDS]:
            if scored[window] < _LEAST_SHARED:
                return None
            if not self._is_anothers(words, window, units):
                return self._trimmed(passage, start_char, units, window)
        return None

    def _words_in(self, window: range) -> list[str]:
        return [word for unit in window for word in self._new.words[unit]]

    def _nearness(self, units: range, window: range) -> float:
        """What speaks for a window by its place: sentences that were and are beside it, and the way from there."""
        if self._old is None:
            return 0.0
        before, after = self._pairs.get(units.start - 1), self._pairs.get(units.stop)
        beside = (before == window.start - 1) + (after == window.stop)
        return _NEIGHBOUR * beside - _WAY * self._way(units.start, window.start)

    def _seeds(self, words: Sequence[str], units: range, mine: AbstractSet[int]) -> list[int]:
        """Sentences of the new text that may be, or begin, a new wording: by rare words, and by their neighbours."""
        weights: dict[int, float] = defaultdict(float)
        for word in set(words):
            for unit in self._free.having.get(word, ()):
                weights[unit] += self._new.weight(word)
        wanted = sorted(weights, key=lambda unit: (-weights[unit], unit))[:_SEEDS]
        if units.start - 1 in self._pairs:
            wanted.append(self._pairs[units.start - 1] + 1)
        if units.stop in self._pairs:
            wanted.append(self._pairs[units.stop] - len(units))
        wanted += sorted(mine)[:_SEEDS]
        return [unit for unit in dict.fromkeys(wanted) if 0 <= unit < len(self._new.keys) and self._open(unit, mine)]

    def _open(self, unit: int, mine: AbstractSet[int]) -> bool:
        """Whether a sentence of the new text may be part of a passage's new wording."""
        return unit in self._free.units or unit in mine

    def _windows(self, seed: int, count: int, mine: AbstractSet[int]) -> Iterable[range]:
        """Runs of open sentences around a seed, at most one longer than the passage."""
        first = seed
        while first > seed - count and first > 0 and self._open(first - 1, mine):
            first -= 1
        last = seed + 1
        while last < min(len(self._new.keys), seed + count + 1) and self._open(last, mine):
            last += 1
        for start in range(first, seed + 1):
            for stop in range(seed + 1, last + 1):
                if abs(stop - start - count) <= 1:
                    yield range(start, stop)

    def _common(self, words: Sequence[str], others: Sequence[str]) -> float:
        """The share of the words of both that both have, in any order: a quick look before `_likeness`."""
        both = Counter(map(shape, words)) & Counter(map(shape, others))
        mine = self._new.weights(map(shape, words))
        return sum(self._new.weight(word) * count for word, count in both.items()) / mine

    def _likeness(self, words: Sequence[str], others: Sequence[str], *, whole: bool = False) -> float:
        """The share of words that both have in order, by weight; `whole` counts all other words, too."""
        shapes, other_shapes = [*map(shape, words)], [*map(shape, others)]
        matcher = SequenceMatcher(None, shapes, other_shapes, autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        if not blocks:
            return 0.0
        if not whole:
            other_shapes = other_shapes[_reach(blocks, len(words))]
        both = [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]
        loose = self._new.weights(shapes[at] for at, _ in both)
        exact = self._new.weights(words[at] for at, other in both if words[at] == others[other])
        mine = self._new.weights(shapes)
        theirs = self._new.weights(other_shapes)
        total, all_exact = max(mine, 0.5 * (mine + theirs)), self._new.weights(words)
        return (1 - _NUMBER_WEIGHT) * loose / total + _NUMBER_WEIGHT * exact / all_exact

    def _is_anothers(self, words: Sequence[str], window: range, units: range) -> bool:
        """Whether another lost sentence of the old text resembles the window more than the passage does."""
        old = self._old
        if old is None or len(units) != 1:
            return False
        theirs = _reached(words, self._words_in(window))

        def score(unit: int, words: Sequence[str]) -> float:
            near = self._nearness(range(unit, unit + 1), window)
            return self._likeness(words, theirs, whole=True) + near

        weights: dict[int, float] = defaultdict(float)
        for word in set(theirs):
            for unit in self._lost.having.get(word, ()):
                weights[unit] += self._new.weight(word)
        rivals = sorted((unit for unit in weights if unit not in units), key=lambda unit: (-weights[unit], unit))
        ours = score(units.start, words)
        return any(score(unit, old.words[unit]) > ours for unit in rivals[:_RIVALS])

    def _trimmed(self, passage: str, start_char: int, units: range, window: range) -> Span:
        """The window, without what stands before or after a passage that was a part of its sentence."""
        start, end = self._new.spans[window.start][0], self._new.spans[window.stop - 1][1]
        if self._old is None or not units:
            return Span(start, end)
        text = self._new.text[start:end]
        ours, theirs = word_spans(passage), word_spans(text)
        longer = len(theirs) > _LONGER * len(ours)
        cut_before = longer or self._old.spans[units.start][0] < start_char
        cut_after = longer or self._old.spans[units.stop - 1][1] > start_char + len(passage.rstrip())
        matcher = SequenceMatcher(None, [passage[a:b] for a, b in ours], [text[a:b] for a, b in theirs], autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        if not blocks or not (cut_before or cut_after):
            return Span(start, end)
        reach = _reach(blocks, len(ours))
        first = reach.start if cut_before else 0
        last = min(reach.stop, len(theirs)) - 1 if cut_after else len(theirs) - 1
        return Span(start + theirs[first][0], start + theirs[last][1])

    @cached_property
    def _free(self) -> "_Units":
        """The sentences of the new text that the old one did not have; all of them where it is not known."""
        return _Units.of(self._new, self._owners)

    @cached_property
    def _lost(self) -> "_Units":
        """The sentences of the old text that the new one does not have."""
        assert self._old is not None, "asked only with both texts"
        return _Units.of(self._old, self._pairs)


@dataclass(frozen=True, slots=True)
class _Units:
    """Some sentences of a text, and those among them that have each of the less common words."""

    units: frozenset[int]
    having: dict[str, list[int]]

    @classmethod
    def of(cls, text: SentencedText, paired: Container[int]) -> "_Units":
        """Those without a pair."""
        units = [unit for unit in range(len(text.keys)) if unit not in paired]
        having: dict[str, list[int]] = defaultdict(list)
        for unit in units:
            for word in set(text.words[unit]):
                having[word].append(unit)
        most = max(50, len(units) // 5)
        return cls(frozenset(units), {word: found for word, found in having.items() if len(found) <= most})


def _reached(words: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """The part of `others` that can be a wording of `words`."""
    matcher = SequenceMatcher(None, [*map(shape, words)], [*map(shape, others)], autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    return others[_reach(blocks, len(words))] if blocks else others


def _reach(blocks: Sequence[Match], length: int) -> slice:
    """The part of the other words that can be a wording of so many words, by their common ones."""
    return slice(max(0, blocks[0].b - blocks[0].a), blocks[-1].b + length - blocks[-1].a)
