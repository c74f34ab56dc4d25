"""Scores candidates: the probability that each answers the question, from words, embedding and the span reader.

One number chooses the quotes, puts them in order and decides whether the question is answered, so that the three
cannot disagree. It is a logistic regression over a candidate's values (`probability`). The likeliest candidate's
probability is then corrected by a second one, which also sees how far the next candidate lies behind (`certainty`).
Both are fitted by `python -m app.tuning.answer_score.run` on training questions asked of whole collections.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p
from types import MappingProxyType

from app.answering.quoting.features import Features

MOST_GAP = 6.0
"""Log-odds by which the likeliest candidate is ahead of the next are cut to this."""

MOST_MARGIN = 12.0
"""Margins of the span reader are cut to this size, beyond which they say nothing more."""

WITH_READER: Mapping[str, float] = MappingProxyType(
    {
        "bias": -0.3947,
        "rank": -1.5314,
        "closeness": 1.3117,
        "share": 0.2968,
        "covered": 0.9795,
        "lead": -0.8275,
        "fits": 0.1825,
        "heading": -3.45,  # of an earlier fit: the passages held back have hardly any headings
        "cosine": -0.8212,
        "behind": -2.4141,
        "margin": 0.0784,
        "margin_lead": -0.183,
        "evidence": 0.3574,
        "evidence_lead": -0.2086,
        "judge": 0.0,
        "judge_lead": 0.0,
    }
)
"""The weights where the span reader has read the candidates."""

WITH_JUDGE: Mapping[str, float] = MappingProxyType(
    {
        "bias": -0.3538,
        "rank": -1.3796,
        "closeness": 1.3609,
        "share": 0.2794,
        "covered": 0.8808,
        "lead": -0.2109,
        "fits": 0.1947,
        "heading": -3.45,
        "cosine": -0.8106,
        "behind": -1.1024,
        "margin": 0.0505,
        "margin_lead": -0.1644,
        "evidence": 0.3483,
        "evidence_lead": -0.1578,
        "judge": 0.0687,
        "judge_lead": -0.3194,
    }
)
"""The weights where the judge has compared the likeliest of them, too."""

WITHOUT_READER: Mapping[str, float] = MappingProxyType(
    {
        "bias": -2.6264,
        "rank": -1.4436,
        "closeness": 0.4956,
        "share": 1.6917,
        "covered": 1.2916,
        "lead": -2.1944,
        "fits": 0.4161,
        "heading": -3.45,
        "cosine": 0.7229,
        "behind": -4.8792,
        "margin": 0.0,
        "margin_lead": 0.0,
        "evidence": 0.0,
        "evidence_lead": 0.0,
        "judge": 0.0,
        "judge_lead": 0.0,
    }
)
"""The weights where it has not: there is no reader, or it does not know the language."""


CERTAIN_WITH_READER: Mapping[str, float] = MappingProxyType(
    {
        "bias": -0.7621,
        "best": 0.2442,
        "gap": 0.1706,
        "margin": 0.095,
        "margin_lead": -0.083,
        "evidence": 0.1345,
        "evidence_lead": -0.2691,
        "judge": 0.0,
        "judge_lead": 0.0,
        "cosine": 1.0647,
        "behind": -0.2904,
        "share": 0.4969,
        "covered": 0.0213,
    }
)
"""The weights of the correction where the span reader has read the candidates."""

CERTAIN_WITH_JUDGE: Mapping[str, float] = MappingProxyType(
    {
        "bias": -0.7116,
        "best": 0.2034,
        "gap": 0.225,
        "margin": 0.092,
        "margin_lead": -0.0456,
        "evidence": 0.1263,
        "evidence_lead": -0.1931,
        "judge": 0.0796,
        "judge_lead": 0.0132,
        "cosine": 0.778,
        "behind": -0.2478,
        "share": 0.386,
        "covered": -0.0813,
    }
)
"""The weights of the correction where the judge has compared them, too."""

CERTAIN_WITHOUT_READER: Mapping[str, float] = MappingProxyType(
    {
        "bias": -1.8454,
        "best": 0.2305,
        "gap": 0.2016,
        "margin": 0.0,
        "margin_lead": 0.0,
        "evidence": 0.0,
        "evidence_lead": 0.0,
        "judge": 0.0,
        "judge_lead": 0.0,
        "cosine": 1.8858,
        "behind": -4.8841,
        "share": 0.6787,
        "covered": 0.5045,
    }
)
"""The weights of the correction where it has not."""


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """The weights of both regressions: `of_candidate` for each candidate, `of_best` for the likeliest."""

    of_candidate: Mapping[str, float]
    of_best: Mapping[str, float]


JUDGED = ScoreWeights(WITH_JUDGE, CERTAIN_WITH_JUDGE)
"""Where the judge has compared the likeliest candidates, too."""

READ = ScoreWeights(WITH_READER, CERTAIN_WITH_READER)
"""Where the span reader has read the candidates."""

UNREAD = ScoreWeights(WITHOUT_READER, CERTAIN_WITHOUT_READER)
"""Where it has not."""

_SEEN_AGAIN = (
    *("margin", "margin_lead", "evidence", "evidence_lead", "judge", "judge_lead"),
    *("cosine", "behind", "share", "covered"),
)


def values(features: Features, *, cosine: float, best_cosine: float) -> dict[str, float]:
    """The values that the weights multiply, by name.

    Args:
        features: The candidate's.
        cosine: Cosine similarity of the candidate and the question.
        best_cosine: The largest of any candidate.
    """
    return {
        "bias": 1.0,
        "rank": log1p(features.rank),
        "closeness": features.closeness,
        "share": features.share,
        "covered": features.covered,
        "lead": features.lead,
        "fits": features.fits,
        "heading": features.heading,
        "cosine": cosine,
        "behind": best_cosine - cosine,
        "margin": _cut(features.margin),
        "margin_lead": min(features.margin_lead, MOST_MARGIN),
        "evidence": _cut(features.evidence),
        "evidence_lead": min(features.evidence_lead, MOST_MARGIN),
        **judge_values(0.0, best=0.0),
    }


def judge_values(score: float, *, best: float) -> dict[str, float]:
    """The values of the judge's `score` of a candidate, and of the `best` of any; both are 0 where it did not judge."""
    return {"judge": _cut(score), "judge_lead": min(best - score, MOST_MARGIN)}


def logit(weights: Mapping[str, float], of_candidate: Mapping[str, float]) -> float:
    """The log-odds, by `weights`, that a candidate with these `values` answers."""
    return sum(weight * of_candidate[name] for name, weight in weights.items())


def certainty_values(of_best: Mapping[str, float], *, best: float, next_best: float) -> dict[str, float]:
    """The values that the weights of the second regression multiply, by name.

    Args:
        of_best: The `values` of the likeliest candidate.
        best: Its log-odds.
        next_best: The log-odds of the next candidate; those of the first where there is no other.
    """
    return {
        "bias": 1.0,
        "best": best,
        "gap": min(best - next_best, MOST_GAP),
        **{name: of_best[name] for name in _SEEN_AGAIN},
    }


def certainty(weights: Mapping[str, float], logits: Sequence[float], values: Sequence[Mapping[str, float]]) -> float:
    """The probability in (0, 1) that the likeliest of the candidates answers.

    Args:
        weights: `CERTAIN_WITH_READER` or `CERTAIN_WITHOUT_READER`.
        logits: The candidates' log-odds, at least one.
        values: The candidates' `values`, in the same order.
    """
    order = sorted(range(len(logits)), key=lambda place: -logits[place])
    best = order[0]
    following = logits[order[1]] if len(order) > 1 else logits[best]
    return probability(logit(weights, certainty_values(values[best], best=logits[best], next_best=following)))


def probability(log_odds: float) -> float:
    """The probability in (0, 1) of log-odds."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, log_odds))))


def promise(features: Features) -> float:
    """Ranks candidates before any is embedded: the few most promising are."""
    return (
        -0.72 * log1p(features.rank)
        + 3.05 * features.share
        + 0.45 * features.fits
        + 0.3 * _cut(features.margin)
        - 2 * features.heading
    )


def _cut(margin: float) -> float:
    return max(-MOST_MARGIN, min(MOST_MARGIN, margin))
