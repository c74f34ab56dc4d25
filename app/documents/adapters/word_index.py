"""The keyword index of a running server: the database's own for small installations, a Tantivy index for large ones."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.lexical import LexicalEntryRepository
from app.db.session import Database
from app.documents.index_ports import Differences, IndexRows, seen_twice
from app.telemetry.logs import logger
from retrieval.errors import IndexCorrupt
from retrieval.index_file import quarantine
from retrieval.ports import Keys
from retrieval.types import Scope

if TYPE_CHECKING:
    from retrieval.tantivy_index import TantivyIndex

LexicalEngine = Literal["auto", "sql", "tantivy"]

_COMMITS_SHARE = 10  # a commit waits until this many times its own duration has passed since the last
_NO_KEYS: Keys = np.empty(0, np.int64)
_CATCHING_UP = 1_000  # chunks; fewer differences are repaired while writers wait


class WordIndex:
    """Implements `WordStore` with the database's own full-text index, or with a Tantivy index once it is ready.

    A thread opens, repairs or builds the Tantivy index, which answers searches once it holds all visible chunks.
    When it fails, the database's index answers until the next start.

    Example:
        >>> index = WordIndex(folder, database=database, chunks=chunks)
        >>> index.start()
        >>> index.search_text("notice period", scope=Scope(tenant_id="acme"), k=10)
    """

    def __init__(
        self,
        folder: Path,
        *,
        database: Database,
        chunks: ChunkRepository,
        engine: LexicalEngine = "auto",
        large: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it; `start` opens the Tantivy index.

        Args:
            folder: Of the Tantivy index.
            database: Migrated.
            chunks: The chunks of `database`.
            engine: Which index answers; `auto` chooses by the number of chunks.
            large: Visible chunks from which on `auto` chooses Tantivy. `None` is 50,000 on SQLite and 1 on
                PostgreSQL, which takes several times as long.
            clock: Seconds, to limit the rate of commits.
        """
        self._folder = folder
        self._chunks = chunks
        self._entries = LexicalEntryRepository(database)
        self._engine = engine
        self._large = self._entries.large if large is None else large
        self._clock = clock
        self._changes = threading.RLock()
        self._index: TantivyIndex | None = None
        self._opening: threading.Thread | None = None
        self._stop = threading.Event()
        self._dirty = False
        self._next_commit = 0.0

    @property
    def serving(self) -> Literal["sql", "tantivy"]:
        """Which index answers now."""
        return "sql" if self._index is None else "tantivy"

    def start(self) -> None:
        """Open or build the Tantivy index in the background, if the installation is large enough."""
        with self._changes:
            if self._opening is None and not self._stop.is_set() and self._is_wanted():
                self._opening = threading.Thread(target=self._open, name="lexical-index", daemon=True)
                self._opening.start()

    def wait(self) -> None:
        """Wait for the thread that `start` began."""
        if self._opening is not None:
            self._opening.join()

    def close(self) -> None:
        """Save changes and close the Tantivy index; the database's index answers from here on."""
        self._stop.set()
        self.wait()
        with self._changes:
            self.save_if_changed()
            if self._index is not None:
                index, self._index = self._index, None
                index.close()

    def search_text(self, query: str, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """At most `k` (key, score) best first, scope applied inside. Any text is a valid query.

        Scores are BM25, with document frequencies of the searched collections. A hit may be a chunk that was deleted a
        moment ago; the caller reads hits from SQL, which leaves it out.
        """
        index = self._index
        if index is not None:
            by_document = scope.document_ids is not None or scope.filter is not None
            allowed = self._chunks.keys_in(scope) if by_document else None
            try:
                return index.search(
                    query, tenant_id=scope.tenant_id, collection_ids=scope.collection_ids, allowed=allowed, k=k
                )
            except (OSError, ValueError) as error:
                self._give_up(error)
        return self._chunks.search_text(query, scope=scope, k=k)

    def stage(self, rows: Sequence[IndexRows]) -> None:
        """Nothing: the chunks are read from SQL after their commit."""

    def write_in(self, connection: sa.Connection, rows: IndexRows) -> None:
        """Nothing: SQL keeps its own full-text rows, and the Tantivy index follows the commit."""

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        """Nothing, as above."""

    def publish(self, rows: Sequence[IndexRows]) -> None:
        """Add the chunks of versions that were just committed."""
        if rows:
            self.add(np.concatenate([each.keys for each in rows]))

    def repair(self, *, only_tell: bool = False, pause: Callable[[float], None] = time.sleep) -> Differences:
        """Compare the Tantivy index with SQL twice, and mend it unless `only_tell`; without one there is no difference.

        A consistency check compares the database's own full-text rows.
        """
        missing, surplus = seen_twice(self._look, pause)
        if not only_tell and (len(missing) or len(surplus)):
            with self._changes:
                if self._index is not None:
                    try:
                        self._mend(self._index)
                    except (OSError, ValueError) as error:
                        self._give_up(error)
        return Differences(len(missing), len(surplus))

    def rest(self) -> None:
        """Commit pending changes."""
        self.save_if_changed()

    def add(self, keys: Keys) -> None:
        """Add chunks that were just committed; searches find them at once, or within moments while many are added."""
        with self._changes:
            if self._index is None:
                self.start()
                return
            try:
                self._index.remove(keys)  # the repairing thread may have added them already
                for entries in self._entries.entries(keys.tolist()):
                    self._index.add(entries)
            except (OSError, ValueError) as error:
                self._give_up(error)
                return
            self._dirty = True
            if self._clock() >= self._next_commit:
                self.save_if_changed()

    def forget(self, keys: Keys) -> None:
        """Remove deleted chunks at once."""
        with self._changes:
            if self._index is not None and len(keys):
                try:
                    self._index.remove(keys)
                except (OSError, ValueError) as error:
                    self._give_up(error)
                    return
                self._dirty = True
                self.save_if_changed()

    def save_if_changed(self) -> bool:
        """Commit pending changes; returns whether there were any."""
        with self._changes:
            if self._index is None or not self._dirty:
                return False
            began = self._clock()
            try:
                self._index.commit()
            except (OSError, ValueError) as error:
                self._give_up(error)
                return False
            ended = self._clock()
            self._next_commit = ended + _COMMITS_SHARE * (ended - began)
            self._dirty = False
            return True

    def _is_wanted(self) -> bool:
        match self._engine:
            case "sql":
                return False
            case "tantivy":
                return True
            case "auto":
                return self._entries.count() >= self._large

    def _open(self) -> None:
        try:
            index = self._loaded()
            before, now = math.inf, self._differences(index)
            while _CATCHING_UP < now < before and not self._stop.is_set():
                self._mend(index)
                before, now = now, self._differences(index)
            with self._changes:
                self._mend(index)
                if self._stop.is_set():
                    index.close()
                else:
                    self._index = index
                    logger().info("lexical.ready", chunks=len(index))
        except Exception as error:  # noqa: BLE001 - the database's index keeps answering
            logger().error("lexical.failed", error=type(error).__name__, exc_info=error)

    def _loaded(self) -> "TantivyIndex":
        from retrieval.tantivy_index import TantivyIndex

        if self._folder.exists():
            try:
                index = TantivyIndex.open(self._folder)
                held = index.keys()
                if not len(held) or int(held[-1]) < self._entries.next_key():
                    return index
                index.close()
                reason = "It holds keys the database never gave."  # a database restored from a backup
            except IndexCorrupt as error:
                reason = str(error)
            quarantine(self._folder)
            logger().warning("lexical.quarantined", reason=reason)
        return TantivyIndex.create(self._folder)

    def _look(self) -> tuple[Keys, Keys]:
        with self._changes:
            self.save_if_changed()  # the index says only committed keys
            if self._index is None:
                return _NO_KEYS, _NO_KEYS
            held = self._index.keys()
        wanted = self._chunks.visible_keys()
        return np.setdiff1d(wanted, held, assume_unique=True), np.setdiff1d(held, wanted, assume_unique=True)

    def _differences(self, index: "TantivyIndex") -> int:
        return len(np.setxor1d(index.keys(), self._chunks.visible_keys(), assume_unique=True))

    def _mend(self, index: "TantivyIndex") -> None:
        held, wanted = index.keys(), self._chunks.visible_keys()
        surplus = np.setdiff1d(held, wanted, assume_unique=True)
        missing = np.setdiff1d(wanted, held, assume_unique=True)
        if not len(surplus) and not len(missing):
            return
        index.remove(surplus)
        for entries in self._entries.entries(missing.tolist()):
            if self._stop.is_set():
                break
            index.add(entries)
        index.commit()
        logger().info("lexical.reconciled", added=len(missing), removed=len(surplus))

    def _give_up(self, error: Exception) -> None:
        """Stop using the Tantivy index after an error; the database's index answers until the next start."""
        with self._changes:
            if self._index is not None:
                self._index = None
                logger().error("lexical.given_up", error=type(error).__name__, exc_info=error)
