"""The engine's speculative decoding: a drafter for each sequence and one policy for all."""

import logging
from collections.abc import Callable, Sequence

from generation.drafting import SourceDrafter
from generation.speculation import Acceptance, Drafter, SpeculationPolicy, Speculative
from generation.types import GenerationRequest

logger = logging.getLogger("footnote.generation")


class Expendable:
    """A drafter whose failure disables drafting for its sequence and nothing else."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter: Drafter | None = drafter

    def push(self, token_id: int) -> None:
        """See `speculation.Drafter.push`."""
        if self._drafter is not None:
            self._drafter.push(token_id)

    def propose(self, limit: int) -> list[int]:
        """See `speculation.Drafter.propose`."""
        if self._drafter is None:
            return []
        try:
            return self._drafter.propose(limit)
        except Exception:  # out of memory in a draft model, say; its state may be half written
            logger.exception("a drafter failed and is given up")
            self._drafter = None
            return []


class Speculator:
    """A `scheduler.Drafter`: looks continuations up in the prompt, or asks a draft model."""

    def __init__(
        self,
        policy: SpeculationPolicy,
        *,
        draft_model: Callable[[Sequence[int]], Drafter] | None = None,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create a speculator with a policy.

        Args:
            policy: Chooses lengths.
            draft_model: Starts a drafter on a prompt; None looks continuations up.
            paused: Whether sequences that begin now are better off without drafts.
        """
        self._policy = policy
        self._draft_model = draft_model
        self.paused = paused

    def start(self, request: GenerationRequest) -> tuple[Drafter, Acceptance]:
        """The drafter and the acceptance record of a new sequence. Safe from any thread."""
        drafter: Drafter
        if self._draft_model is not None:
            drafter = Expendable(self._draft_model(request.prompt))
        else:
            drafter = SourceDrafter(request.prompt, sources=request.sources)
        return drafter, self._policy.acceptance()

    def propose(self, sequences: Sequence[Speculative], *, budget: int) -> list[list[int]]:
        """See `scheduler.Drafter.propose`."""
        return self._policy.propose(sequences, budget=budget)

    def observe(self, *, rows: int, seconds: float) -> None:
        """Record the duration, drafting included, and the rows of a step that only decoded."""
        self._policy.observe(rows=rows, seconds=seconds)
