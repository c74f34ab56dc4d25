"""Copies on this disk of originals that are elsewhere, kept to be read again until their room is needed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.documents.ports import ObjectName
from app.documents.spool import not_deleted
from app.ids import new_id

Fetch = Callable[[Path], int]
"""Writes an original to a path; returns its bytes."""


@dataclass(slots=True)
class _Copy:
    path: Path
    readers: int = 0
    bytes: int | None = None  # None: not fetched yet
    fetching: threading.Lock = field(default_factory=threading.Lock)


class LocalCopies:
    """A folder of copies, each fetched once for all who read it. Those read last are kept, up to a number of bytes.

    One that is being read is kept whatever its size. The folder is cleared at a start, with the spool that it is in: a
    copy is not flushed to disk.

    Example:
        >>> with copies.of("obj_01jd2x8k3vq5zt7m9n4r6s8w0y", fetch) as path:
        ...     path.read_bytes()
    """

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        """`folder` exists. `most_bytes` are kept of copies that nobody reads."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._copies: OrderedDict[ObjectName, _Copy] = OrderedDict()  # the one read last at the end
        self._lock = threading.Lock()

    @contextmanager
    def of(self, name: ObjectName, fetch: Fetch) -> Iterator[Path]:
        """The file with an original, to be read until exit. An error of `fetch` reaches all who wait for it in turn."""
        with self._lock:
            copy = self._copies.setdefault(name, _Copy(self._folder / new_id("copy")))
            self._copies.move_to_end(name)
            copy.readers += 1
        try:
            with copy.fetching:
                if copy.bytes is None:
                    copy.bytes = fetch(copy.path)
            yield copy.path
        finally:
            with self._lock:
                copy.readers -= 1
                self._tidy(name, copy)

    def forget(self, *names: ObjectName) -> None:
        """Delete the copies of originals that are deleted; one that is being read goes when it has been read."""
        with self._lock:
            for name in names:
                copy = self._copies.pop(name, None)
                if copy is not None and not copy.readers:
                    _unlink(copy.path)

    def _tidy(self, name: ObjectName, left: _Copy) -> None:
        """Delete what need not be kept, now that `left` is read no more. The caller holds the lock."""
        if not left.readers and self._copies.get(name) is not left:  # it was forgotten meanwhile
            _unlink(left.path)
        kept = sum(copy.bytes or 0 for copy in self._copies.values())
        for each, copy in list(self._copies.items()):
            if not copy.readers and (copy.bytes is None or kept > self._most_bytes):  # it failed, or has no room
                del self._copies[each]
                kept -= copy.bytes or 0
                _unlink(copy.path)


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        not_deleted(error)
