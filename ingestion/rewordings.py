"""Pairs sentences that were rewritten where they stand, however much of them changed.

Between two unchanged neighbours the sentences of either text keep their order, so that what is likely to be whose new
wording is an alignment in order (Needleman and Wunsch 1970, Journal of Molecular Biology 48), in which two sentences
may have become one or one two (Gale and Church 1993, Computational Linguistics 19). Its score is the likeness of the
pairs above a least one. Only sentences that share words of their place are tried, and the best chain of them is found
in n log n (Eppstein and others 1992, Journal of the ACM 39). No model is called.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestion.sentence_pairs import SentencedText, shape

LEAST_LIKENESS = 0.3
"""From here on more pairs of real revisions are right than wrong (docs/BENCHMARKS.md, "Versions compared")."""

_MOST_HAVING = 50  # sentences of a place that have a word by which others are found; more common ones tell too little
_MOST_TRIED = 8  # sentences by their common words, for each sentence of the first text
_NUMBER_WEIGHT = 0.25  # of the exact numbers in the likeness


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """The numbers of the sentences that either text has between the same two unchanged ones."""

    old: Sequence[int]
    new: Sequence[int]


@dataclass(frozen=True, slots=True)
class Rewording:
    """Sentences of the old text with those of the new one that are their new wording, and how alike they are."""

    old: range
    new: range
    likeness: float


class Likeness:
    """How alike sentences of two texts are: the share of the words of both that both have, in any order.

    A word counts by how rare it is in both texts. Numbers are alike to three quarters: a row with other figures may be
    the same row.

    Example:
        >>> alike = Likeness(SentencedText("The fee is 30 euros."), SentencedText("The fee is 25 euros."))
        >>> round(alike.of(range(1), range(1)), 2)
        0.94
    """

    def __init__(self, old: SentencedText, new: SentencedText) -> None:
        """Nothing is compared yet."""
        self._old, self._new = old, new
        self._weights: dict[str, float] = {}
        self._old_bags: dict[range, _Bag] = {}
        self._new_bags: dict[range, _Bag] = {}

    def of(self, units: range, others: range) -> float:
        """The likeness of sentences of the old text and of the new one, in [0, 1]."""
        mine, theirs = self._bag(self._old, units, self._old_bags), self._bag(self._new, others, self._new_bags)
        return (1 - _NUMBER_WEIGHT) * self._share(mine.shapes, theirs.shapes) + _NUMBER_WEIGHT * self._share(
            mine.words, theirs.words
        )

    def weight(self, word: str) -> float:
        """How much a word says in both texts."""
        if word not in self._weights:
            self._weights[word] = self._old.weight(word) + self._new.weight(word)
        return self._weights[word]

    def _bag(self, text: SentencedText, units: range, bags: dict[range, "_Bag"]) -> "_Bag":
        if units not in bags:
            words = [word for unit in units for word in text.words[unit]]
            bags[units] = _Bag(self._weighed(Counter(map(shape, words))), self._weighed(Counter(words)))
        return bags[units]

    def _weighed(self, counts: Counter[str]) -> "_Weighed":
        weights = {word: self.weight(word) * count for word, count in counts.items()}
        return _Weighed(weights, sum(weights.values()))

    def _share(self, mine: "_Weighed", theirs: "_Weighed") -> float:
        total = mine.total + theirs.total
        others = theirs.weights
        both = sum(min(weight, others[word]) for word, weight in mine.weights.items() if word in others)
        return 2 * both / total if total else 0.0


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Words with their weight times their number, and the sum."""

    weights: dict[str, float]
    total: float


@dataclass(frozen=True, slots=True)
class _Bag:
    """The words of sentences, with one shape for all numbers and with the numbers themselves."""

    shapes: _Weighed
    words: _Weighed


def rewordings(
    old: SentencedText,
    new: SentencedText,
    places: Iterable[ChangedPlace],
    *,
    give_way: Callable[[], None] = lambda: None,
) -> list[Rewording]:
    """The pairs of each place that are most alike together, in the order of both texts; no sentence is in two.

    `give_way` is called between two that are tried.
    """
    alike = Likeness(old, new)
    found: list[Rewording] = []
    for place in places:
        tried: list[Rewording] = []
        for units, others in _tried(old, new, place, alike):
            tried.append(Rewording(units, others, alike.of(units, others)))
            give_way()
        found += most_alike_in_order(tried, least=LEAST_LIKENESS)
    return found


def _tried(
    old: SentencedText, new: SentencedText, place: ChangedPlace, alike: Likeness
) -> Iterator[tuple[range, range]]:
    """One sentence with one, two with one, and one with two; two stand beside each other."""
    mine, theirs = set(place.old), set(place.new)
    tried: dict[tuple[range, range], None] = {}
    for unit, other in _sharing(old, new, place, alike):
        one, one_other = range(unit, unit + 1), range(other, other + 1)
        tried[one, one_other] = None
        tried.update(((two, one_other), None) for two in _twos(unit) if mine.issuperset(two))
        tried.update(((one, two), None) for two in _twos(other) if theirs.issuperset(two))
    yield from tried


def _twos(unit: int) -> tuple[range, range]:
    return range(unit - 1, unit + 1), range(unit, unit + 2)


def _sharing(old: SentencedText, new: SentencedText, place: ChangedPlace, alike: Likeness) -> Iterator[tuple[int, int]]:
    """Sentences of a place with those that share the most of its less common words; of equals, the nearest ones."""
    having: dict[str, list[int]] = defaultdict(list)
    for at, other in enumerate(place.new):
        for word in dict.fromkeys([*map(shape, new.words[other]), *new.words[other]]):
            having[word].append(at)
    steepness = len(place.new) / max(1, len(place.old))
    for at, unit in enumerate(place.old):
        shared: dict[int, float] = defaultdict(float)
        for word in dict.fromkeys([*map(shape, old.words[unit]), *old.words[unit]]):
            if len(having.get(word, ())) <= _MOST_HAVING:
                for other in having.get(word, ()):
                    shared[other] += alike.weight(word)
        for other in sorted(shared, key=lambda other: (-shared[other], abs(other - at * steepness)))[:_MOST_TRIED]:
            yield unit, place.new[other]


def most_alike_in_order(found: Sequence[Rewording], *, least: float) -> list[Rewording]:
    """Of these the ones that keep their order and do not overlap, with the greatest sum of likeness above `least`.

    Example:
        >>> first, second = Rewording(range(1), range(1), 0.5), Rewording(range(1, 2), range(1, 2), 0.5)
        >>> across = Rewording(range(1), range(1, 2), 0.6)
        >>> most_alike_in_order([first, second, across], least=0.2) == [first, second]
        True
    """
    alike = [one for one in found if one.likeness > least]
    ends = sorted({one.new.stop for one in alike})
    best = _PrefixBest(len(ends))
    totals = [0.0] * len(alike)
    before: list[int | None] = [None] * len(alike)
    open_ = sorted(range(len(alike)), key=lambda at: alike[at].old.stop)
    closed = 0
    for at in sorted(range(len(alike)), key=lambda at: alike[at].old.start):
        one = alike[at]
        while alike[open_[closed]].old.stop <= one.old.start:
            done = open_[closed]
            best.note(bisect_left(ends, alike[done].new.stop), totals[done], done)
            closed += 1
        total, before[at] = best.up_to(bisect_right(ends, one.new.start))
        totals[at] = total + one.likeness - least
    chain: list[Rewording] = []
    last = max(range(len(alike)), key=totals.__getitem__, default=None)
    while last is not None:
        chain.append(alike[last])
        last = before[last]
    return chain[::-1]


class _PrefixBest:
    """The greatest total noted at the first so many places (Fenwick 1994, Software: Practice and Experience 24)."""

    def __init__(self, count: int) -> None:
        self._best: list[tuple[float, int | None]] = [(0.0, None)] * (count + 1)

    def note(self, place: int, total: float, name: int) -> None:
        at = place + 1
        while at < len(self._best):
            if self._best[at][0] < total:
                self._best[at] = total, name
            at += at & -at

    def up_to(self, count: int) -> tuple[float, int | None]:
        found: tuple[float, int | None] = (0.0, None)
        while count > 0:
            found = max(found, self._best[count], key=lambda one: one[0])
            count &= count - 1
        return found
