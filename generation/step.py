"""One step of the model, as the engine asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from generation.scheduler import Work
from generation.sequence import SequenceState


class DeviceLost(Exception):
    """The device failed in a way that outlasts the step; the engine stops."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The token drawn for a sequence; None when its logits were not numbers."""

    sequence: SequenceState
    token: int | None


class Runner(Protocol):
    """What the engine asks of the model. Called from the engine thread only."""

    def allocate(self, sequence: SequenceState) -> None:
        """Make room for a sequence; any exception ends that sequence."""
        ...

    def release(self, sequence: SequenceState) -> None:
        """Give its room back. Idempotent."""
        ...

    def run(self, plan: Sequence[Work[SequenceState]]) -> Sequence[Sample]:
        """Compute the plan and draw for the work marked `sampled`. After an exception it can be run again.

        Raises:
            DeviceLost: it cannot.
        """
        ...
