"""Which sequences advance in the next step, and by how many tokens. Knows counts, not tensors."""

from collections import deque
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Schedulable(Protocol):
    """What the scheduler must know of a sequence."""

    @property
    def remaining(self) -> int:
        """Tokens known but not computed yet, at least 1."""
        ...

    @property
    def reserved(self) -> int:
        """Tokens of cache it needs from admission to its end."""
        ...


S = TypeVar("S", bound=Schedulable)


@dataclass(frozen=True, slots=True)
class Work(Generic[S]):
    """Feed the next `tokens` tokens of `sequence` to the model; if none remain, a new one is `sampled`."""

    sequence: S
    tokens: int
    sampled: bool


class Scheduler(Generic[S]):
    """First come, first served, decodes before prefills.

    A step costs at most `step_tokens` tokens. Sequences that have one token left to compute are all
    served; what is left of the budget reads prompts in chunks, in order of admission (chunked
    prefill, Agrawal et al. 2023, arXiv:2308.16369), so a long prompt cannot stop others' streams.
    """

    def __init__(self, *, max_running: int, step_tokens: int, capacity_tokens: int) -> None:
        assert 1 <= max_running <= step_tokens, "every running sequence must be able to advance"
        self._max_running = max_running
        self._step_tokens = step_tokens
        self._capacity_tokens = capacity_tokens
        self._held_tokens = 0
        self.waiting: deque[S] = deque()
        self.running: list[S] = []

    def add(self, sequence: S) -> None:
        """Put a sequence at the end of the waiting line."""
        assert sequence.reserved <= self._capacity_tokens, "it could never be admitted"
        self.waiting.append(sequence)

    def admit(self) -> S | None:
        """Move the first waiting sequence to the running ones, or None when it must wait on."""
        if not self.waiting or len(self.running) >= self._max_running:
            return None
        if self._held_tokens + self.waiting[0].reserved > self._capacity_tokens:
            return None
        sequence = self.waiting.popleft()
        self._held_tokens += sequence.reserved
        self.running.append(sequence)
        return sequence

    def remove(self, sequence: S) -> None:
        """Forget a sequence, waiting or running."""
        if sequence in self.running:
            self.running.remove(sequence)
            self._held_tokens -= sequence.reserved
        else:
            self.waiting.remove(sequence)

    def plan(self) -> list[Work[S]]:
        """The next step, empty only when nothing runs."""
        decodes = [Work(sequence, 1, sampled=True) for sequence in self.running if sequence.remaining == 1]
        budget = self._step_tokens - len(decodes)
        prefills: list[Work[S]] = []
        for sequence in self.running:
            if sequence.remaining > 1 and budget > 0:
                tokens = min(sequence.remaining, budget)
                prefills.append(Work(sequence, tokens, sampled=tokens == sequence.remaining))
                budget -= tokens
        return decodes + prefills

    def check_integrity(self) -> None:
        """Assert that the books balance."""
        assert self._held_tokens == sum(sequence.reserved for sequence in self.running)
        assert self._held_tokens <= self._capacity_tokens
        assert len(self.running) <= self._max_running
        assert not set(map(id, self.running)) & set(map(id, self.waiting))
