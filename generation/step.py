"""The interface of one model step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from generation.prefix import BlockKey
from generation.scheduler import KVCacheView, ScheduledTokens
from generation.sequence import SequenceState
from generation.types import TokenLogprob


class DeviceLost(Exception):
    """The device failed in a way that outlasts the step; the engine stops."""


class OutOfMemory(Exception):
    """The device has no room for this step; a smaller one may fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The tokens drawn for a sequence, at least one: accepted drafts, then a token of its own.

    No token means that the logits were not numbers, or that no token was allowed. `abstention` comes
    with the first token of a sequence that watches for a refusal.
    """

    sequence: SequenceState
    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprob | None, ...] = ()
    abstention: float | None = None


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """The cache's blocks of `block_tokens` tokens and `block_bytes` bytes."""

    free: int
    used: int
    cached: int
    block_tokens: int
    block_bytes: int = 0


class Runner(KVCacheView[SequenceState], Protocol):
    """The engine's port to the model and its cache. Called from the engine thread only, except `blocks`."""

    @property
    def overlaps(self) -> bool:
        """Whether the calling thread has time while a step is computed, which `run` gives to `meanwhile`."""
        ...

    def run(self, plan: Sequence[ScheduledTokens[SequenceState]], *, meanwhile: Callable[[], None]) -> Sequence[Sample]:
        """Compute the plan and draw for the work marked `sampled`. After an exception it can be run again.

        Args:
            plan: The step.
            meanwhile: Other work of the calling thread; called while it would wait for a device, however often.

        Raises:
            DeviceLost: it cannot.
            OutOfMemory: it can, but only in smaller steps.
        """
        ...

    def find(self, keys: Sequence[BlockKey]) -> int:
        """Tokens that are cached under these names, from the first on. Safe from any thread."""
        ...

    def offer(self, sequence: SequenceState) -> None:
        """Publish the sequence's computed blocks for others to reuse."""
        ...

    def distrust(self, sequence: SequenceState) -> None:
        """Remove the sequence's blocks from the cache, because they may be wrong."""
        ...

    def shed(self, share: float) -> int:
        """Forget a share of the cached blocks, the least recently used first; returns the bytes freed."""
        ...

    def blocks(self) -> BlockCounts:
        """The cache's block counts. Safe from any thread."""
        ...
