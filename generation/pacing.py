"""Learns the cost of decode steps and the pace of prefill, to size the prefill chunks."""

import math


class StepCost:
    """Estimates the duration of a decode step as a linear function of its rows, from the steps so far.

    The level follows exponentially weighted means. The slope is learned by normalised least mean
    squares (Widrow and Hoff 1960): a step changes it in proportion to how far its rows differ from the mean,
    so a steady load does not change it. Errors larger than noise and rows explain are clipped: one
    slow step changes little, whatever its cause.
    """

    _RATE = 0.05
    _SLOPE_RATE = 0.1
    _PRIOR_SLOPE = 1 / 32  # a row against the fixed cost: decoding mostly waits for the weights
    _PRIOR_LESSONS = 1.0  # the weight of the prior slope, in steps
    _LEAST_SLOPE = 1 / 256  # of the step: rows are never free, they are sampled and drafted

    def __init__(self) -> None:
        self._steps = 0
        self._lessons = self._PRIOR_LESSONS
        self._rows = 1.0
        self._seconds = 1.0
        self._deviation = 0.0
        self.row = self._PRIOR_SLOPE
        """Seconds that one more row costs."""

    def seconds(self, rows: int) -> float:
        """Expected duration of a step of `rows` rows."""
        fixed = max(0.0, self._seconds - self.row * self._rows)
        return fixed + self.row * rows

    def observe(self, *, rows: int, seconds: float) -> None:
        """Take in one step."""
        assert rows > 0, "a step feeds at least one row"
        if not (seconds > 0 and math.isfinite(seconds)):
            return  # no time has passed: nothing to learn
        self._steps += 1
        if self._steps == 1:
            self._rows, self._seconds, self._deviation = float(rows), seconds, seconds / 4
            self.row = seconds * self._PRIOR_SLOPE / (1 + self._PRIOR_SLOPE * rows)
            return
        rate = max(self._RATE, 1 / self._steps)
        unusual = rows - self._rows
        expected = self._seconds + self.row * unusual
        most = 4 * self._deviation + self._seconds * abs(unusual) / self._rows  # all the step's time may be its rows'
        error = max(-most, min(seconds - expected, most))
        self._deviation = max((1 - rate) * self._deviation + rate * abs(error), 0.01 * self._seconds)
        before = self._seconds
        self._rows += rate * unusual
        self._seconds = max(before + rate * (expected + error - before), 1e-9)
        if self._lessons < self._PRIOR_LESSONS + 1:
            self.row *= self._seconds / before  # still a guess, so a share of the level: the first steps warm up
        self._learn_row(unusual, error)
        self.row = max(
            min(self._LEAST_SLOPE, 1 / self._rows) * self._seconds, min(self.row, self._seconds / self._rows)
        )

    def _learn_row(self, unusual: float, error: float) -> None:
        lesson = unusual**2 / (unusual**2 + 1)  # a difference of less than a row is weak evidence
        self._lessons += lesson
        if lesson:
            self.row += max(self._SLOPE_RATE, 1 / self._lessons) * lesson * error / unusual


class PrefillPace:
    """Measures how fast prompts are read, and sizes chunks so that a step takes about `target_s` seconds.

    Without it a chunk of 512 tokens is 10 ms on a GPU and two seconds on two CPU cores, and every
    stream waits that long. The chunks change the duration, never the result.
    """

    def __init__(self, *, target_s: float, smallest: int, largest: int) -> None:
        assert target_s > 0
        assert 1 <= smallest <= largest
        self._target_s = target_s
        self._smallest = smallest
        self._largest = largest
        self._tokens_per_s: float | None = None

    @property
    def budget(self) -> int:
        """Prompt tokens for the next step that also decodes."""
        if self._tokens_per_s is None:
            return self._smallest
        return max(self._smallest, min(self._largest, int(self._tokens_per_s * self._target_s)))

    def observe(self, *, prefill_tokens: int, seconds: float) -> None:
        """Update the estimate from a step that read `prefill_tokens` of prompts, among other work."""
        if prefill_tokens < self._smallest:
            return  # the rest of a prompt: fixed costs dominate it
        rate = prefill_tokens / max(seconds, 1e-6)
        self._tokens_per_s = (
            rate if self._tokens_per_s is None else self._tokens_per_s + 0.3 * (rate - self._tokens_per_s)
        )
