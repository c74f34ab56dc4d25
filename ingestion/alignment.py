"""Aligns a page's canonical text with its printed characters, although the two differ.

The text differs from the page: no headers, no hyphens at line ends, columns in another order. Runs that
occur once in both are matched, wherever they are; the rest is matched between its neighbours, so that of
a sentence that is on the page twice the right one is found.
"""

import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher

from ingestion.normalise import normalise
from retrieval.words import word_spans

NOWHERE = -1

_SURE_RUN = 24  # characters of a run that occurs once on both sides, wherever it is
_NEAR_RUNS = (10, 5)  # of one that occurs once in a gap and once where it may have been printed
_MOST_COMPARED = 10_000_000  # pairs of characters of a gap and its surroundings
_FARTHEST = 2_000  # characters that may be printed between two that follow each other
_AROUND = 60  # characters, besides those of the gap, that may be where it was printed
_LEAST_LONELY = 4  # characters: fewer that touch nothing found are chance
_SLACK = 3  # characters between two that were found, which may have been read otherwise
_HYPHENS = frozenset("-\u2010\u00ad\ufffe\x02")
_RULE = "|"  # between the cells of a row


@dataclass(frozen=True, slots=True)
class _Stream:
    """The comparable characters of one side, with their original indices."""

    text: str
    origin: Sequence[int]


def aligned(text: str, printed: str) -> list[int]:
    """For each character of `text` its index in `printed`, or `NOWHERE`; white space is nowhere."""
    ours, theirs = _stream(text), _stream(printed)
    match = _Match(ours.text, theirs.text)
    match.run()
    found = [NOWHERE] * len(text)
    for at, other in enumerate(match.found):
        if other != NOWHERE:
            found[ours.origin[at]] = theirs.origin[other]
    _add_marks(found, text, printed)
    return found


def is_found(text: str, found: Sequence[int], start: int, end: int) -> bool:
    """Whether `text[start:end]` is found but for a letter or two between others that are.

    Args:
        text: All of it.
        found: The result of `aligned`.
        start: The first character.
        end: One past the last one.
    """
    before = NOWHERE
    missing = False
    for at in range(start, end):
        if found[at] == NOWHERE:
            missing = missing or bool(_alike(text[at]))
            continue
        if missing and (before == NOWHERE or not 0 < found[at] - before <= _SLACK):
            return False
        before, missing = found[at], False
    return not missing


def found_words(text: str, found: Sequence[int], start: int, end: int, *, where: AbstractSet[int]) -> tuple[int, int]:
    """How many words `text[start:end]` has, and how many of them are printed for more than half at places in `where`.

    Args:
        text: All of it.
        found: The result of `aligned`.
        start: The first character.
        end: One past the last one.
        where: Indices in the printed text.
    """
    words = printed = 0
    for first, last in word_spans(text[start:end]):
        compared = [at for at in range(start + first, start + last) if _alike(text[at])]
        words += bool(compared)
        printed += 2 * sum(found[at] in where for at in compared) > len(compared)
    return words, printed


def _stream(text: str) -> _Stream:
    chars: list[str] = []
    origin: list[int] = []
    for at, char in enumerate(text):
        alike = char if "!" <= char <= "~" and char not in "-|" else _alike(char)
        chars.append(alike)
        origin.extend([at] * len(alike))
    return _Stream("".join(chars), origin)


def _alike(char: str) -> str:
    """The comparable form of `char`: ligatures become letters; characters that one side may lack become nothing."""
    if char in _HYPHENS or char == _RULE or not normalise(char):
        return ""
    return "".join(unicodedata.normalize("NFKC", char).split())


class _Match:
    def __init__(self, ours: str, theirs: str) -> None:
        self._ours, self._theirs = ours, theirs
        self.found = [NOWHERE] * len(ours)
        self._taken = bytearray(len(theirs))

    def run(self) -> None:
        self._anchor(_SURE_RUN, 0, len(self._ours), 0, len(self._theirs))
        for start, end in self._gaps():
            self._fill(start, end)

    def _anchor(self, length: int, start: int, end: int, low: int, high: int) -> None:
        """Match runs of `length` that occur once in `ours[start:end]` and once in `theirs[low:high]`."""
        mine, other = _once(self._ours, start, end, length), _once(self._theirs, low, high, length)
        for run, at in mine.items():
            place = other.get(run, NOWHERE)
            if NOWHERE not in {place, at} and self.found[at] == NOWHERE and not self._taken[place]:
                self._extend(at, place, start, end, low, high)

    def _extend(self, at: int, place: int, start: int, end: int, low: int, high: int) -> None:
        """Extends a match to all equal, unmatched characters before and after it."""
        for step in (-1, 1):
            mine, other = (at, place) if step > 0 else (at - 1, place - 1)
            while start <= mine < end and low <= other < high and self._fits(mine, other):
                self._take(mine, other)
                mine, other = mine + step, other + step

    def _fits(self, at: int, place: int) -> bool:
        return self.found[at] == NOWHERE and not self._taken[place] and self._ours[at] == self._theirs[place]

    def _take(self, at: int, place: int) -> None:
        self.found[at] = place
        self._taken[place] = 1

    def _gaps(self) -> list[tuple[int, int]]:
        gaps: list[tuple[int, int]] = []
        start = NOWHERE
        for at, place in enumerate([*self.found, 0]):
            if place == NOWHERE and start == NOWHERE:
                start = at
            elif NOWHERE not in {place, start}:
                gaps.append((start, at))
                start = NOWHERE
        return gaps

    def _fill(self, start: int, end: int) -> None:
        """Match `ours[start:end]`, so far without any match, near the matches of its neighbours."""
        surroundings = self._surroundings(start, end)
        least = min(_LEAST_LONELY, end - start) if len(surroundings) == 1 else _LEAST_LONELY
        for low, high in surroundings:
            for length in _NEAR_RUNS:
                self._anchor(length, start, end, low, high)
            if NOWHERE not in self.found[start:end]:
                return
            if (end - start) * (high - low) > _MOST_COMPARED:
                self._follow(start, end, low, high)
            else:
                self._compare(start, end, low, high, least=least)

    def _surroundings(self, start: int, end: int) -> list[tuple[int, int]]:
        """The range where it may be printed: between its matched neighbours, or next to one of them."""
        last = len(self._theirs)
        left = self.found[start - 1] + 1 if start else 0
        right = self.found[end] if end < len(self._ours) else last
        reach = end - start + _AROUND
        if left <= right and (not start or end == len(self._ours) or right - left <= 4 * reach):
            return [(left, right)]
        return [(left, min(last, left + reach)), (max(0, right - reach), right)]

    def _compare(self, start: int, end: int, low: int, high: int, *, least: int) -> None:
        """Matches common runs, longest first; an isolated run needs at least `least` characters."""
        mine = [at for at in range(start, end) if self.found[at] == NOWHERE]
        other = [place for place in range(low, high) if not self._taken[place]]
        a, b = "".join(self._ours[at] for at in mine), "".join(self._theirs[place] for place in other)
        for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
            here, there = slice(block.a, block.a + block.size), slice(block.b, block.b + block.size)
            pairs = list(zip(mine[here], other[there], strict=True))
            if pairs and (len(pairs) >= least or self._touches(*pairs[0], -1) or self._touches(*pairs[-1], 1)):
                for at, place in pairs:
                    self._take(at, place)

    def _follow(self, start: int, end: int, low: int, high: int) -> None:
        """Matches the next equal characters of both, for long repetitive text."""
        at, place = start, low
        while at < end:
            if self.found[at] != NOWHERE:
                at, place = at + 1, self.found[at] + 1
                continue
            next_ = self._theirs.find(self._ours[at : at + _SURE_RUN], place, min(high, place + _FARTHEST))
            if next_ == NOWHERE:
                at += 1
                continue
            if not self._fits(at, next_):
                at += 1
                continue
            place = next_
            while at < end and place < high and self._fits(at, place):
                self._take(at, place)
                at, place = at + 1, place + 1

    def _touches(self, at: int, place: int, step: int) -> bool:
        """Whether the neighbouring characters were matched to each other."""
        beside = at + step
        return 0 <= beside < len(self.found) and self.found[beside] == place + step


def _once(text: str, start: int, end: int, length: int) -> dict[str, int]:
    """The position of each run of `length`; `NOWHERE` for a run that occurs more than once."""
    places: dict[str, int] = {}
    for at in range(start, end - length + 1):
        run = text[at : at + length]
        places[run] = NOWHERE if run in places else at
    return places


def _add_marks(found: list[int], text: str, printed: str) -> None:
    """Also matches hyphens and rules next to matched characters."""
    for step in (1, -1):
        for at in range(len(text)) if step > 0 else reversed(range(len(text))):
            beside = at - step
            if found[at] != NOWHERE or text[at].isspace() or not 0 <= beside < len(text) or found[beside] == NOWHERE:
                continue
            place = found[beside] + step
            if 0 <= place < len(printed) and printed[place] == text[at]:
                found[at] = place
