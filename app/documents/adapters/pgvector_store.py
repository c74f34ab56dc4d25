"""Vectors in PostgreSQL with pgvector: written and deleted in the transaction that shows or deletes their chunks."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from cachetools import TTLCache
from sqlalchemy import exc

from app.db.chunks import ChunkRepository
from app.db.scopes import documents_in, is_live
from app.db.session import Database
from app.db.tables.documents import chunk, chunk_vector, document
from app.documents.adapters.pgvector_table import PARTITIONS, VECTOR, VectorTable, packed_vector, packs
from app.documents.index_ports import Differences, IndexRows
from app.errors import AppError
from app.telemetry.logs import logger
from retrieval.ports import Keys, Vectors
from retrieval.types import EmbedderInfo, Scope

EXACT_UP_TO = 20_000
"""Chunks in scope up to which every vector is compared and none is missed; it takes 30 ms by then (ADR 0103)."""

_FILLED_AT_ONCE = 2_000  # rows in one transaction
_COUNTED = 100_000  # rows that are counted one by one; of more the planner's estimate is given
_LEAST_EF, _MOST_EF = 200, 1000  # candidates that an index keeps; pgvector takes no more
_MOST_SCANNED = "200000"  # rows that an index offers before it gives up
_SIZE_SECONDS = 60.0  # a scope that has just grown is searched exactly, and so slower, for so long
_MOST_SIZES = 4096

# Only for the transaction of one search. Without an iterative scan a small tenant finds nothing beside a large one. A
# statement that the driver has prepared would get a plan that does not know the tenant. Without sorts the index gives
# the order wherever there is one. Settings of an extension may be made before it is loaded.
_SETTINGS = sa.text(
    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_sort', 'off', true), "
    "set_config('jit', 'off', true), set_config('hnsw.iterative_scan', 'strict_order', true), "
    "set_config('hnsw.max_scan_tuples', :scanned, true), set_config('hnsw.ef_search', :ef, true)"
)
_ESTIMATE = sa.text(
    "SELECT sum(greatest(c.reltuples, 0)) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = CAST(:name AS regclass)"
)
_QUERY = sa.cast(sa.bindparam("query"), VECTOR)
_ANY_KEY = sa.any_(sa.cast(sa.bindparam("keys"), sa.ARRAY(sa.BigInteger)))
_MOST = sa.bindparam("most", type_=sa.Integer)


class PgVectors:
    """Implements `VectorStore`: a table beside SQL's own, equal to what SQL shows at every commit.

    The scope is a predicate, and this store chooses the plan: up to `exact_up_to` chunks in scope every vector is
    compared, with more an HNSW index gives the nearest, where its partition has one, and where that finds fewer than
    asked for, every vector is compared after all. Scores are those of the stored vectors and the question's as given.

    Example:
        >>> store = PgVectors(database, embedder=embedder.info, generation=1, chunks=chunks)
        >>> hits = store.search_vector(query, scope=Scope(tenant_id="acme"), k=10)
    """

    def __init__(
        self,
        database: Database,
        *,
        embedder: EmbedderInfo,
        generation: int,
        chunks: ChunkRepository,
        exact_up_to: int = EXACT_UP_TO,
        partitions: int = PARTITIONS,
    ) -> None:
        """Make the generation's table where it is missing, and make it equal to SQL.

        Raises:
            StoreUnavailable, StorageFull: The table is not equal to SQL.
        """
        self._database = database
        self._generation = generation
        self._chunks = chunks
        self._exact_up_to = exact_up_to
        self._table = table = VectorTable(generation, dim=embedder.dim, partitions=partitions)
        self._rows = table.rows
        tenant = self._rows.c.tenant_id == sa.bindparam("tenant")
        some = self._rows.c.collection_id.in_(sa.bindparam("collections", expanding=True))
        self._of_tenant, self._of_collections = _Plans(table, tenant), _Plans(table, tenant, some)
        self._large: TTLCache[tuple[str, frozenset[str] | None], bool] = TTLCache(_MOST_SIZES, ttl=_SIZE_SECONDS)
        self._lock = threading.Lock()  # guards the cache and the two fields below
        self._grown: set[str] = set()  # tenants whose partition has its index
        self._written: set[str] = set()  # tenants that may need one now
        table.create(database)
        self.reconcile()
        with database.read() as connection:
            partitions_to_index = table.large_partitions(connection, above=exact_up_to)
        for partition in partitions_to_index:
            self._index(partition)

    @property
    def generation(self) -> int:
        """The embedder generation of the vectors."""
        return self._generation

    def __len__(self) -> int:
        """The number of vectors; above a hundred thousand PostgreSQL's estimate of it."""
        some = sa.select(sa.literal(1)).select_from(self._rows).limit(_COUNTED + 1).subquery()
        with self._database.read() as connection:
            counted = int(connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one())
            if counted <= _COUNTED:
                return counted
            return max(counted, int(connection.execute(_ESTIMATE, {"name": self._table.name}).scalar() or 0))

    def search_vector(self, vector: Vectors, *, scope: Scope, k: int) -> list[tuple[int, float]]:
        """At most `k` (key, cosine) best first, ties by key ascending; the scope is applied inside."""
        values = {"tenant": scope.tenant_id, "query": packed_vector(vector), "most": k}
        if scope.collection_ids is not None:
            values["collections"] = list(scope.collection_ids)
        with self._database.read() as connection:
            packs(connection).execute(
                _SETTINGS, {"ef": str(min(_MOST_EF, max(_LEAST_EF, 2 * k))), "scanned": _MOST_SCANNED}
            )
            plans = self._plans(connection, scope)
            if self._is_large(connection, scope, plans, values):
                found = connection.execute(plans.nearest, values).all()
                if len(found) == k:
                    return _hits(found)
            return _hits(connection.execute(plans.exact, values).all())

    def stage(self, rows: Sequence[IndexRows]) -> None:
        """Nothing: the rows are written in the transaction."""

    def write_in(self, connection: sa.Connection, rows: IndexRows) -> None:
        """Insert the vectors, rounded to float16 as in SQL."""
        count = len(rows.keys)
        if count:
            self._table.insert(
                connection,
                rows.keys,
                rows.vectors.astype(np.float16),
                tenants=[rows.tenant_id] * count,
                collections=[rows.collection_id] * count,
                documents=[rows.document_id] * count,
            )

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        """Delete the vectors of deleted chunks."""
        connection.execute(sa.delete(self._rows).where(self._rows.c.key == _ANY_KEY), {"keys": keys.tolist()})

    def publish(self, rows: Sequence[IndexRows]) -> None:
        """Note who may need an index now; the vectors are there since the commit."""
        with self._lock:
            self._written |= {each.tenant_id for each in rows} - self._grown

    def forget(self, keys: Keys) -> None:
        """Remove deleted chunks from the caches of chunks; their vectors are gone since the commit."""
        self._chunks.forget(keys)

    def repair(
        self,
        *,
        only_tell: bool = False,
        pause: Callable[[float], None] = time.sleep,  # noqa: ARG002 - one snapshot needs no second look
    ) -> Differences:
        """Compare with SQL in one snapshot, and repair unless `only_tell`."""
        with self._database.read() as connection:
            missing, surplus = (
                int(connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one())
                for query in (self._missing(), self._surplus())
            )
        if not only_tell and (missing or surplus):
            self.reconcile()
        return Differences(missing, surplus)

    def reconcile(self) -> None:
        """Insert the vectors of visible chunks that are missing, and delete the others, in small transactions."""
        surplus = self._surplus().subquery()
        with self._database.write() as connection:
            gone = sa.delete(self._rows).where(self._rows.c.key.in_(sa.select(surplus.c.key)))
            removed = connection.execute(gone).rowcount
        with self._database.read() as connection:  # compared once: each comparison reads all chunks
            missing = np.sort(np.fromiter(connection.execute(self._missing()).scalars(), np.int64))
        parts = range(0, len(missing), _FILLED_AT_ONCE)
        added = sum(self._fill(missing[start : start + _FILLED_AT_ONCE]) for start in parts)
        if added or removed:
            logger().info("index.reconciled", added=added, removed=removed)

    def rest(self) -> None:
        """Build the HNSW index of a partition where a tenant has outgrown exact search."""
        with self._lock:
            tenants, self._written = self._written, set()
        for tenant_id in sorted(tenants):
            with self._database.read() as connection:
                partition = self._table.partition_of(connection, tenant_id, above=self._exact_up_to)
            if partition is not None and self._index(partition):
                with self._lock:
                    self._grown.add(tenant_id)

    def close(self) -> None:
        """Nothing: the database is others' too."""

    def _plans(self, connection: sa.Connection, scope: Scope) -> "_Plans":
        if scope.document_ids is None and scope.filter is None:
            return self._of_tenant if scope.collection_ids is None else self._of_collections
        here = sa.exists().where(document.c.id == self._rows.c.document_id, *documents_in(scope, connection))
        return _Plans(self._table, self._rows.c.tenant_id == sa.bindparam("tenant"), here.correlate(self._rows))

    def _is_large(self, connection: sa.Connection, scope: Scope, plans: "_Plans", values: dict[str, Any]) -> bool:
        """Whether the scope has more chunks than are searched exactly. Whole collections are asked once a minute."""
        whole = self._of_tenant if scope.collection_ids is None else self._of_collections
        name = scope.tenant_id, None if scope.collection_ids is None else frozenset(scope.collection_ids)
        with self._lock:
            large = self._large.get(name)
        if large is None:
            large = self._has_more(connection, whole, values)
            with self._lock:
                self._large[name] = large
        return large and (plans is whole or self._has_more(connection, plans, values))

    def _has_more(self, connection: sa.Connection, plans: "_Plans", values: dict[str, Any]) -> bool:
        counted = connection.execute(plans.counted, {**values, "most": self._exact_up_to + 1}).scalar_one()
        return int(counted) > self._exact_up_to

    def _visible(self) -> sa.Select[Any]:
        """Keys of the visible chunks with a vector of this generation."""
        its = sa.and_(chunk_vector.c.key == chunk.c.key, chunk_vector.c.generation == self._generation)
        return sa.select(chunk.c.key).select_from(chunk).join(document, is_live()).join(chunk_vector, its)

    def _missing(self) -> sa.Select[Any]:
        """Those of them that have no row here."""
        here = sa.exists().where(self._rows.c.key == chunk.c.key, self._rows.c.tenant_id == document.c.tenant_id)
        return self._visible().where(~here.correlate(chunk, document))

    def _surplus(self) -> sa.Select[Any]:
        """Keys of the rows here without a visible chunk of their document."""
        shown = sa.exists().where(
            chunk.c.key == self._rows.c.key, chunk.c.document_id == self._rows.c.document_id, is_live()
        )
        return sa.select(self._rows.c.key).where(~shown.correlate(self._rows))

    def _fill(self, keys: Keys) -> int:
        """Insert the vectors of those chunks that are visible still; returns their number."""
        given = {"keys": keys.tolist()}
        of_these = document.c.id.in_(sa.select(chunk.c.document_id).where(chunk.c.key == _ANY_KEY))
        columns = document.c.id, document.c.tenant_id, document.c.collection_id, chunk_vector.c.vector
        wanted = self._visible().add_columns(*columns).where(chunk.c.key == _ANY_KEY)
        with self._database.write() as connection:
            # deletions lock the document first; then its chunks are either gone, or stay until this is written
            connection.execute(
                sa.select(document.c.id).where(of_these).order_by(document.c.id).with_for_update(), given
            )
            rows = connection.execute(wanted, given).all()
            if rows:
                halves = np.frombuffer(b"".join(bytes(row.vector) for row in rows), dtype="<f2")
                self._table.insert(
                    connection,
                    np.array([row.key for row in rows], np.int64),
                    halves.reshape(len(rows), -1),
                    tenants=[row.tenant_id for row in rows],
                    collections=[row.collection_id for row in rows],
                    documents=[row.id for row in rows],
                )
        return len(rows)

    def _index(self, partition: str) -> bool:
        """Build an index where it is missing; False where it failed, and searches go on without it."""
        began = time.monotonic()
        try:
            if self._table.index(self._database, partition):
                logger().info("index.built", partition=partition, seconds=round(time.monotonic() - began, 1))
            return True
        except (AppError, exc.DBAPIError) as error:
            logger().warning("index.not_built", partition=partition, error=str(error))
            return False


class PgVectorStores:
    """Implements `VectorStores`: a table of the database for each generation.

    Example:
        >>> stores = PgVectorStores(database, chunks=chunks)
        >>> store = stores.open(1, embedder.info)
    """

    def __init__(self, database: Database, *, chunks: ChunkRepository) -> None:
        self._database = database
        self._chunks = chunks

    def open(self, generation: int, embedder: EmbedderInfo) -> PgVectors:
        """The table of a generation, filled from SQL where that is not done.

        Raises:
            StoreUnavailable, StorageFull: The table is not equal to SQL.
        """
        return PgVectors(self._database, embedder=embedder, generation=generation, chunks=self._chunks)

    def drop(self, generation: int) -> None:
        """Drop a generation's table, if there is one."""
        with self._database.write() as connection:
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {VectorTable(generation, dim=1).name}")


class _Plans:
    """The statements of a search under conditions: `nearest` by an index, `exact`, and `counted` up to `most`."""

    def __init__(self, table: VectorTable, *conditions: sa.ColumnElement[bool]) -> None:
        rows = table.rows
        whole = sa.cast(rows.c.v, VECTOR)  # as float32, so that the question is not rounded to float16
        distance: sa.Label[float] = whole.op("<#>", return_type=sa.Double())(_QUERY).label("distance")
        everything = sa.select(rows.c.key, distance).where(*conditions).cte("everything").prefix_with("MATERIALIZED")
        self.exact = _best(everything)
        by_index = rows.c.v.op("<#>")(sa.cast(_QUERY, table.halfvec))
        near = sa.select(rows.c.key, distance).where(*conditions).order_by(by_index).limit(_MOST).cte("near")
        self.nearest = _best(near)
        some = sa.select(sa.literal(1)).select_from(rows).where(*conditions).limit(_MOST).subquery()
        self.counted = sa.select(sa.func.count()).select_from(some)


def _best(found: sa.CTE) -> sa.Select[Any]:
    return sa.select(found.c.key, -found.c.distance).order_by(found.c.distance, found.c.key).limit(_MOST)


def _hits(rows: Sequence[Any]) -> list[tuple[int, float]]:
    return [(int(key), float(score)) for key, score in rows]
