"""Learns the cost of decode steps and the pace of prefill, to size the prefill chunks."""

import math


class StepCost:
    """The time of a decode step as a line through its rows, learned as steps go by.

    The level follows exponentially weighted means. The slope is learned by normalised least mean
    squares (Widrow and Hoff 1960): a step teaches about it as far as its rows differ from the usual,
    so a steady load forgets nothing. Errors beyond what noise and rows can explain are clipped: one
    slow step, for whatever reason, moves little.
    """

    _RATE = 0.05
    _SLOPE_RATE = 0.1
    _PRIOR_SLOPE = 1 / 32  # a row against the fixed cost: decoding mostly waits for the weights
    _PRIOR_LESSONS = 1.0  # what the prior slope is worth
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
            return  # a clock that stood still says nothing
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
        lesson = unusual**2 / (unusual**2 + 1)  # a difference of less than a row teaches little
        self._lessons += lesson
        if lesson:
            self.row += max(self._SLOPE_RATE, 1 / self._lessons) * lesson * error / unusual


class PrefillPace:
    """Learns how fast prompts are read, and sizes chunks so that a step takes about `target_s` seconds.

    Without it a chunk of 512 tokens is 10 ms on a GPU and two seconds on two CPU cores, and every
    stream stands still for as long. The result never depends on the chunks, only the pace does.
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
        """Learn from a step that read `prefill_tokens` of prompts, whatever else it did."""
        if prefill_tokens < self._smallest:
            return  # the rest of a prompt: fixed costs drown what it says
        rate = prefill_tokens / max(seconds, 1e-6)
        self._tokens_per_s = (
            rate if self._tokens_per_s is None else self._tokens_per_s + 0.3 * (rate - self._tokens_per_s)
        )
