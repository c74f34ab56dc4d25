"""A disk after a power loss: what `recorder.c` saw, up to a cut, less what no fsync had made durable.

The rules are stricter than those of any file system in use: a file's bytes are safe once the file was synced, its name
once its folder was. What came after may be gone, or be there in part and in any order.
"""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath

_HEAD = struct.Struct("<cQqII")
_OF_MEMORY = "-shm"
"""How the files of SQLite end that are mapped to memory: no recorder sees them, and SQLite makes them anew."""


class Unsynced(StrEnum):
    """What becomes of changes that no fsync has made durable."""

    DROPPED = "dropped"
    KEPT_AT_RANDOM = "kept at random"
    TORN = "torn"
    """Kept at random, and the writes that are kept end anywhere."""
    KEPT = "kept"
    """As if there had been no power loss."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change: `kind` is the letter that `recorder.c` gives it, `end` the length of the log after it."""

    kind: bytes
    inode: int
    offset: int
    first: str
    second: bytes
    end: int


def events_of(log: Path) -> list[Event]:
    """All events, in the order of the changes."""
    content, at, found = log.read_bytes(), 0, []
    while at + _HEAD.size <= len(content):
        kind, inode, offset, one, two = _HEAD.unpack_from(content, at)
        middle = at + _HEAD.size + one
        first = content[at + _HEAD.size : middle].decode()
        at = middle + two
        found.append(Event(kind, inode, offset, first, content[middle:at], at))
    return found


@dataclass(slots=True, eq=False)
class _File:
    """Its changes by the number of their event: bytes at an offset, or None where it was cut to that size."""

    path: str
    changes: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    synced: int = -1


@dataclass(slots=True, eq=False)
class _Folder:
    """Its changes by the number of their event: what a name stands for from then on, None for nothing."""

    path: str
    entries: "dict[str, _File | _Folder]" = field(default_factory=dict)
    changes: "list[tuple[int, str, _File | _Folder | None]]" = field(default_factory=list)
    synced: int = -1

    def put(self, number: int, name: str, entry: "_File | _Folder | None") -> None:
        self.changes.append((number, name, entry))
        if entry is None:
            self.entries.pop(name, None)
        else:
            self.entries[name] = entry


class Disk:
    """A folder as the events have made it; `write` lays down what a power loss would leave of it.

    Example:
        >>> disk = Disk(root)
        >>> for event in events_of(log)[:cut]:
        ...     disk.apply(event)
        >>> disk.write(tmp_path / "after", Unsynced.DROPPED, random.Random(7))
    """

    def __init__(self, root: Path, *, unsynced: Callable[[str], bool] = lambda path: False) -> None:
        """An empty folder.

        Args:
            root: The folder that was recorded; it still exists.
            unsynced: Paths whose fsync is taken for nothing, as if our code had forgotten it.
        """
        self._root = _Folder("")
        self._nodes: dict[int, _File | _Folder] = {root.stat().st_ino: self._root}
        self._unsynced = unsynced
        self._number = -1

    def apply(self, event: Event) -> None:
        """The next change."""
        self._number += 1
        match event.kind:
            case b"C":
                self._make(event, _File(event.first))
            case b"M":
                self._make(event, _Folder(event.first))
            case b"W" | b"T":
                node = self._nodes.get(event.inode)
                if isinstance(node, _File):
                    written = event.second if event.kind == b"W" else None
                    node.changes.append((self._number, event.offset, written))
            case b"S":
                self._sync(self._nodes.get(event.inode))
            case b"A":
                for node in self._nodes.values():
                    self._sync(node)
            case b"U":
                folder, name = self._place(event.first)
                folder.put(self._number, name, None)
            case b"R" | b"L":
                self._move(event)
            case _:
                raise AssertionError(f"an event of an unknown kind: {event.kind!r}")

    def write(self, folder: Path, mode: Unsynced, chance: random.Random) -> None:
        """Lay down what is left after a power loss now; `chance` decides what the mode leaves open."""
        until = {Unsynced.DROPPED: -1, Unsynced.KEPT: self._number}.get(mode, chance.randrange(-1, self._number + 1))
        self._write(self._root, folder, until, mode, chance)

    def _make(self, event: Event, node: "_File | _Folder") -> None:
        self._nodes[event.inode] = node
        folder, name = self._place(event.first)
        folder.put(self._number, name, node)

    def _sync(self, node: "_File | _Folder | None") -> None:
        if node is not None and not self._unsynced(node.path):
            node.synced = self._number

    def _move(self, event: Event) -> None:
        source, old = self._place(event.first)
        target, new = self._place(event.second.decode())
        node = source.entries[old]
        if event.kind == b"R":
            source.put(self._number, old, None)
            node.path = event.second.decode()
        target.put(self._number, new, node)

    def _place(self, path: str) -> tuple[_Folder, str]:
        *folders, name = PurePosixPath(path).parts
        at = self._root
        for part in folders:
            below = at.entries[part]
            assert isinstance(below, _Folder), path
            at = below
        return at, name

    def _write(self, folder: _Folder, into: Path, until: int, mode: Unsynced, chance: random.Random) -> None:
        into.mkdir()
        left: dict[str, _File | _Folder] = {}
        for number, name, entry in folder.changes:
            if number > max(folder.synced, until):
                continue
            if entry is None:
                left.pop(name, None)
            else:
                left[name] = entry
        for name, entry in left.items():
            if name.endswith(_OF_MEMORY):
                continue
            if isinstance(entry, _Folder):
                self._write(entry, into / name, until, mode, chance)
            else:
                (into / name).write_bytes(_content(entry, mode, chance))


def _content(file: _File, mode: Unsynced, chance: random.Random) -> bytes:
    content = bytearray()
    for _, offset, written in _left(file, mode, chance):
        if written is None:
            del content[offset:]
            content.extend(bytes(offset - len(content)))
        else:
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(written)] = written
    return bytes(content)


def _left(file: _File, mode: Unsynced, chance: random.Random) -> Iterator[tuple[int, int, bytes | None]]:
    """The changes of a file that a power loss leaves."""
    for number, offset, written in file.changes:
        if number <= file.synced or mode is Unsynced.KEPT:
            yield number, offset, written
        elif mode is not Unsynced.DROPPED and chance.random() < 0.5:
            torn = mode is Unsynced.TORN and written is not None
            yield number, offset, written[: chance.randrange(len(written) + 1)] if torn and written else written
