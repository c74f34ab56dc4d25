"""The queue of jobs that this process has claimed and not started; small files are claimed several at a time."""

import threading
from collections import deque

from app.db.jobs import JobRepository
from app.jobs.attempt import Attempt

_HELD = 2  # jobs that wait here for each parser, at most: other processes could begin them
_MOST_BYTES = 64 << 10  # of the files claimed together: a large file is claimed alone, when its turn comes


class ClaimQueue:
    """Hands claimed jobs to the parser threads. Safe to use from any thread.

    Example:
        >>> queue = ClaimQueue(jobs, boot_id, parsers=2)
        >>> attempt = queue.take()  # None when no job waits
    """

    def __init__(self, jobs: JobRepository, boot_id: str, *, parsers: int = 1) -> None:
        self._jobs = jobs
        self._boot_id = boot_id
        self._most = 1 + _HELD * parsers  # the first is begun at once
        self._lock = threading.Lock()
        self._attempts: deque[Attempt] = deque()
        self._closed = False
        self._changed = threading.Condition()
        self._calls = 0  # to `wake`

    def take(self) -> Attempt | None:
        """The next job's attempt, to be begun at once; None when none waits, or after `close`.

        Raises:
            StoreUnavailable, StorageFull: The queue cannot be read or written now.
        """
        with self._lock:
            if self._closed:
                return None
            if not self._attempts:
                claimed = self._jobs.claim_several(self._boot_id, most=self._most, most_bytes=_MOST_BYTES)
                self._attempts.extend(Attempt(job, document) for job, document in claimed)
                if len(claimed) > 1:
                    self.wake()
            return self._attempts.popleft() if self._attempts else None

    def wake(self) -> None:
        """Wake the waiting threads: there may be a job to take."""
        with self._changed:
            self._calls += 1
            self._changed.notify_all()

    def calls(self) -> int:
        """The number of calls to `wake` so far; an argument of `wait`."""
        return self._calls

    def wait(self, calls: int, *, seconds: float) -> None:
        """Wait until `wake` has been called more than `calls` times, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._calls != calls, timeout=seconds)

    def close(self) -> list[Attempt]:
        """Stop handing out jobs; returns those that were claimed and not started."""
        with self._lock:
            self._closed = True
            left, self._attempts = list(self._attempts), deque()
        self.wake()
        return left
