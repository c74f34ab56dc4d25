"""The errors that each kind of call can return, on the files of each kind, while each act is done."""

import errno
from collections.abc import Iterator

from tests.faults.disk.acts import Client
from tests.faults.disk.faults import Calls, Fault

ERRORS: tuple[tuple[Calls, int], ...] = (
    (Calls.OPEN | Calls.READ, errno.EIO),
    (Calls.OPEN | Calls.READ, errno.EMFILE),
    (Calls.OPEN, errno.ENOSPC),
    (Calls.WRITE, errno.EIO),
    (Calls.WRITE, errno.ENOSPC),
    (Calls.SYNC, errno.EIO),
    (Calls.SYNC, errno.ENOSPC),
    (Calls.RENAME, errno.EIO),
    (Calls.RENAME, errno.ENOSPC),
)
"""Kinds of calls and the errors that open(2), write(2), fsync(2) and rename(2) name for them."""

EVERYWHERE = "!(forked.log)"
PATTERNS = ("data/footnote.db*", "data/files/*", "data/@(index|lexical)*", "data/settlements*", "tmp/*", EVERYWHERE)
"""The database, the originals, the indexes, the journal of settlements, temporary files, and all files but the log."""

_MOST_CALLS = 60  # of one kind in one act


def faults_of(*, full: bool, pattern: str = EVERYWHERE) -> list[Fault]:
    """The combinations that say that the disk is full, or the others; every call fails."""
    return [Fault(calls, error, pattern) for calls, error in ERRORS if (error == errno.ENOSPC) is full]


def one_by_one(client: Client, fault: Fault, *, failures: int | None) -> Iterator[Fault]:
    """The same fault from the first call on, from the second, and so on, until an act makes fewer calls.

    After each, the caller does the act with it. SQLite tests errors of the disk like this (sqlite.org/testing.html).
    """
    for passes in range(_MOST_CALLS):
        yield Fault(fault.calls, fault.error, fault.pattern, passes=passes, failures=failures)
        if client.server.faults.failed == 0:
            return
