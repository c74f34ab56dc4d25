"""Ballots: a question with candidates, of which some are right, or none.

The candidates are units of the passage that answers and of passages that look as if they did. A ballot depends only on
the seed and its place in the order, so that training can be resumed anywhere.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.tuning.adapter.examples import Example
from app.tuning.bm25 import Bm25
from app.tuning.evidence_reader.groups import Neighbours, heading, lines_of
from app.tuning.evidence_reader.mixture import Asked, Company, Source
from retrieval.judge_layout import JudgedText
from retrieval.units import Unit, units_of

MOST = 7
"""Most candidates of a ballot."""

_NEAR = 3  # passages besides the right one
_CLOSEST = 6  # of the nearest passages some are drawn
_GONE = 0.17  # of the questions with an answer, those whose passage is left out
_NOISE = 0.35  # share of the best word overlap by which candidates may change places


@dataclass(frozen=True, slots=True)
class Ballot:
    """A question and its candidates; `right` says of each whether it answers. Often none does."""

    question: str
    candidates: tuple[JudgedText, ...]
    right: tuple[bool, ...]


class BallotMaker:
    """Makes the ballots of several sources."""

    def __init__(self, sources: Sequence[Source], *, seed: int) -> None:
        self._sources = list(sources)
        self._near = [Neighbours(source) for source in sources]
        self._seed = seed

    def ballot(self, at: int, place: int, question: int) -> Ballot | None:
        """The ballot `at` of the order, about the question of that number in the source at `place`.

        None where fewer than two candidates are found, or the answer is in none of those that were to hold it.
        """
        random_ = random.Random(f"{self._seed} {at}")  # noqa: S311  # nothing secret is drawn
        source = self._sources[place]
        first = len(source.questions)
        if question < first:
            one, gone = source.questions[question], random_.random() < _GONE
        else:
            lacking = source.lacking[question - first]
            one, gone = Asked(Example(lacking.question, (), (lacking.passage,)), lacking.passage, (), ()), False
        lines = lines_of(source, one, random_)
        found: list[tuple[JudgedText, bool]] = []
        if not gone:
            found += self._of_passage(source, one.passage, one, lines)
            if question < first and not any(right for _, right in found):
                return None
        for other, key in self._company(source, place, one, random_):
            found += self._of_passage(other, key, None, lines)
        kept = _hardest(one.example.question, found, random_)
        if len(kept) < 2:
            return None
        random_.shuffle(kept)
        return Ballot(one.example.question, tuple(text for text, _ in kept), tuple(right for _, right in kept))

    def _company(self, source: Source, place: int, one: Asked, random_: random.Random) -> Iterator[tuple[Source, str]]:
        """Passages that do not answer: near ones of the source; where those may answer too, some of other sources."""
        if source.rules.company is Company.FOREIGN:
            foreign = [other for other in self._sources if other is not source and not other.rules.ruled]
            for other in random_.sample(foreign, min(1, len(foreign))):
                yield other, random_.choice(other.keys)
            return
        near = self._near[place].near(one)[:_CLOSEST]
        for key in random_.sample(near, min(_NEAR, len(near))):
            yield source, key

    def _of_passage(self, source: Source, key: str, one: Asked | None, lines: int) -> Iterator[tuple[JudgedText, bool]]:
        """The units of a passage as candidates, with whether each holds some of the answer of `one`."""
        text = source.text(key)
        above = heading(source, key, lines).strip().replace("\n", " — ")
        previous = ""
        for unit in units_of(text):
            shown = text[unit.span.start_char : unit.span.end_char]
            right = one is not None and any(_touches(unit, span) for span in one.spans)
            yield JudgedText(above, previous, shown), right
            previous = text[unit.core.start_char : unit.core.end_char]


def _touches(unit: Unit, span: tuple[int, int]) -> bool:
    return unit.span.start_char < span[1] and span[0] < unit.span.end_char


def _hardest(
    question: str, found: Sequence[tuple[JudgedText, bool]], random_: random.Random
) -> list[tuple[JudgedText, bool]]:
    """The right candidates, two at most, and of the others those with most words of the question, by and large."""
    right = [one for one in found if one[1]]
    right = random_.sample(right, min(2, len(right)))
    others = [one for one in found if not one[1]]
    if not others:
        return right
    scores = Bm25([f"{one.above} {one.text}" for one, _ in others]).scores(question)
    noise = _NOISE * float(scores.max())
    ranked = sorted(range(len(others)), key=lambda at: -(float(scores[at]) + noise * random_.random()))
    return right + [others[at] for at in ranked[: MOST - len(right)]]
