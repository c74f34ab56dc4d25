"""Follows a folder: files added, changed or removed there are added, changed or removed on the server."""

import time
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from app.cli.folder import Folder, LocalFile, Signature, Unreadable, signature_of
from app.cli.inventory import parents
from app.cli.mirror import Mirror

SETTLE_S = 2.0  # a file is left alone until its signature stood still for so long
_TICK_MS = 1_000
_DEBOUNCE_MS = 1_600
_POLL_MS = 5_000


def watched(root: Path) -> Iterator[AbstractSet[Path]]:
    """Yields the paths below `root` that changed, and an empty set at least every second.

    Uses the system's notifications, or, where there are none or too few of them (inotify's limit), polls
    the tree every five seconds (watchfiles, which wraps Rust's notify). A rescan finds
    changes that both miss.
    """
    from watchfiles import watch

    for polling in (None, True):
        try:
            for changes in watch(
                root,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
                force_polling=polling,
                poll_delay_ms=_POLL_MS,
                ignore_permission_denied=True,
            ):
                yield {Path(path) for _, path in changes}
        except (OSError, RuntimeError):  # errors of notify, and of its wrapper for unexpected ones
            continue
    while True:  # neither works here: rescans alone
        time.sleep(_TICK_MS / 1000)
        yield set()


@dataclass(frozen=True, slots=True)
class _Seen:
    """A path's last signature (None: no file) and the time since when it is unchanged, in seconds."""

    signature: Signature | None
    since: float


@dataclass(frozen=True, slots=True)
class _Synced:
    """A file's signature when the server held `sha256` for it; None: the server confirmed that it holds nothing."""

    signature: Signature
    sha256: str | None


class Follower:
    """Uploads the changes of one folder to the server.

    Changes are hints: each names a path that is polled until it no longer changes. So it does not
    matter how many there are, in which order they come, or that some are lost, as long as a rescan
    follows.
    """

    def __init__(
        self,
        folder: Folder,
        mirror: Mirror,
        *,
        keep_removed: bool,
        say: Callable[[str], None],
        settle_s: float = SETTLE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take collaborators.

        Args:
            folder: The folder to follow.
            mirror: Puts files on the server and removes them.
            keep_removed: Documents stay when their files go.
            say: Called with messages for the user.
            settle_s: Seconds without a change after which a file is uploaded.
            clock: Monotonic seconds.
        """
        self._folder = folder
        self._mirror = mirror
        self._keep_removed = keep_removed
        self._say = say
        self._settle_s = settle_s
        self._clock = clock
        self._pending: dict[Path, _Seen] = {}
        self._synced: dict[str, _Synced] = {}
        self._told: set[str] = set()
        self._scan_since: float | None = None
        self._had_files = False

    @property
    def idle(self) -> bool:
        """Whether no change is pending."""
        return not self._pending and self._scan_since is None

    def touch(self, paths: Iterable[Path]) -> None:
        """Marks paths that may have changed."""
        for path in paths:
            if not self._folder.means(path):
                continue
            if self._is_file(path):
                self._await(path, signature_of(path))
            elif self._scan_since is None:  # a folder was added or removed, with files that no event names
                self._scan_since = self._clock()

    def rescan(self) -> None:
        """Compares the whole folder with the whole collection.

        Raises:
            Refused: The server is away or unwilling, beyond patience.
        """
        if self._is_away():
            return
        self._mirror.load()
        self._scan()

    def tick(self) -> None:
        """Uploads files that have been stable long enough, then deletes documents of removed files.

        Raises:
            Refused: As in `rescan`.
        """
        if self._is_away():
            return
        now = self._clock()
        if self._scan_since is not None and now - self._scan_since >= self._settle_s:
            self._scan()
        gone: list[Path] = []
        for path, seen in list(self._pending.items()):
            file = self._folder.look(path)
            signature = file.signature if isinstance(file, LocalFile) else None
            if signature != seen.signature:
                self._pending[path] = _Seen(signature, now)
            elif now - seen.since >= self._settle_s:
                if isinstance(file, LocalFile):
                    self._put(file)
                    continue
                if isinstance(file, Unreadable):
                    self._report(file)
                else:
                    gone.append(path)
                del self._pending[path]
        for path in gone:
            self._remove(path)

    def _scan(self) -> None:
        self._scan_since = None
        found = self._folder.scan()
        self._had_files |= bool(found.files)
        for unreadable in found.unreadable:
            self._report(unreadable)
        present = set[str]()
        for file in found.files:
            assert file.external_id is not None, "files of a folder have names"
            present.add(file.external_id)
            synced = self._synced.get(file.external_id)
            if synced != _Synced(file.signature, self._mirror.sha256(file.external_id)):
                self._await(file.path, file.signature)
        missing = [
            name
            for name in self._mirror.owned(self._folder.mark)
            if name not in present and present.isdisjoint(parents(name)) and not found.hides(name)
        ]
        if self._keep_removed or not missing:
            return
        if not self._had_files:
            # An empty place at the start looks like a share that is not mounted, and deletion is final.
            self._tell(f"The folder is empty; the {len(missing)} documents that came from it are left as they are.")
            return
        for name in missing:
            path = self._folder.path(name)
            if path is not None:
                self._await(path, None)

    def _put(self, file: LocalFile) -> None:
        assert file.external_id is not None, "files of a folder have names"
        put = self._mirror.put(file)
        if put.members is not None and not self._keep_removed:
            for name in self._mirror.owned_below(file.external_id, self._folder.mark) - put.members:
                self._mirror.remove(name)
        if put.stood_still:
            self._synced[file.external_id] = _Synced(file.signature, put.sha256)
            del self._pending[file.path]
        else:
            self._pending[file.path] = _Seen(signature_of(file.path), self._clock())

    def _remove(self, path: Path) -> None:
        name = self._folder.external_id(path)
        if name is None:
            return
        self._synced.pop(name, None)
        self._mirror.tally.failures.pop(name, None)  # a file that is gone cannot be mended
        if self._keep_removed:
            return
        if self._mirror.owns(name, self._folder.mark):
            self._mirror.remove(name)
        if not path.is_dir():
            for member in self._mirror.owned_below(name, self._folder.mark):  # it was an archive
                self._mirror.remove(member)

    def _is_file(self, path: Path) -> bool:
        """Whether the path is or was a file."""
        return path.is_file() or path in self._pending or self._folder.external_id(path) in self._synced

    def _await(self, path: Path, signature: Signature | None) -> None:
        self._pending.setdefault(path, _Seen(signature, self._clock()))

    def _is_away(self) -> bool:
        away = not self._folder.is_there()
        if away:
            self._tell(
                "The folder is not the one it was at the start (moved, replaced, or no longer mounted): nothing is "
                "removed for it. Start again when it is back."
            )
        return away

    def _report(self, unreadable: Unreadable) -> None:
        if f"{unreadable.name} {unreadable.reason}" not in self._told:
            self._told.add(f"{unreadable.name} {unreadable.reason}")
            self._mirror.give_up(unreadable)

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)


def follow(
    follower: Follower,
    mirror: Mirror,
    changes: Iterable[AbstractSet[Path]],
    *,
    rescan_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Uploads changes until the stream ends, with a rescan at the start and every `rescan_s` seconds.

    Raises:
        Refused: The server is unwilling (a revoked key, a deleted collection).
    """
    due = clock()  # the first rescan comes when changes are being watched already, so that none falls between
    for paths in changes:
        follower.touch(paths)
        if clock() >= due:
            follower.rescan()
            due = clock() + rescan_s
        follower.tick()
        if mirror.in_flight:
            mirror.poll()
