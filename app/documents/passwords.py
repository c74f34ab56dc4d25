"""Passwords of protected files, kept by job until the file is parsed: in this process's memory only.

Processes that share a database keep them sealed instead (`app.db.sealed_passwords`).
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Protocol

import sqlalchemy as sa
from pydantic import SecretStr

_MOST = 100_000  # jobs; the oldest password is evicted first, and its job fails with the code "encrypted"
_SECONDS = 24 * 3600.0  # a job deleted before it was claimed never calls `forget`


class JobPasswords(Protocol):
    """Port: the passwords of jobs that wait or run.

    Example:
        >>> passwords.put_in(connection, job.id, SecretStr("s3cret"))
        >>> passwords.of(job.id)
        's3cret'
        >>> passwords.forget(job.id)
    """

    def put_in(self, connection: sa.Connection, job_id: str, password: SecretStr) -> None:
        """Keep the password of a job until `forget`, in the transaction that lets the job wait."""
        ...

    def of(self, job_id: str) -> str | None:
        """A job's password in plain text, for the extractor only; None when there is none."""
        ...

    def forget(self, job_id: str) -> None:
        """Delete the password of a job that has ended, if it has one."""
        ...


class Passwords:
    """Passwords by job id, bounded in number and age. Safe to use from any thread.

    A restart loses them all: their jobs fail with the code "encrypted", and the client retries with the password.

    Example:
        >>> passwords.put(job.id, SecretStr("s3cret"))
        >>> passwords.of(job.id)
        's3cret'
    """

    def __init__(
        self, *, most: int = _MOST, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Keep at most `most` passwords, each for at most `seconds` of `clock`."""
        assert most > 0, "at least one password is kept"
        self._by_job: OrderedDict[str, tuple[float, SecretStr]] = OrderedDict()  # with its expiry, oldest first
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()

    def put(self, job_id: str, password: SecretStr) -> None:
        """Keep the password of a job until `forget`. Call it before the job is committed and can be claimed."""
        with self._lock:
            self._by_job[job_id] = self._clock() + self._seconds, password
            self._by_job.move_to_end(job_id)
            self._forget_old()

    def put_in(self, connection: sa.Connection, job_id: str, password: SecretStr) -> None:  # noqa: ARG002 - the port's
        """As `put`: the password stays where the transaction fails, and its job is never claimed."""
        self.put(job_id, password)

    def of(self, job_id: str) -> str | None:
        """See `JobPasswords.of`."""
        with self._lock:
            self._forget_old()
            kept = self._by_job.get(job_id)
        return kept[1].get_secret_value() if kept is not None else None

    def forget(self, job_id: str) -> None:
        """See `JobPasswords.forget`."""
        with self._lock:
            self._by_job.pop(job_id, None)

    def __len__(self) -> int:
        """The number of passwords kept."""
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
