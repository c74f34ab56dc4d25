"""Scopes of a search as SQL conditions, and a cache of the chunk keys in each scope."""

import threading
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa
from cachetools import LRUCache

from app.db.filters import compile_filter
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version, job, key_counter
from app.types import JobStatus
from retrieval.key_set import KeySet
from retrieval.ports import Keys
from retrieval.types import Scope


def documents_in(scope: Scope, connection: sa.Connection) -> list[sa.ColumnElement[bool]]:
    """Conditions on `document` for the documents in scope, indexed or not."""
    conditions: list[sa.ColumnElement[bool]] = [document.c.tenant_id == scope.tenant_id]
    if scope.collection_ids is not None:
        conditions.append(document.c.collection_id.in_(scope.collection_ids))
    if scope.document_ids is not None:
        conditions.append(document.c.id.in_(scope.document_ids))
    if scope.filter is not None:
        conditions.append(compile_filter(scope.filter, connection))
    return conditions


def is_live() -> sa.ColumnElement[bool]:
    """The condition that a chunk is visible: that it belongs to the live version of its document."""
    return sa.and_(chunk.c.document_id == document.c.id, chunk.c.version == document.c.live_version)


_MOST_KEYS = 16_000_000  # cached over all scopes: 128 MB, and an eighth more for their bitmaps
_MOST_SCOPES = 1024

NEXT_KEY = sa.select(key_counter.c.next_key).where(key_counter.c.name == "chunk")
"""The next key that a job will take for a chunk."""

_TAKEN = (
    sa.select(sa.func.count(job.c.first_key).label("jobs"), sa.func.min(job.c.first_key).label("first"))
    .where(job.c.status == JobStatus.RUNNING, job.c.first_key.is_not(None))
    .subquery("taken")
)
_MARKS = (
    sa.select(key_counter.c.next_key, _TAKEN.c.jobs, sa.func.coalesce(_TAKEN.c.first, key_counter.c.next_key))
    .select_from(key_counter.join(_TAKEN, sa.true()))
    .where(key_counter.c.name == "chunk")
)

_Name: TypeAlias = tuple[str, frozenset[str] | None]


@dataclass(frozen=True, slots=True)
class KeyMarks:
    """How far chunk keys are given and shown, in one snapshot: as long as they are equal, no chunk became visible.

    Jobs take keys before the commit that shows their chunks. `given` is the next key, `taken` the number of running
    jobs that have taken theirs. A key below `settled` is shown, or never will be.
    """

    given: int
    taken: int
    settled: int

    @classmethod
    def read(cls, connection: sa.Connection) -> "KeyMarks":
        """The marks in a transaction's snapshot."""
        return cls(*connection.execute(_MARKS).one())

    def is_later(self, other: "KeyMarks") -> bool:
        """Whether they were read later, where they differ: jobs take keys by raising `given`."""
        return (self.given, -self.taken) > (other.given, -other.taken)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A cache entry: the keys in a scope that were visible at these marks."""

    marks: KeyMarks
    keys: KeySet


class ScopeKeys:
    """A cache of the visible chunk keys by scope. Safe to call from several threads.

    Keys increase, and a running job notes those it took until its chunks are visible. So `KeyMarks` show whether a
    cached scope lacks keys, and from which on they are read. Keys of a deleted document may stay until `forget`;
    no search shows them, since every hit is read from SQL. Scopes with documents or a filter are not cached. The cache
    is bounded and evicts the least recently used scope; a scope with more keys than it may hold is not cached.

    Example:
        >>> ScopeKeys(database).of(Scope(tenant_id="acme", collection_ids=("col_1",)))
    """

    def __init__(self, database: Database, *, most_keys: int = _MOST_KEYS) -> None:
        self._database = database
        self._entries: LRUCache[_Name, _Entry] = LRUCache(most_keys, getsizeof=lambda entry: len(entry.keys))
        self._lock = threading.Lock()

    def of(self, scope: Scope) -> KeySet:
        """Keys of the visible chunks in scope."""
        with self._database.read() as connection:
            return self.of_in(connection, scope)

    def of_in(self, connection: sa.Connection, scope: Scope) -> KeySet:
        """As `of`, in the caller's transaction."""
        if scope.document_ids is not None or scope.filter is not None:
            return all_keys(connection, documents_in(scope, connection))
        name = _name_of(scope)
        with self._lock:
            known = self._entries.get(name)
        marks = KeyMarks.read(connection)
        if known is not None and known.marks == marks:
            return known.keys
        conditions = documents_in(scope, connection)
        if known is None or known.marks.given > marks.given:
            keys = all_keys(connection, conditions)
        else:
            keys = known.keys.plus(_keys_from(connection, conditions, first=known.marks.settled))
        self._store(name, _Entry(marks, keys))
        return keys

    def holds(self, scope: Scope) -> bool:
        """Whether there are keys in scope; ends at the first that is found, in the cache where it is there."""
        if scope.document_ids is None and scope.filter is None:
            with self._lock:
                known = self._entries.get(_name_of(scope))
            return (known is not None and len(known.keys) > 0) or len(self.of(scope)) > 0
        with self._database.read() as connection:
            return connection.execute(_runs(documents_in(scope, connection)).limit(1)).first() is not None

    def visible(self) -> KeySet:
        """Keys of the visible chunks of all tenants."""
        with self._database.read() as connection:
            return all_keys(connection, [])

    def forget(self, keys: Keys) -> None:
        """Remove the keys of deleted chunks."""
        with self._lock:
            entries = [self._entries.popitem() for _ in range(len(self._entries))]
            for name, known in entries:  # the least recently used first, so that their order stays
                self._entries[name] = _Entry(known.marks, known.keys.minus(keys))

    def held(self) -> int:
        """The number of keys cached over all scopes."""
        with self._lock:
            return int(self._entries.currsize)

    def _store(self, name: _Name, found: _Entry) -> None:
        with self._lock:
            known = self._entries.get(name)
            if known is not None and known.marks.is_later(found.marks):
                return  # another thread has read a later state
            if len(found.keys) > self._entries.maxsize:
                self._entries.pop(name, None)
                return
            self._entries[name] = found
            if len(self._entries) > _MOST_SCOPES:
                self._entries.popitem()


def _name_of(scope: Scope) -> _Name:
    return scope.tenant_id, None if scope.collection_ids is None else frozenset(scope.collection_ids)


def all_keys(connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]) -> KeySet:
    """Keys of the visible chunks of the documents that meet conditions."""
    # the keys of a version are consecutive, so one row per document is enough
    rows = connection.execute(_runs(conditions)).all()
    # not np.array(rows): numpy probes every row object, ten times slower than reading the query
    runs = np.fromiter((number for row in rows for number in row), dtype=np.int64).reshape(-1, 2)
    return KeySet.of_runs(runs[:, 0], runs[:, 1])


def _runs(conditions: list[sa.ColumnElement[bool]]) -> sa.Select[tuple[int, int]]:
    return (
        sa.select(document_version.c.first_key, document_version.c.chunk_count)
        .select_from(document)
        .join(
            document_version,
            sa.and_(
                document_version.c.document_id == document.c.id,
                document_version.c.version == document.c.live_version,
            ),
        )
        .where(document_version.c.chunk_count > 0, *conditions)
    )


def _keys_from(connection: sa.Connection, conditions: list[sa.ColumnElement[bool]], *, first: int) -> Keys:
    # EXISTS and not a join: the few new chunks are read by key, each with a look-up of its document
    visible = sa.exists().where(is_live(), *conditions).correlate(chunk)
    found = connection.execute(sa.select(chunk.c.key).where(chunk.c.key >= first, visible)).scalars()
    return np.fromiter(found, dtype=np.int64)
