"""Compares two texts sentence by sentence: what was added, removed, altered or moved.

Sentences that both texts have are paired (`sentence_pairs`). Of these pairs, the longest run that keeps its order
stands where it stood (patience diff; Schensted 1961, Canadian Journal of Mathematics 13); the others moved. Sentences
that differ between two that stand are paired as wording and new wording (`rewordings`). One that is left is looked for
elsewhere in another wording (`revisions`), else it was removed or added. Neighbours that share a fate are one
difference. With the texts exchanged the same sentences are told, with their sides exchanged.
"""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from ingestion.revisions import Revision
from ingestion.rewordings import ChangedPlace, Likeness, rewordings
from ingestion.sentence_pairs import SentencedText
from retrieval.types import Span

MOST_REWORDED = 1_000
"""Sentences that are looked for elsewhere in another wording; those beyond are removed or added."""

_LEAST_ELSEWHERE = 0.4  # of likeness; more than in its place, which speaks for a sentence, too
_LEAST_MOVED = 3  # words: fewer, such as "N/A" or a number, stand in many places, and say nothing when they change them
_TURN_SECONDS = 0.005
_PAUSE_SECONDS = 0.0005


class DifferenceKind(StrEnum):
    """The fate of sentences between two texts."""

    ADDED = "added"
    REMOVED = "removed"
    ALTERED = "altered"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class TextDifference:
    """Sentences of one fate: their characters in the old text and in the new one, None where they are not in it."""

    kind: DifferenceKind
    old: Span | None
    new: Span | None


@dataclass(frozen=True, slots=True)
class TextComparison:
    """The differences in the order of the new text, and the number of sentences that have none."""

    differences: tuple[TextDifference, ...]
    unchanged: int


def compare(
    old: str,
    new: str,
    *,
    section: Callable[[Span, bool], object] = lambda _, __: None,
    pause: Callable[[float], None] = time.sleep,
) -> TextComparison:
    """The differences between two texts.

    Args:
        old: The earlier text.
        new: The later text.
        section: The section of a span, in the new text if the second argument is true; neighbours in different ones
            are differences of their own.
        pause: Called now and then, so that other threads have their turns.

    Example:
        >>> compare("The fee is 30 euros. It is due in May.", "The fee is 35 euros.").differences
        (TextDifference(kind=<DifferenceKind.ALTERED: 'altered'>, old=Span(start_char=0, end_char=20), \
new=Span(start_char=0, end_char=20)), TextDifference(kind=<DifferenceKind.REMOVED: 'removed'>, \
old=Span(start_char=21, end_char=38), new=None))
    """
    return _Comparing(old, new, section, pause).done()


@dataclass(frozen=True, slots=True)
class _Fate:
    """Runs of sentences of either text, and where in the new text it is told of."""

    kind: DifferenceKind
    old: range
    new: range
    at: int


class _Comparing:
    def __init__(
        self, old: str, new: str, section: Callable[[Span, bool], object], pause: Callable[[float], None]
    ) -> None:
        # Rules that choose among equals go from the first text to the second; the same one is always the first.
        self._turned = new < old
        self._revision = Revision(old, old=new) if self._turned else Revision(new, old=old)
        self._first, self._second = self._revision.sentences
        self._old, self._new = (self._second, self._first) if self._turned else (self._first, self._second)
        self._section = section
        self._turns = _Turns(pause)

    def done(self) -> TextComparison:
        pairs = self._revision.pairs
        standing = in_order(sorted(pairs.items()))
        reworded = self._reworded(standing)
        if self._turned:
            pairs = {other: unit for unit, other in pairs.items()}
            standing = {other: unit for unit, other in standing.items()}
            reworded = [(second, first) for first, second in reworded]
        reworded.sort(key=lambda one: one[0].start)
        moved = {unit: other for unit, other in pairs.items() if standing.get(unit) != other}
        fates = [
            *self._fates(DifferenceKind.MOVED, ((range(a, a + 1), range(b, b + 1)) for a, b in sorted(moved.items()))),
            *self._fates(DifferenceKind.ALTERED, reworded),
        ]
        told_old = {*pairs, *(unit for old, _ in reworded for unit in old)}
        told_new = {*pairs.values(), *(unit for _, new in reworded for unit in new)}
        places = _places_of_old({**pairs, **{old[-1]: new[-1] for old, new in reworded}}, len(self._old.keys))
        fates += [
            _Fate(DifferenceKind.REMOVED, range(unit, unit + 1), range(0), places[unit])
            for unit in range(len(self._old.keys))
            if unit not in told_old
        ]
        fates += [
            _Fate(DifferenceKind.ADDED, range(0), range(unit, unit + 1), unit)
            for unit in range(len(self._new.keys))
            if unit not in told_new
        ]
        joined = [*self._joined(sorted(fates, key=lambda fate: (fate.at, not fate.old, fate.old.start)))]
        told = [fate for fate in joined if not self._says_nothing(fate)]
        silent = sum(len(fate.new) for fate in joined if self._says_nothing(fate))
        return TextComparison(tuple(map(self._difference, told)), len(standing) + silent)

    def _fates(self, kind: DifferenceKind, runs: Iterable[tuple[range, range]]) -> Iterator[_Fate]:
        for old, new in runs:
            yield _Fate(kind, old, new, new.start)

    def _reworded(self, standing: Mapping[int, int]) -> list[tuple[range, range]]:
        """Sentences of the first text with the run of sentences that is their other wording; none is given twice."""
        pairs = self._revision.pairs
        places = _changed_places(standing, pairs, len(self._first.keys), len(self._second.keys))
        found = [
            (one.old, one.new) for one in rewordings(self._first, self._second, places, give_way=self._turns.give_way)
        ]
        told = {*pairs, *(unit for units, _ in found for unit in units)}
        taken = {*pairs.values(), *(other for _, others in found for other in others)}
        return [*found, *self._elsewhere(told, taken)]

    def _elsewhere(self, told: set[int], taken: set[int]) -> list[tuple[range, range]]:
        """Sentences whose words stand in another place, also within a longer one. Two neighbours may be one there."""
        found: list[tuple[range, range]] = []
        lost = [unit for unit in range(len(self._first.keys)) if unit not in told]
        for unit in lost[:MOST_REWORDED]:
            start, end = self._first.spans[unit]
            passage = self._revision.find(self._first.text[start:end], start_char=start)
            self._turns.give_way()
            if passage.span is None:
                continue
            units = self._second.units_over(passage.span.start_char, passage.span.end_char)
            if found and found[-1][0].stop == unit and found[-1][1] == units and self._within(unit, units):
                found[-1] = range(found[-1][0].start, unit + 1), units
            elif units and taken.isdisjoint(units):
                found.append((range(unit, unit + 1), units))
                taken.update(units)
        alike = Likeness(self._first, self._second)
        return [(units, others) for units, others in found if alike.of(units, others) >= _LEAST_ELSEWHERE]

    def _within(self, unit: int, units: range) -> bool:
        """Whether at least half of the words of a sentence of the first text are in these of the second one."""
        words = self._first.words[unit]
        others = Counter(word for other in units for word in self._second.words[other])
        return 2 * (Counter(words) & others).total() >= len(words)

    def _joined(self, fates: Sequence[_Fate]) -> Iterator[_Fate]:
        """Neighbours that were added, removed or moved together are one; each new wording stays by itself."""
        last: _Fate | None = None
        for fate in fates:
            if last is not None and self._together(last, fate):
                last = _Fate(last.kind, _over(last.old, fate.old), _over(last.new, fate.new), last.at)
                continue
            if last is not None:
                yield last
            last = fate
        if last is not None:
            yield last

    def _together(self, last: _Fate, fate: _Fate) -> bool:
        if fate.kind is not last.kind or fate.kind is DifferenceKind.ALTERED:
            return False
        next_old = not fate.old or last.old.stop == fate.old.start
        next_new = not fate.new or last.new.stop == fate.new.start
        return next_old and next_new and self._section_of(last) == self._section_of(fate)

    def _section_of(self, fate: _Fate) -> object:
        return (
            self._section(self._span(self._new, fate.new), True)
            if fate.new
            else self._section(self._span(self._old, fate.old), False)
        )

    def _says_nothing(self, fate: _Fate) -> bool:
        """Whether so few words have moved that they may be other ones of the same letters."""
        return fate.kind is DifferenceKind.MOVED and sum(len(self._new.words[at]) for at in fate.new) < _LEAST_MOVED

    def _difference(self, fate: _Fate) -> TextDifference:
        return TextDifference(
            fate.kind,
            self._span(self._old, fate.old) if fate.old else None,
            self._span(self._new, fate.new) if fate.new else None,
        )

    def _span(self, text: SentencedText, units: range) -> Span:
        return Span(text.spans[units.start][0], text.spans[units.stop - 1][1])


class _Turns:
    """Lets other threads have their turns."""

    def __init__(self, pause: Callable[[float], None]) -> None:
        self._pause = pause
        self._began = time.perf_counter()

    def give_way(self) -> None:
        """Pause for a moment if the last pause is long ago."""
        if time.perf_counter() - self._began > _TURN_SECONDS:
            self._pause(_PAUSE_SECONDS)
            self._began = time.perf_counter()


def in_order(pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The most pairs that keep their order in both texts, of pairs in the order of the old one.

    Example:
        >>> in_order([(0, 5), (1, 0), (2, 1), (3, 7)])
        {1: 0, 2: 1, 3: 7}
    """
    tails: list[int] = []  # the least place that a run of each length can end at
    last: list[int] = []  # the pair at that place
    before: list[int | None] = []
    for number, (_, other) in enumerate(pairs):
        length = bisect_left(tails, other)
        before.append(last[length - 1] if length else None)
        tails[length : length + 1] = [other]
        last[length : length + 1] = [number]
    found: list[tuple[int, int]] = []
    at = last[-1] if last else None
    while at is not None:
        found.append(pairs[at])
        at = before[at]
    return dict(reversed(found))


def _places_of_old(known: Mapping[int, int], count: int) -> list[int]:
    """For each sentence of the old text the sentence of the new one that it would stand before."""
    places: list[int] = []
    place = 0
    for unit in range(count):
        places.append(place)
        if unit in known:
            place = known[unit] + 1
    return places


def _changed_places(
    standing: Mapping[int, int], pairs: Mapping[int, int], count: int, other_count: int
) -> Iterator[ChangedPlace]:
    """The sentences without a pair between each two neighbours that stand, of both texts."""
    taken = set(pairs.values())
    for (unit, other), (next_unit, next_other) in pairwise([(-1, -1), *standing.items(), (count, other_count)]):
        mine = [lost for lost in range(unit + 1, next_unit) if lost not in pairs]
        theirs = [come for come in range(other + 1, next_other) if come not in taken]
        if mine and theirs:
            yield ChangedPlace(mine, theirs)


def _over(first: range, second: range) -> range:
    return range(first.start, second.stop)
