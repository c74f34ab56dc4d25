"""The configuration of a span reader and the calibration of its scores, without what it takes to run one."""

import math
from dataclasses import dataclass

READER_FILES = ("model.safetensors",)  # the weights that training changed; the others are the base's


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Platt scaling (Platt 1999) of a reader's margin, fitted on questions kept out of its training.

    The probability that a passage holds an answer is `1 / (1 + exp(-(slope * margin + bias)))`, the margin being
    log-odds of the best span against no answer. `threshold` in [0, 1] is the least probability
    with which an answer should be given.
    """

    slope: float
    bias: float
    threshold: float = 0.5

    def __post_init__(self) -> None:
        """Checks that the calibration preserves the order of margins.

        Raises:
            ValueError: A value is not finite, the slope not above 0, or the threshold outside [0, 1].
        """
        if not all(map(math.isfinite, (self.slope, self.bias, self.threshold))):
            raise ValueError("slope, bias and threshold must be finite")
        if self.slope <= 0 or not 0 <= self.threshold <= 1:
            raise ValueError("the slope must be above 0 and the threshold between 0 and 1")

    def probability(self, margin: float) -> float:
        """In [0, 1], never falling as `margin` rises."""
        logit = self.slope * margin + self.bias
        if logit >= 0:  # the halves of the logistic function that cannot overflow
            return 1 / (1 + math.exp(-logit))
        return 1 - 1 / (1 + math.exp(logit))


UNCALIBRATED = Calibration(slope=1.0, bias=0.0)
"""Takes the margin as the log-odds that it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderConfig:
    """The configuration of a span reader: its weights' folder, its name and its calibration."""

    folder: str
    name: str
    calibration: Calibration
