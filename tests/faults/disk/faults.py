"""Faults of a disk that a running process meets: which calls fail, on which files, with which error."""

import errno
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

_PLAN = struct.Struct("<7q256s256s")
_ERROR = struct.Struct("<q")
_COUNTS = struct.Struct("<2q")
_COUNTS_AT, _LAST_AT = 5 * 8, 7 * 8 + 256
_ALL = -1


class Calls(IntFlag):
    """Kinds of calls, by the numbers that `failing.c` gives them."""

    OPEN = 1
    """Opens a file to write it, or makes it."""
    WRITE = 2
    SYNC = 4
    RENAME = 8
    REMOVE = 16
    MAKE = 32
    """Makes a folder or a link."""
    CUT = 64
    READ = 128
    """Opens a file to read it."""


CHANGES = Calls.OPEN | Calls.WRITE | Calls.RENAME | Calls.REMOVE | Calls.MAKE | Calls.CUT
"""What a read-only file system refuses."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Calls of some kinds fail with an error on files whose path, relative to the root, fits `pattern`.

    The pattern is one of fnmatch(3), with `@(a|b)` for either.

    The first `passes` of them succeed, then `failures` fail, all where it is None. While there are bytes of `room`,
    none fails; the write that takes the last byte is cut short.
    """

    calls: Calls
    error: int
    pattern: str = "*"
    passes: int = 0
    failures: int | None = None
    room: int = 0

    def __str__(self) -> str:
        names = "|".join(str(call.name).lower() for call in self.calls)
        times = "" if self.failures is None else f", {self.failures} after {self.passes}"
        return f"{errno.errorcode[self.error]} of {names} on {self.pattern}{times}"


class DiskFaults:
    """The file through which a process with `failing.c` is told what fails. Nothing fails at first.

    Example:
        >>> with faults.during(Fault(Calls.WRITE, errno.ENOSPC, "data/files/*")):
        ...     server.upload("a.txt", "text")
        >>> faults.failed
        1
    """

    def __init__(self, path: Path) -> None:
        """Make the file, which the process must find when it starts."""
        self.path = path
        path.write_bytes(bytes(_PLAN.size))
        descriptor = os.open(path, os.O_RDWR)
        try:
            self._plan = mmap.mmap(descriptor, _PLAN.size)
        finally:
            os.close(descriptor)

    @contextmanager
    def during(self, fault: Fault) -> Iterator[None]:
        """Let calls fail until the block ends."""
        self.begin(fault)
        try:
            yield
        finally:
            self.end()

    def begin(self, fault: Fault) -> None:
        """Let calls fail from now on; the counts begin at 0."""
        failures = _ALL if fault.failures is None else fault.failures
        fields = (int(fault.calls), fault.passes, failures, fault.room, 0, 0, fault.pattern.encode(), b"")
        self._plan[:] = _PLAN.pack(0, *fields)
        _ERROR.pack_into(self._plan, 0, fault.error)

    def end(self) -> None:
        """Let no call fail any more; the counts stay."""
        _ERROR.pack_into(self._plan, 0, 0)

    @property
    def failed(self) -> int:
        """How many calls failed, or were cut short, of the last fault."""
        return int(_COUNTS.unpack_from(self._plan, _COUNTS_AT)[1])

    @property
    def last(self) -> str:
        """The path of the last call that failed, relative to the root; empty where none did."""
        return self._plan[_LAST_AT : _LAST_AT + 256].split(b"\0")[0].decode()

    def close(self) -> None:
        """Forget the file; the process keeps it."""
        self._plan.close()
