"""Selects sentences for a token budget, greedily by value per token."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Worth per token would favour many short sentences with little content; worth alone, the long ones.
_THRIFT = 0.7


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """Sentence number `place` of a passage: `text[start:end]`, its tokens alone, and the odds that it is evidence."""

    passage: int
    place: int
    start: int
    end: int
    tokens: int
    worth: float
    matching: bool

    @property
    def priority(self) -> float:
        """The priority of a unit: its value per token."""
        price: float = (self.tokens + 2) ** _THRIFT
        return self.worth / price


@dataclass(frozen=True, slots=True)
class Prices:
    """The token overhead of sentences: a source's header, by passage, and a gap inside a source."""

    opening: Sequence[int]
    gap: int


def choose(units: Sequence[ScoredSentence], *, budget: int, prices: Prices) -> list[ScoredSentence]:
    """The units that fit together, by priority, in the order they were chosen.

    One that does not fit is passed over. A knapsack filled greedily by value per weight misses its
    optimum by less than one item's value (Dantzig 1957, "Discrete-variable extremum problems").
    """
    chosen: list[ScoredSentence] = []
    places: Mapping[int, set[int]] = defaultdict(set)
    for unit in sorted(units, key=lambda unit: (-unit.priority, unit.passage, unit.place)):
        held = places[unit.passage]
        if held:
            neighbours = (unit.place - 1 in held) + (unit.place + 1 in held)
            price = unit.tokens + prices.gap * (1 - neighbours)
        else:
            price = unit.tokens + prices.opening[unit.passage]
        if price <= budget:
            budget -= price
            held.add(unit.place)
            chosen.append(unit)
    return chosen


def pieces(units: Sequence[ScoredSentence]) -> dict[int, list[tuple[int, int]]]:
    """By passage, `[start, end)` of the text that `units` cover; neighbours are one piece."""
    joined: dict[int, list[tuple[int, int]]] = {}
    last: tuple[int, int] | None = None
    for unit in sorted(units, key=lambda unit: (unit.passage, unit.place)):
        runs = joined.setdefault(unit.passage, [])
        if last == (unit.passage, unit.place - 1):
            runs[-1] = (runs[-1][0], unit.end)
        else:
            runs.append((unit.start, unit.end))
        last = (unit.passage, unit.place)
    return joined
