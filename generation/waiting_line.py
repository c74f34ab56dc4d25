"""The queue of waiting sequences, ordered by priority, fairness between users, cached tokens and waiting time."""

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

# This many seconds of waiting equal one level of priority, so that no sequence waits forever.
_AGEING_S = 5.0
# Among a user's own sequences the best cached prefix may overtake within the first few, for so long.
_WINDOW = 16
_PATIENCE_S = 2.0


class Queued(Protocol):
    """The properties of a sequence that the queue needs."""

    @property
    def user(self) -> str:
        """The user it belongs to."""
        ...

    @property
    def priority(self) -> int:
        """Higher goes first."""
        ...

    @property
    def submitted_at(self) -> float:
        """`time.monotonic` second."""
        ...

    @property
    def preempted(self) -> bool:
        """Whether it ran before, so that a client already reads it."""
        ...


Q = TypeVar("Q", bound=Queued)


class WaitingLine(Generic[Q]):
    """Sequences that wait for room, in order of arrival.

    Users take turns by tokens served (a virtual token counter, Sheng et al. 2024,
    arXiv:2401.00588): the user with the fewest goes next, and a user who returns after a pause starts
    level with the others, so a pause earns no credit.
    """

    def __init__(self) -> None:
        self._line: list[Q] = []
        self._served: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Q]:
        return iter(list(self._line))

    def __contains__(self, sequence: object) -> bool:
        return any(sequence is waiting for waiting in self._line)

    def add(self, sequence: Q) -> None:
        """Put a sequence at the end of the line."""
        if sequence.user not in self._served:
            self._served[sequence.user] = min(self._served.values(), default=0.0)
        self._line.append(sequence)

    def remove(self, sequence: Q) -> None:
        """Take a sequence out of the line."""
        self._line.remove(sequence)

    def charge(self, user: str, tokens: float) -> None:
        """Count tokens served to a user."""
        if user in self._served:
            self._served[user] += tokens

    def forget(self, user: str) -> None:
        """A user has nothing waiting and nothing running any more."""
        self._served.pop(user, None)

    def ranked(self, now: float, *, cached: Callable[[Q], int]) -> list[Q]:
        """The line in the order in which sequences should be admitted.

        Args:
            now: `time.monotonic` second.
            cached: Tokens of a sequence that need not be computed; asked for a few only.
        """

        def rank(place: int, sequence: Q) -> tuple[bool, float, float, int, int]:
            waited = now - sequence.submitted_at
            level = sequence.priority + waited // _AGEING_S
            overtakes = place < _WINDOW and waited < _PATIENCE_S
            return (
                not sequence.preempted,
                -level,
                self._served.get(sequence.user, 0.0),
                -cached(sequence) if overtakes else -(1 << 62),  # long waiters are not overtaken
                place,
            )

        order = sorted((rank(place, sequence), place) for place, sequence in enumerate(self._line))
        return [self._line[place] for _, place in order]
