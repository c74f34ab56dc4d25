"""Speculation as the engine uses it: a drafter for each sequence, one policy for all."""

from collections.abc import Callable, Sequence

from generation.drafting import SourceDrafter
from generation.speculation import Acceptance, Drafter, SpeculationPolicy, Speculative
from generation.types import GenerationRequest


class Speculator:
    """A `scheduler.Drafter`: looks continuations up in the prompt, or asks a draft model."""

    def __init__(
        self, policy: SpeculationPolicy, *, draft_model: Callable[[Sequence[int]], Drafter] | None = None
    ) -> None:
        """Take a policy.

        Args:
            policy: Chooses lengths.
            draft_model: Starts a drafter on a prompt; None looks continuations up.
        """
        self._policy = policy
        self._draft_model = draft_model

    def start(self, request: GenerationRequest) -> tuple[Drafter, Acceptance]:
        """What a new sequence needs for drafts. Safe from any thread."""
        drafter: Drafter
        if self._draft_model is not None:
            drafter = self._draft_model(request.prompt)
        else:
            drafter = SourceDrafter(request.prompt, sources=request.sources)
        return drafter, self._policy.acceptance()

    def propose(self, sequences: Sequence[Speculative], *, budget: int) -> list[list[int]]:
        """See `scheduler.Drafter.propose`."""
        return self._policy.propose(sequences, budget=budget)

    def observe(self, *, rows: int, seconds: float) -> None:
        """A step that only decoded took so long for so many rows, drafting included."""
        self._policy.observe(rows=rows, seconds=seconds)
