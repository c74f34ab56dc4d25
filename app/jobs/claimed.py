"""Jobs this process has claimed and not begun: small files are claimed several at a time."""

import threading
from collections import deque

from app.db.jobs import JobRepository
from app.jobs.attempt import Attempt

_MOST = 16  # a claim is a durable write, which costs as much as reading a small file
_MOST_BYTES = 64 << 10  # of the files claimed together: what takes long to read is claimed when its turn has come


class Claimed:
    """What the threads that read files take their work from. Safe to use from any thread."""

    def __init__(self, jobs: JobRepository, boot_id: str) -> None:
        self._jobs = jobs
        self._boot_id = boot_id
        self._lock = threading.Lock()
        self._attempts: deque[Attempt] = deque()
        self._closed = False
        self._changed = threading.Condition()
        self._calls = 0  # of `wake`

    def take(self) -> Attempt | None:
        """The next job's attempt; None when none waits, or after `close`.

        Raises:
            StoreUnavailable, StorageFull: The queue cannot be read or written now.
        """
        with self._lock:
            if self._closed:
                return None
            if not self._attempts:
                claimed = self._jobs.claim_several(self._boot_id, most=_MOST, most_bytes=_MOST_BYTES)
                self._attempts.extend(Attempt(job, document) for job, document in claimed)
                if len(claimed) > 1:
                    self.wake()
            return self._attempts.popleft() if self._attempts else None

    def wake(self) -> None:
        """There may be something to take."""
        with self._changed:
            self._calls += 1
            self._changed.notify_all()

    def calls(self) -> int:
        """How often `wake` was called; for `wait`."""
        return self._calls

    def wait(self, calls: int, *, seconds: float) -> None:
        """Wait for a call of `wake` beyond so many `calls`, at most so many `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._calls != calls, timeout=seconds)

    def close(self) -> list[Attempt]:
        """Give out nothing more; what was claimed and not begun."""
        with self._lock:
            self._closed = True
            left, self._attempts = list(self._attempts), deque()
        self.wake()
        return left
