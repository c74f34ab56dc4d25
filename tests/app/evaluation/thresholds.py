"""The slow reference of the report's thresholds: one threshold for one share of false refusals."""

from collections.abc import Sequence

from app.evaluation.risk_coverage import OperatingPoint, ScoredQuestion, risk_coverage


def threshold_for(outcomes: Sequence[ScoredQuestion], *, false_refusals: float) -> OperatingPoint:
    """The threshold that refuses most while at most so large a share of the answerable questions is refused.

    Args:
        outcomes: At least one, in any order.
        false_refusals: In [0, 1].

    Raises:
        ValueError: `false_refusals` is not a share.
    """
    if not 0.0 <= false_refusals <= 1.0:
        raise ValueError(f"a share lies between 0 and 1, got {false_refusals}")
    return next(point for point in risk_coverage(outcomes) if point.false_refusals <= false_refusals)
