"""What a caller may see, as conditions on `document` and `chunk`."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import sqlalchemy as sa

from app.db.filters import compile_filter
from app.db.session import Database
from app.db.tables.documents import chunk, document, document_version, key_counter
from retrieval.key_set import KeySet
from retrieval.ports import Keys
from retrieval.types import Scope


def documents_in(scope: Scope, connection: sa.Connection) -> list[sa.ColumnElement[bool]]:
    """The documents in scope, visible or not."""
    conditions: list[sa.ColumnElement[bool]] = [document.c.tenant_id == scope.tenant_id]
    if scope.collection_ids is not None:
        conditions.append(document.c.collection_id.in_(scope.collection_ids))
    if scope.document_ids is not None:
        conditions.append(document.c.id.in_(scope.document_ids))
    if scope.filter is not None:
        conditions.append(compile_filter(scope.filter, connection))
    return conditions


def is_live() -> sa.ColumnElement[bool]:
    """A chunk is visible when it belongs to the live version of its document."""
    return sa.and_(chunk.c.document_id == document.c.id, chunk.c.version == document.c.live_version)


_MOST_KEYS = 16_000_000  # remembered over all scopes: 128 MB, and an eighth more for their bitmaps
_MOST_SCOPES = 1024

_NEXT_KEY = sa.select(key_counter.c.next_key).where(key_counter.c.name == "chunk")

_Name: TypeAlias = tuple[str, frozenset[str] | None]


@dataclass(frozen=True, slots=True)
class _Known:
    """The keys in a scope below `next_key`."""

    next_key: int
    keys: KeySet


class ScopeKeys:
    """The visible keys of a scope. Safe to call from several threads.

    Keys rise and are taken in the very transaction that makes their chunks visible, so one counter
    tells whether a remembered scope lacks any, and where they begin: a new document is seen at once
    and costs its own chunks alone. A deleted document's keys may stay until `forget`, which costs
    room in a search and shows nothing: every hit is read from SQL again. Scopes with documents or a
    filter are asked of SQL each time. Memory is bounded; the scope unused longest goes first.
    """

    def __init__(self, database: Database, *, most_keys: int = _MOST_KEYS) -> None:
        self._database = database
        self._most_keys = most_keys
        self._known: OrderedDict[_Name, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, scope: Scope) -> KeySet:
        """Keys of the visible chunks in scope."""
        with self._database.read() as connection:
            if scope.document_ids is not None or scope.filter is not None:
                return _all_keys(connection, documents_in(scope, connection))
            name = scope.tenant_id, None if scope.collection_ids is None else frozenset(scope.collection_ids)
            with self._lock:
                known = self._known.get(name)
                if known is not None:
                    self._known.move_to_end(name)
            next_key = connection.execute(_NEXT_KEY).scalar_one()
            if known is not None and known.next_key == next_key:
                return known.keys
            conditions = documents_in(scope, connection)
            if known is None or known.next_key > next_key:
                keys = _all_keys(connection, conditions)
            else:
                keys = known.keys.plus(_keys_from(connection, conditions, first=known.next_key))
        self._remember(name, _Known(next_key, keys))
        return keys

    def visible(self) -> KeySet:
        """Keys of the visible chunks of all tenants."""
        with self._database.read() as connection:
            return _all_keys(connection, [])

    def forget(self, keys: Keys) -> None:
        """Drop keys whose chunks are gone."""
        with self._lock:
            for name, known in self._known.items():
                self._known[name] = _Known(known.next_key, known.keys.minus(keys))

    def held(self) -> int:
        """How many keys are remembered over all scopes."""
        with self._lock:
            return sum(len(known.keys) for known in self._known.values())

    def _remember(self, name: _Name, found: _Known) -> None:
        with self._lock:
            known = self._known.get(name)
            if known is not None and known.next_key > found.next_key:
                return  # another search has read a later moment
            self._known[name] = found
            self._known.move_to_end(name)
            total = sum(len(each.keys) for each in self._known.values())
            while self._known and (total > self._most_keys or len(self._known) > _MOST_SCOPES):
                total -= len(self._known.popitem(last=False)[1].keys)


def _all_keys(connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]) -> KeySet:
    # a version's keys follow each other, so one row a document says them all
    rows = connection.execute(
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
    ).all()
    # not np.array(rows): numpy probes every row object, ten times slower than reading the query
    runs = np.fromiter((number for row in rows for number in row), dtype=np.int64).reshape(-1, 2)
    return KeySet.of_runs(runs[:, 0], runs[:, 1])


def _keys_from(connection: sa.Connection, conditions: list[sa.ColumnElement[bool]], *, first: int) -> Keys:
    # EXISTS and not a join: the few new chunks are read by their keys, and each looks its document up
    visible = sa.exists().where(is_live(), *conditions).correlate(chunk)
    found = connection.execute(sa.select(chunk.c.key).where(chunk.c.key >= first, visible)).scalars()
    return np.fromiter(found, dtype=np.int64)
