"""The table of one generation's vectors in PostgreSQL with pgvector: its definition, its rows and its HNSW indexes."""

import struct
from typing import Any

import numpy as np
import sqlalchemy as sa
from psycopg.adapt import Dumper
from psycopg.pq import Format

from app.db.dialect import lock_number
from app.db.published_rows import Halves
from app.db.session import Database
from retrieval.ports import Keys, Vectors

PARTITIONS = 16
"""Tables by hash of the tenant. A deletion looks into each, a search into one."""

_MOST_INDEXED = 4000  # dimensions of a halfvec that HNSW takes
_TRY_LOCK = sa.text("SELECT pg_try_advisory_lock(:number)")
_UNLOCK = sa.text("SELECT pg_advisory_unlock(:number)")
_HNSW = sa.text(
    "SELECT CAST(i.indexrelid AS regclass)::text AS name, i.indisvalid AS valid FROM pg_index i "
    "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam "
    "WHERE i.indrelid = CAST(:partition AS regclass) AND m.amname = 'hnsw'"
)


class _PgType(sa.types.UserDefinedType[Any]):
    """A type of pgvector."""

    cache_ok = True

    def __init__(self, spec: str) -> None:
        self.spec = spec

    def get_col_spec(self, **_: object) -> str:
        """As in DDL and casts."""
        return self.spec


VECTOR = _PgType("vector")


class Packed:
    """A parameter in the binary form that PostgreSQL receives; a cast in the statement names its type."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj.data


def packs(connection: sa.Connection) -> sa.Connection:
    """The connection, which takes `Packed` parameters from here on."""
    driver: Any = connection.connection.driver_connection
    driver.adapters.register_dumper(Packed, _PackedDumper)
    return connection


def packed_vector(vector: Vectors) -> Packed:
    """A `(dim,)` vector as a `vector`: dimensions, two unused bytes, float32 (`vector_recv` of pgvector)."""
    return Packed(struct.pack(">hh", len(vector), 0) + vector.astype(">f4").tobytes())


class VectorTable:
    """Vectors of one generation in `chunk_vector_gN`, as halfvec: a row for each chunk that searches find.

    Example:
        >>> table = VectorTable(1, dim=384)
        >>> table.create(database)
    """

    def __init__(self, generation: int, *, dim: int, partitions: int = PARTITIONS) -> None:
        self.name = f"chunk_vector_g{generation}"
        self.dim = dim
        self.halfvec = _PgType(f"halfvec({dim})")
        self.rows = sa.Table(
            self.name,
            sa.MetaData(),
            sa.Column("key", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("tenant_id", sa.Text, primary_key=True),
            sa.Column("collection_id", sa.Text, nullable=False),
            sa.Column("document_id", sa.Text, nullable=False),
            sa.Column("v", self.halfvec, nullable=False),
            sa.Index(f"ix_{self.name}_scope", "tenant_id", "collection_id"),
            sa.Index(f"ix_{self.name}_document", "document_id"),
            postgresql_partition_by="HASH (tenant_id)",
        )
        self._partitions = partitions
        self._number = lock_number(self.name)
        self._insert = sa.text(
            f"INSERT INTO {self.name} (key, tenant_id, collection_id, document_id, v) "  # noqa: S608 - a fixed name
            "SELECT * FROM unnest(CAST(:keys AS bigint[]), CAST(:tenants AS text[]), CAST(:collections AS text[]), "
            "CAST(:documents AS text[]), CAST(:halves AS halfvec[])) "
            "ON CONFLICT (key, tenant_id) DO UPDATE SET "
            "collection_id = excluded.collection_id, document_id = excluded.document_id, v = excluded.v"
        )
        self._halfvec_oid: int | None = None

    def create(self, database: Database) -> None:
        """Create the table and its partitions, unless they are there."""
        with database.write() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": self._number})
            if sa.inspect(connection).has_table(self.name):
                return
            self.rows.create(connection)
            for part in range(self._partitions):
                # rows of up to 8,160 bytes are kept whole: a search would fetch each long vector from elsewhere
                connection.exec_driver_sql(
                    f"CREATE TABLE {self.name}_p{part} PARTITION OF {self.name} "
                    f"FOR VALUES WITH (MODULUS {self._partitions}, REMAINDER {part}) WITH (toast_tuple_target = 8160)"
                )

    def insert(
        self,
        connection: sa.Connection,
        keys: Keys,
        halves: Halves,
        *,
        tenants: list[str],
        collections: list[str],
        documents: list[str],
    ) -> None:
        """Insert rows by one statement: `(n,)` keys, `(n, dim)` float16, and n of each of the others.

        A row that is there is replaced: another process may fill in the same ones.
        """
        if self._halfvec_oid is None:
            # a function is called by each execution; a cast would stay what it was when the statement was prepared
            self._halfvec_oid = connection.execute(sa.text("SELECT to_regtype('halfvec')::oid")).scalar_one()
        packs(connection).execute(
            self._insert,
            {
                "keys": keys.tolist(),
                "tenants": tenants,
                "collections": collections,
                "documents": documents,
                "halves": _packed_array(halves, self._halfvec_oid),
            },
        )

    def partition_of(self, connection: sa.Connection, tenant_id: str, *, above: int) -> str | None:
        """The partition of a tenant that has more than `above` rows; None when it has not."""
        its: sa.Select[Any] = sa.select(sa.literal_column("tableoid").label("part")).select_from(self.rows)
        some = its.where(self.rows.c.tenant_id == tenant_id).limit(above + 1).subquery()
        part = sa.cast(some.c.part, _PgType("regclass")).cast(sa.Text)
        found = connection.execute(sa.select(part).group_by(some.c.part).having(sa.func.count() > above))
        return found.scalar()

    def large_partitions(self, connection: sa.Connection, *, above: int) -> list[str]:
        """The partitions with a tenant that has more than `above` rows."""
        part = sa.literal_column("tableoid").cast(_PgType("regclass")).cast(sa.Text)
        grouped = sa.select(part.label("part")).select_from(self.rows).group_by(part, self.rows.c.tenant_id)
        large = grouped.having(sa.func.count() > above).subquery()
        return sorted(connection.execute(sa.select(large.c.part).distinct()).scalars())

    def index(self, database: Database, partition: str) -> bool:
        """Build the HNSW index of a partition beside searches and writes; returns whether it was missing.

        An index that an interrupted build left is built anew. Another process that builds one is not waited for.
        """
        if self.dim > _MOST_INDEXED:
            return False
        with database.session() as connection:
            if not connection.execute(_TRY_LOCK, {"number": self._number}).scalar():
                return False
            try:
                for found in connection.execute(_HNSW, {"partition": partition}).all():
                    if found.valid:
                        return False
                    connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY {found.name}")
                connection.exec_driver_sql(
                    f"CREATE INDEX CONCURRENTLY ON {partition} USING hnsw (v halfvec_ip_ops) "
                    "WITH (m = 16, ef_construction = 64)"
                )
                return True
            finally:
                connection.execute(_UNLOCK, {"number": self._number})


def _packed_array(halves: Halves, oid: int) -> Packed:
    """`(n, dim)` rows as a `halfvec[]`: its head, and for each row its length and it (`array_recv`, `halfvec_recv`)."""
    count, dim = halves.shape
    row = np.dtype([("bytes", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("values", ">f2", (dim,))])
    rows = np.zeros(count, row)
    rows["bytes"], rows["dim"], rows["values"] = 4 + 2 * dim, dim, halves
    return Packed(struct.pack(">iiIii", 1, 0, oid, count, 1) + rows.tobytes())
