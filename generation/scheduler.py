"""Schedules the next step: which sequences advance, and by how many tokens. Works on counts, not tensors."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from generation.prefix import BlockKey
from generation.waiting_line import Queued, WaitingLine

logger = logging.getLogger("footnote.generation")


class Schedulable(Queued, Protocol):
    """The properties of a sequence that the scheduler needs."""

    computed: int

    @property
    def remaining(self) -> int:
        """Tokens known but not computed yet, at least 1."""
        ...

    @property
    def position(self) -> int:
        """Tokens known."""
        ...

    @property
    def keys(self) -> Sequence[BlockKey]:
        """Keys of its full blocks."""
        ...

    @property
    def longest_draft(self) -> int:
        """Most drafted tokens that its output has room for."""
        ...

    def preempt(self) -> None:
        """Mark the sequence as evicted from the cache: no token of it is computed any more."""
        ...


S = TypeVar("S", bound=Schedulable)
_S_contra = TypeVar("_S_contra", bound=Schedulable, contravariant=True)


class AdmissionFailed(Exception, Generic[S]):
    """The next waiting sequence can never get cache space. It is still in the queue: remove it."""

    def __init__(self, sequence: S) -> None:
        super().__init__("no room for a sequence")
        self.sequence = sequence


class KVCacheView(Protocol[_S_contra]):
    """The KV cache's interface for the scheduler, in tokens."""

    @property
    def block_tokens(self) -> int:
        """Tokens that are cached, or not, together."""
        ...

    def match(self, sequence: _S_contra) -> int:
        """Tokens of `sequence` that need not be computed."""
        ...

    def allocate(self, sequence: _S_contra, tokens: int) -> int | None:
        """Give it room; tokens found in the cache, or None when there is no room. May raise: it can have none."""
        ...

    def grow(self, sequence: _S_contra, tokens: int) -> bool:
        """Make its room hold `tokens` tokens in all. May raise: it cannot go on."""
        ...

    def deallocate(self, sequence: _S_contra) -> None:
        """Take its room back. Idempotent."""
        ...


class BatchDrafter(Protocol[_S_contra]):
    """Proposes draft tokens for decoding sequences; see `generation.speculation`."""

    def propose(self, sequences: Sequence[_S_contra], *, budget: int) -> Sequence[Sequence[int]]:
        """Drafted tokens for each sequence, `budget` in all at most, none where it does not pay."""
        ...


@dataclass(frozen=True, slots=True)
class ScheduledTokens(Generic[S]):
    """Feed the next `tokens` known tokens of `sequence` to the model, then `drafts`.

    If no known token remains after them, it is `sampled`: a new token is drawn, and one more for
    each accepted draft.
    """

    sequence: S
    tokens: int
    sampled: bool
    drafts: tuple[int, ...] = ()
    is_decode: bool = False


@dataclass(frozen=True, slots=True)
class Plan(Generic[S]):
    """One step's work, decodes first, and the sequences that cannot go on because their room cannot be had."""

    work: tuple[ScheduledTokens[S], ...]
    failed: tuple[S, ...] = ()

    @property
    def prefill_tokens(self) -> int:
        """Tokens of prompts being read."""
        return sum(work.tokens for work in self.work if not work.is_decode)


class Scheduler(Generic[S]):
    """Plans steps: decodes before prefills, oldest first; cache space is allocated on demand.

    A step costs at most `step_tokens` tokens. Sequences that have one token left to compute are all
    served, with drafts where they save time; the rest of the budget reads prompts in chunks, in order
    of admission (chunked prefill, Agrawal et al. 2023, arXiv:2308.16369), so a long prompt cannot
    stop others' streams. Room runs out only when running sequences grow: then the one of the lowest
    priority that was admitted last is preempted, and recomputed later, mostly from the cache.
    """

    def __init__(
        self, cache: KVCacheView[S], *, max_running: int, step_tokens: int, drafter: BatchDrafter[S] | None = None
    ) -> None:
        assert 1 <= max_running <= step_tokens, "every running sequence must be able to advance"
        self._cache = cache
        self._max_running = max_running
        self._step_tokens = step_tokens
        self._drafter = drafter
        self.waiting: WaitingLine[S] = WaitingLine()
        self.running: list[S] = []  # in order of admission
        self.preemptions = 0

    def add(self, sequence: S) -> None:
        """Put a sequence into the waiting line."""
        self.waiting.add(sequence)

    def admit(self, now: float) -> S | None:
        """Move the sequence that is next to the running ones, or None when none can run now.

        Room is made for its known tokens and the next one. A sequence whose next block is just being
        computed by a running one waits for it: then it will be found.

        Raises:
            AdmissionFailed: the next sequence can never get cache space.
        """
        if not self.waiting or len(self.running) >= self._max_running:
            return None
        coming = self._coming()
        for sequence in self.waiting.ranked(now, cached=self._cache.match):
            if coming and self._next_block(sequence) in coming:
                continue
            try:
                found = self._cache.allocate(sequence, sequence.position + 1)
            except Exception as error:
                raise AdmissionFailed(sequence) from error
            if found is None:
                return None  # no overtaking for lack of room: the next one could wait forever
            self.waiting.remove(sequence)
            self.running.append(sequence)
            sequence.computed = found
            return sequence
        return None

    def remove(self, sequence: S) -> None:
        """Remove a waiting or running sequence, and release its cache space."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        if not any(other.user == sequence.user for other in (*self.running, *self.waiting)):
            self.waiting.forget(sequence.user)
        self._cache.deallocate(sequence)  # last: if it fails, the sequence is gone all the same

    def plan(self, *, prefill_budget: int | None = None) -> Plan[S]:
        """The next step, without work only when nothing runs or all of it failed.

        Args:
            prefill_budget: Most prompt tokens to read while others decode; None leaves it to
                `step_tokens`.
        """
        decodes, failed = self._plan_decodes()
        budget = self._step_tokens - sum(work.tokens + len(work.drafts) for work in decodes)
        if decodes and prefill_budget is not None:
            budget = min(budget, prefill_budget)
        prefills: list[ScheduledTokens[S]] = []
        for sequence in self.running:
            if sequence.remaining > 1 and budget > 0:
                tokens = min(sequence.remaining, budget)
                prefills.append(ScheduledTokens(sequence, tokens, sampled=tokens == sequence.remaining))
                budget -= tokens
        return Plan((*decodes, *prefills), tuple(failed))

    def check_integrity(self) -> None:
        """Assert that the books balance."""
        assert len(self.running) <= self._max_running
        assert not set(map(id, self.running)) & set(map(id, self.waiting))

    def _plan_decodes(self) -> tuple[list[ScheduledTokens[S]], list[S]]:
        decoding = [sequence for sequence in self.running if sequence.remaining == 1]
        proposals: Sequence[Sequence[int]] = [()] * len(decoding)
        if self._drafter is not None and len(decoding) == len(self.running):  # prompts make better use of a step
            proposals = self._drafter.propose(decoding, budget=self._step_tokens - len(decoding))
        planned: list[ScheduledTokens[S]] = []
        failed: list[S] = []
        before = self.preemptions  # while none is sent back, nobody needs to be looked for
        for sequence, proposal in zip(decoding, proposals, strict=True):
            if self.preemptions > before and sequence not in self.running:
                continue  # it gave way to one before it
            drafts = tuple(proposal[: sequence.longest_draft])
            try:
                if drafts and not self._cache.grow(sequence, sequence.position + len(drafts)):
                    drafts = ()
                while not self._cache.grow(sequence, sequence.position):
                    self._give_way()
                    if sequence not in self.running:
                        break
            except Exception as error:
                logger.error("a sequence cannot grow", exc_info=error)
                failed.append(sequence)
                continue
            planned.append(ScheduledTokens(sequence, 1, sampled=True, drafts=drafts, is_decode=True))
        if self.preemptions > before:
            planned = [work for work in planned if work.sequence in self.running]
        return planned, failed

    def _give_way(self) -> None:
        """Send the running sequence of the lowest priority that was admitted last back to the line."""
        assert len(self.running) > 1, "a sequence alone always has room"
        lowest = min(sequence.priority for sequence in self.running)
        victim = [sequence for sequence in self.running if sequence.priority == lowest][-1]
        self._cache.deallocate(victim)
        self.running.remove(victim)
        victim.preempt()
        self.waiting.add(victim)
        self.preemptions += 1

    def _coming(self) -> set[bytes]:
        """Blocks that running sequences are about to compute."""
        size = self._cache.block_tokens
        return {
            key.digest
            for sequence in self.running
            if sequence.remaining > 1
            for key in sequence.keys[sequence.computed // size :]
        }

    def _next_block(self, sequence: S) -> bytes | None:
        """The first block it would have to compute itself; None when it has no further full block to find."""
        place = self._cache.match(sequence) // self._cache.block_tokens
        if (place + 1) * self._cache.block_tokens >= sequence.position:
            return None
        return sequence.keys[place].digest
