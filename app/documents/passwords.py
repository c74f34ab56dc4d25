"""Passwords of documents that wait to be read: in this process's memory, by job, and nowhere else."""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from pydantic import SecretStr

_MOST = 100_000  # jobs; the oldest password is forgotten first, its job then fails as encrypted
_SECONDS = 24 * 3600.0  # a job that was deleted before anybody took it has no end that would forget its password


class Passwords:
    """What was sent to open files with. Safe to use from any thread.

    A restart forgets them all: the job then fails with the code "encrypted", and the password is sent
    again with a retry.
    """

    def __init__(
        self, *, most: int = _MOST, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Keep at most so many, and each for at most so long."""
        assert most > 0, "a store that keeps nothing is none"
        self._by_job: OrderedDict[str, tuple[float, SecretStr]] = OrderedDict()  # with its last moment, in that order
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()

    def put(self, job_id: str, password: SecretStr) -> None:
        """Keep the password of a job until `forget`; before the job can be claimed, that is before its commit."""
        with self._lock:
            self._by_job[job_id] = self._clock() + self._seconds, password
            self._by_job.move_to_end(job_id)
            self._forget_old()

    def of(self, job_id: str) -> str | None:
        """A job's password in clear, for the extractor alone; None where there is none. Asking again finds it again."""
        with self._lock:
            self._forget_old()
            kept = self._by_job.get(job_id)
        return kept[1].get_secret_value() if kept is not None else None

    def forget(self, job_id: str) -> None:
        """The job has ended, one way or another; a job without a password is fine."""
        with self._lock:
            self._by_job.pop(job_id, None)

    def __len__(self) -> int:
        """How many are kept."""
        with self._lock:
            self._forget_old()
            return len(self._by_job)

    def _forget_old(self) -> None:
        now = self._clock()
        while self._by_job:
            last, _ = next(iter(self._by_job.values()))
            if last > now and len(self._by_job) <= self._most:
                return
            self._by_job.popitem(last=False)
