"""Finds the files to ingest, identifies them and detects changes."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import SetupError

_NAME_LIMIT = 512  # characters of an external id (API.md)
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Signature:
    """A file's size in bytes, times in nanoseconds and inode: shows a change without reading the file."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file to ingest.

    `external_id` is its identity on the server, None where its bytes are; `folder` names the tree it belongs to.
    """

    path: Path
    external_id: str | None
    folder: str | None
    signature: Signature

    @property
    def name(self) -> str:
        """The file's name in reports."""
        return self.external_id or str(self.path)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file or folder that cannot be ingested, with the reason. `unfit`: its name cannot identify a document."""

    name: str
    reason: str
    unfit: bool = False


@dataclass(slots=True)
class FolderScan:
    """The result of a scan. `hidden`: external ids of files and folders that an error made unreadable."""

    files: list[LocalFile] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def hides(self, external_id: str) -> bool:
        """Whether an unreadable folder may contain the file."""
        return any(name in {"", external_id} or external_id.startswith(f"{name}/") for name in self.hidden)


class Folder:
    """A folder tree; a file is identified by its path inside the tree.

    Left out: names that begin with a dot, Office's lock files (`~$…`), everything but regular files, and
    symbolic links that lead out of the tree or to something left out. Linked folders are not entered.
    """

    def __init__(self, root: Path, *, prefix: str = "") -> None:
        self.root = root.resolve()
        self._prefix = in_front(prefix)
        # The mark on the documents of this tree. A prefix is a name that survives a move; a hash tells
        # apart two trees of the same name without revealing their paths to the server.
        place = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:8]
        self.mark = prefix.strip("/") or f"{self.root.name}#{place}"
        self._identity = self._place()

    def is_there(self) -> bool:
        """Whether the tree is still the one that was opened; an unmounted share must not count as an empty folder."""
        return self._place() == self._identity

    def scan(self) -> FolderScan:
        """All files of the tree, sorted by name."""
        found = FolderScan()

        def unlisted(error: OSError) -> None:
            name = self.external_id(Path(error.filename)) or str(error.filename)
            found.hidden.append("" if Path(error.filename) == self.root else name)
            found.unreadable.append(Unreadable(_shown(name), f"cannot be listed: {error.strerror}"))

        for parent, folders, names in os.walk(self.root, onerror=unlisted):
            folders[:] = sorted(name for name in folders if not _left_out(name))
            for name in sorted(names):
                file = self.look(Path(parent, name))
                if isinstance(file, LocalFile):
                    found.files.append(file)
                elif file is not None:
                    found.unreadable.append(file)
                    found.hidden += [] if file.unfit else [file.name]
        return found

    def look(self, path: Path) -> LocalFile | Unreadable | None:
        """The file at an absolute path below the root; None when it is absent or excluded."""
        if not self.means(path):
            return None
        name = self._prefix + path.relative_to(self.root).as_posix()
        try:
            status = self._status(path)
        except OSError as error:
            return Unreadable(_shown(name), f"cannot be read: {error.strerror}")
        if status is None:
            return None
        if reason := _unfit(name):
            return Unreadable(_shown(name), reason, unfit=True)
        return LocalFile(path=path, external_id=name, folder=self.mark, signature=_signature(status))

    def means(self, path: Path) -> bool:
        """Whether a path is ingested by its name: below the root, and without a hidden part."""
        return path.is_relative_to(self.root) and not any(map(_left_out, path.relative_to(self.root).parts))

    def external_id(self, path: Path) -> str | None:
        """The external id of the file at an absolute path; None outside the tree."""
        return self._prefix + path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None

    def path(self, external_id: str) -> Path | None:
        """The path of an external id; None when it does not belong to this tree."""
        return self.root / external_id.removeprefix(self._prefix) if external_id.startswith(self._prefix) else None

    def _status(self, path: Path) -> os.stat_result | None:
        """The `stat` result of an included regular file; None where there is none."""
        try:
            target = Path(os.path.realpath(path, strict=True))
            status = target.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not (stat.S_ISREG(status.st_mode) and self.means(target)):
            return None
        # A file in a linked folder is left out: it is found at its real path.
        return status if Path(os.path.realpath(path.parent)) == path.parent else None

    def _place(self) -> tuple[int, int] | None:
        try:
            status = self.root.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino


def find_files(paths: Iterable[Path], *, prefix: str = "") -> FolderScan:
    """The files of several paths, each once; folders are walked.

    A file given by its own path is identified by its bytes, unless a prefix names it:
    two files of one name from two places must not become versions of one document.

    Raises:
        SetupError: Two files have the same external id.
    """
    found, places, names = FolderScan(), set[Path](), dict[str, Path]()
    for file in _each(paths, prefix, found):
        place = file.path.resolve()
        if place in places:
            continue
        places.add(place)
        other = names.setdefault(file.external_id, file.path) if file.external_id is not None else file.path
        if other != file.path:
            raise SetupError(
                f"'{file.external_id}' would name two files, {other} and {file.path}: "
                "ingest them one after the other, each with a --prefix of its own."
            )
        found.files.append(file)
    return found


def _each(paths: Iterable[Path], prefix: str, found: FolderScan) -> Iterator[LocalFile]:
    for path in paths:
        if path.is_dir():
            tree = Folder(path, prefix=prefix).scan()
            found.unreadable += tree.unreadable
            found.hidden += tree.hidden
            yield from tree.files
            continue
        name = in_front(prefix) + path.name if prefix else None
        try:
            signature = _signature(path.stat())
        except OSError as error:
            found.unreadable.append(Unreadable(_shown(str(path)), f"cannot be read: {error.strerror}"))
            continue
        if reason := _unfit(name or path.name):
            found.unreadable.append(Unreadable(_shown(str(path)), reason))
            continue
        yield LocalFile(path=path, external_id=name, folder=None, signature=signature)


def in_front(prefix: str) -> str:
    """The prefix of all external ids, as a folder path, or an empty string."""
    return prefix.strip("/") + "/" if prefix else ""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes in hexadecimal.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def signature_of(path: Path) -> Signature | None:
    """The file's current signature; None when its status cannot be read."""
    try:
        return _signature(path.stat())
    except OSError:
        return None


def _signature(status: os.stat_result) -> Signature:
    return Signature(
        size=status.st_size, modified_ns=status.st_mtime_ns, changed_ns=status.st_ctime_ns, inode=status.st_ino
    )


def _left_out(name: str) -> bool:
    return name.startswith((".", "~$"))


def _unfit(name: str) -> str | None:
    """The reason why a name cannot identify a document."""
    if not name.isprintable() and any(0xD800 <= ord(char) < 0xE000 for char in name):
        return "its name is not valid Unicode"
    if len(name) > _NAME_LIMIT:
        return f"its path has more than {_NAME_LIMIT} characters"
    return None


def _shown(name: str) -> str:
    return name.encode("utf-8", errors="replace").decode()
