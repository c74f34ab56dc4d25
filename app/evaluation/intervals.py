"""Bootstrap intervals (Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapters 13 and 16)."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

RESAMPLES = 2000
_BLOCK_VALUES = 2_000_000  # resampled values held at once

Statistic: TypeAlias = Literal["mean", "p50", "p95"]
Floats: TypeAlias = npt.NDArray[np.float64]


class Estimate(BaseModel):
    """A statistic over `n` questions with its 95 % percentile interval."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    n: int
    value: float
    low: float
    high: float


class Difference(BaseModel):
    """The change of a statistic over the `n` common questions, with a 95 % interval and a two-sided p-value.

    `p` is the share of paired resamples with another sign of the change than the measured one, doubled. It is at least
    the share of one resample, and the p-value of a sign test with all changed questions on one side: two questions
    cannot show more, however alike their resamples are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    n: int
    before: float
    after: float
    change: float
    low: float
    high: float
    p: float


def estimate(values: Sequence[float], *, statistic: Statistic = "mean", seed: int = 0) -> Estimate:
    """Estimates the statistic of per-question `values` with its interval; the same seed gives the same interval."""
    return combine([values], statistic=statistic, seed=seed)


def combine(sets: Sequence[Sequence[float]], *, statistic: Statistic = "mean", seed: int = 0) -> Estimate:
    """The mean over sets of each set's statistic; questions are resampled within their set."""
    assert sets, "there is something to estimate"
    assert all(len(values) for values in sets), "a set without values is left out"
    columns = [np.asarray(values, dtype=np.float64)[:, None] for values in sets]
    value = float(np.mean([_apply(column, statistic)[0] for column in columns]))
    spread = np.mean([_resampled(column, statistic, (seed, at))[:, 0] for at, column in enumerate(columns)], axis=0)
    low, high = np.percentile(spread, [2.5, 97.5])
    return Estimate(n=sum(map(len, sets)), value=value, low=float(low), high=float(high))


def difference(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], *, statistic: Statistic = "mean", seed: int = 0
) -> Difference:
    """Paired bootstrap of the change from `before` to `after`, values of the same questions in the same order.

    Of several sets it is the change of the mean over sets, as in `combine`.
    """
    assert [len(values) for values in before] == [len(values) for values in after], "the questions are paired"
    pairs = [np.column_stack(pair).astype(np.float64) for pair in zip(before, after, strict=True)]
    was, now = np.mean([_apply(pair, statistic) for pair in pairs], axis=0)
    spread = np.mean([_resampled(pair, statistic, (seed, at)) for at, pair in enumerate(pairs)], axis=0)
    changes = spread[:, 1] - spread[:, 0]
    low, high = np.percentile(changes, [2.5, 97.5])
    p = 2 * min(np.mean(changes <= 0), np.mean(changes >= 0))
    changed = sum(int(np.count_nonzero(pair[:, 0] != pair[:, 1])) for pair in pairs)
    return Difference(
        n=sum(map(len, before)),
        before=float(was),
        after=float(now),
        change=float(now - was),
        low=float(low),
        high=float(high),
        p=float(min(1.0, max(p, 1 / RESAMPLES, 2.0 ** (1 - changed)))),
    )


def _resampled(columns: Floats, statistic: Statistic, seed: tuple[int, int]) -> Floats:
    """(RESAMPLES, columns) statistics of (n, columns) values whose rows are drawn with replacement."""
    return np.concatenate([_apply(columns[rows], statistic) for rows in _draws(len(columns), seed)])


def _draws(n: int, seed: tuple[int, int]) -> Iterator[npt.NDArray[np.int64]]:
    rng, left = np.random.default_rng(seed), RESAMPLES
    while left:
        count = min(left, max(1, _BLOCK_VALUES // n))
        yield rng.integers(0, n, size=(count, n))
        left -= count


def _apply(values: Floats, statistic: Statistic) -> Floats:
    """The statistic over the last axis but one."""
    if statistic == "mean":
        means: Floats = values.mean(axis=-2)
        return means
    percentiles: Floats = np.percentile(values, 50 if statistic == "p50" else 95, axis=-2)
    return percentiles
