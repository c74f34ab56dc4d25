"""What a decode step costs by the number of rows it is fed."""

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
