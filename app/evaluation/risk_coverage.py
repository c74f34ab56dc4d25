"""Risk-coverage curves: the share of wrong answers against the share of questions that are answered.

Selective classification (El-Yaniv and Wiener 2010, JMLR 11): a question is answered when its score, the
model's probability of refusing, is below a threshold. Coverage is the share answered, risk the share of
these that is wrong: a wrong answer, or any answer to a question that has none. So every question needs
an outcome, those that would be refused too: ask with a threshold of 1, and compare thresholds here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """The outcome of one question that was answered regardless of its score.

    Attributes:
        score: Higher is likelier to be refused.
        answerable: Whether the sources hold an answer.
        correct: Whether the answer that was given is right; no answer to an unanswerable question is.
    """

    score: float
    answerable: bool
    correct: bool

    def __post_init__(self) -> None:
        if self.score != self.score:
            raise ValueError("a score is a number")
        if self.correct and not self.answerable:
            raise ValueError("no answer to an unanswerable question is right")


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """The effect of a threshold, as shares in [0, 1].

    Attributes:
        threshold: Scores from here on are refused; None refuses nothing.
        coverage: Share of the questions that are answered.
        risk: Share of the answers that are wrong; 0 when nothing is answered.
        false_refusals: Share of the answerable questions that are refused; 0 when there are none.
        true_refusals: Share of the unanswerable questions that are refused; 0 when there are none.
    """

    threshold: float | None
    coverage: float
    risk: float
    false_refusals: float
    true_refusals: float


def risk_coverage(outcomes: Sequence[ScoredQuestion]) -> tuple[OperatingPoint, ...]:
    """All distinct operating points, from refusing everything to refusing nothing.

    Args:
        outcomes: At least one, in any order.

    Returns:
        A point for each distinct score, lowest first, and one for no threshold: coverage rises strictly.
    """
    assert outcomes, "there is something to judge"
    total = _Tally()
    for outcome in outcomes:
        total.add(outcome)
    points, given = [], _Tally()
    for score, group in groupby(sorted(outcomes, key=lambda outcome: outcome.score), key=lambda outcome: outcome.score):
        points.append(given.point(score, total))
        for outcome in group:
            given.add(outcome)
    return (*points, given.point(None, total))


def area_under(outcomes: Sequence[ScoredQuestion]) -> float:
    """AURC (Geifman and El-Yaniv 2018, arXiv:1805.08206): the mean risk over all coverages, in [0, 1], lower is better.

    Questions of equal score are answered in a random order: the area is the expectation over it, so it
    does not depend on how the outcomes are listed.

    Args:
        outcomes: At least one, in any order.
    """
    assert outcomes, "there is something to judge"
    ordered = sorted(outcomes, key=lambda outcome: outcome.score)
    area, answered, wrong = 0.0, 0, 0.0
    for _, group in groupby(ordered, key=lambda outcome: outcome.score):
        tied = list(group)
        share = sum(not outcome.correct for outcome in tied) / len(tied)
        for _ in tied:
            answered, wrong = answered + 1, wrong + share
            area += wrong / answered
    return area / len(ordered)


@dataclass(slots=True)
class _Tally:
    """Running counts of the outcomes."""

    outcomes: int = 0
    answerable: int = 0
    wrong: int = 0

    def add(self, outcome: ScoredQuestion) -> None:
        self.outcomes += 1
        self.answerable += outcome.answerable
        self.wrong += not outcome.correct

    def point(self, threshold: float | None, total: "_Tally") -> OperatingPoint:
        """The operating point at which the counted outcomes of `total` are answered."""
        lost = total.answerable - self.answerable
        unanswerable = total.outcomes - total.answerable
        refused = total.outcomes - self.outcomes
        return OperatingPoint(
            threshold=threshold,
            coverage=self.outcomes / total.outcomes,
            risk=self.wrong / self.outcomes if self.outcomes else 0.0,
            false_refusals=lost / total.answerable if total.answerable else 0.0,
            true_refusals=(refused - lost) / unanswerable if unanswerable else 0.0,
        )
