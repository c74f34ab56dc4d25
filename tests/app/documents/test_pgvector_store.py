"""app.documents.adapters.pgvector_store: equal to SQL at every commit, and free of the traps of pgvector's plans."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from app.db import dialect
from app.db.chunks import ChunkRepository
from app.db.dialect import require_pgvector
from app.db.session import Database
from app.documents.adapters import pgvector_store
from app.documents.adapters.pgvector_store import PgVectors, PgVectorStores
from app.documents.index_ports import Differences, IndexRows
from app.errors import SetupError
from retrieval.ports import Vectors
from retrieval.types import Comparison, Scope
from tests.app.db.samples import EMBEDDER
from tests.app.documents.shelf import EQUAL, Deletion, Moment, Open, Shelf
from tests.databases import migrated_file, postgres_database, sqlite_database
from tests.postgres import empty_postgres

__all__ = ["migrated_file", "postgres_database", "sqlite_database"]

TABLE = "chunk_vector_g1"


def opens(*, exact_up_to: int, partitions: int) -> Open:
    def opened(_: Path, generation: int, chunks: ChunkRepository, database: Database) -> PgVectors:
        with database.write() as connection:
            require_pgvector(connection)
        return PgVectors(
            database,
            embedder=EMBEDDER,
            generation=generation,
            chunks=chunks,
            exact_up_to=exact_up_to,
            partitions=partitions,
        )

    return opened


@pytest.fixture
def shelf(postgres_database: Database, tmp_path: Path) -> Iterator[Shelf]:
    """All vectors in one partition, which has an HNSW index from 17 chunks of a tenant on."""
    shelf = Shelf(postgres_database, opens(exact_up_to=16, partitions=1), tmp_path)
    yield shelf
    PgVectorStores(postgres_database, chunks=shelf.chunks).drop(shelf.store.generation)


def indexes(shelf: Shelf) -> list[tuple[str, bool]]:
    """The HNSW indexes, and whether each is valid."""
    named = sa.text(
        "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_am m ON m.oid = c.relam WHERE m.amname = 'hnsw'"
    )
    with shelf.database.read() as connection:
        return [(row[0], row[1]) for row in connection.execute(named)]


@contextmanager
def searches(*, explained: bool = False) -> Iterator[list[str]]:
    """The statements that compare vectors meanwhile, or their plans."""
    found: list[str] = []

    def note(connection: sa.Connection, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        if "<#>" not in statement:
            return
        if explained:
            cursor.connection.execute("SET LOCAL enable_seqscan = off")  # as for a large table
            found.extend(row[0] for row in cursor.connection.execute("EXPLAIN " + statement, parameters))
        else:
            found.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def towards(*values: float) -> Vectors:
    vector = np.array(values, np.float32)
    unit: Vectors = vector / np.linalg.norm(vector)
    return unit


def beside_a_large_one(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Vectors:
    """A tenant t2 with 20 chunks far from a question, beside t1 with 400 near it, under one index."""
    question = towards(1, 0, 0, 0)

    def near(count: int, centre: Vectors) -> Vectors:
        rows = centre + np.random.default_rng(count).standard_normal((count, EMBEDDER.dim)).astype(np.float32) / 5
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    monkeypatch.setattr(shelf, "unit", lambda count: near(count, question))
    shelf.put(400)
    monkeypatch.setattr(shelf, "unit", lambda count: near(count, -question))
    shelf.put(20, tenant_id="t2")
    shelf.indexes.rest()
    assert [valid for _, valid in indexes(shelf)] == [True]
    return question


def assert_found_exactly(shelf: Shelf, vector: Vectors, scope: Scope, k: int) -> None:
    found, exact = shelf.found(vector, scope, k), shelf.exact(vector, scope, k)
    assert [score for _, score in found] == pytest.approx([score for _, score in exact], abs=1e-5)
    assert [key for key, _ in found] == [key for key, _ in exact]


@pytest.mark.parametrize("moment", [Moment.STAGED, Moment.COMMITTED, Moment.FORGOTTEN, Moment.PUBLISHED])
def test_after_every_moment_of_a_replacement_it_is_equal_to_sql_without_a_repair(shelf: Shelf, moment: Moment) -> None:
    shelf.put(10, external_id="x")
    shelf.put(20, external_id="x", dies_after=moment)

    assert shelf.told() == EQUAL
    assert len(shelf.store) == (10 if moment is Moment.STAGED else 20)


@pytest.mark.parametrize("moment", [Moment.STAGED, Moment.COMMITTED])
@pytest.mark.parametrize("by", Deletion)
def test_after_every_moment_of_a_deletion_it_is_equal_to_sql_without_a_repair(
    shelf: Shelf, by: Deletion, moment: Moment
) -> None:
    other = shelf.library.collections.create("t1", "Other").id
    gone = shelf.put(10, collection_id=other, metadata={"matter": "closed"})
    shelf.put(5)

    shelf.delete(gone, by=by, dies_after=moment)

    assert shelf.told() == EQUAL
    assert len(shelf.store) == (15 if moment is Moment.STAGED else 5)


def test_a_small_tenant_finds_what_it_has_where_default_settings_find_nothing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = beside_a_large_one(shelf, monkeypatch)
    by_default = sa.text(f"SELECT key FROM {TABLE} WHERE tenant_id = 't2' ORDER BY v <#> '[1,0,0,0]'::halfvec LIMIT 20")
    with shelf.database.read() as connection:
        for plan in ("seqscan", "bitmapscan", "sort"):  # as for a large table
            connection.exec_driver_sql(f"SET LOCAL enable_{plan} = off")
        assert connection.execute(by_default).all() == [], "the trap is there"

    with searches() as statements:
        assert len(shelf.found(question, Scope("t2"), 20)) == 20
    assert not any("MATERIALIZED" in each for each in statements), "the index found them: not every vector is compared"
    assert_found_exactly(shelf, question, Scope("t2"), 20)


def test_where_the_index_gives_up_early_every_vector_is_compared(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "unit", lambda count: np.tile(towards(1, 0, 0, 0), (count, 1)))
    shelf.put(3, tenant_id="t2")  # which it finds before it gives up
    question = beside_a_large_one(shelf, monkeypatch)
    monkeypatch.setattr(pgvector_store, "_MOST_SCANNED", "1")

    with searches() as statements:
        assert len(shelf.found(question, Scope("t2"), 20)) == 20
    assert ["MATERIALIZED" in each for each in statements] == [False, True]
    assert_found_exactly(shelf, question, Scope("t2"), 20)


def test_a_prepared_statement_gets_a_plan_of_its_own_for_every_tenant(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant_id in ("t1", "t2"):
        shelf.put(30, tenant_id=tenant_id)
    shelf.indexes.rest()
    prepared = sa.text(
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE :ours AND NOT from_sql"
    )
    with shelf.database.session() as connection:

        @contextmanager
        def reading() -> Iterator[sa.Connection]:
            connection.exec_driver_sql("BEGIN")
            yield connection
            connection.exec_driver_sql("COMMIT")

        monkeypatch.setattr(shelf.database, "read", reading)  # the statements are prepared for one connection
        for number in range(24):
            shelf.store.search_vector(shelf.unit(1)[0], scope=Scope(f"t{number % 2 + 1}"), k=3)
        plans = connection.execute(prepared, {"ours": f"%<#>%{TABLE}%"}).all()
        monkeypatch.undo()

    assert sum(row.generic_plans for row in plans) == 0
    assert sum(row.custom_plans for row in plans) >= 10, "the driver prepares what it sends often"


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_what_exact_search_finds_in_any_scope(postgres_database: Database, tmp_path: Path, seed: int) -> None:
    shelf = Shelf(postgres_database, opens(exact_up_to=20_000, partitions=4), tmp_path)
    random = np.random.default_rng(seed)
    collections = [shelf.library.collection_id, shelf.library.collections.create("t1", "Other").id]
    documents = []
    try:
        for _ in range(8):
            collection_id = str(random.choice(collections))
            metadata = {"year": int(random.integers(2020, 2024))}
            documents.append(shelf.put(int(random.integers(0, 30)), collection_id=collection_id, metadata=metadata))
            shelf.put(int(random.integers(1, 9)), tenant_id="t2")
            if random.random() < 0.3:
                shelf.delete(documents.pop(int(random.integers(len(documents)))))
            ids = tuple(document.id for document in documents if random.random() < 0.5)
            year = Comparison("year", "$gte", int(random.integers(2020, 2024)))
            scopes = [
                Scope("t1"),
                Scope("t2"),
                Scope("t1", collection_ids=(str(random.choice(collections)),)),
                Scope("t1", collection_ids=tuple(collections)),
                Scope("t1", document_ids=ids),
                Scope("t1", filter=year),
                Scope("t1", collection_ids=(collections[1],), filter=year),
            ]
            for scope in scopes:
                if len(shelf.chunks.keys_in(scope)):
                    assert_found_exactly(shelf, shelf.unit(1)[0], scope, int(random.integers(1, 40)))
                else:
                    assert shelf.found(shelf.unit(1)[0], scope, 9) == []
        assert shelf.told() == EQUAL
    finally:
        PgVectorStores(postgres_database, chunks=shelf.chunks).drop(shelf.store.generation)


def test_a_large_scope_is_searched_by_the_index(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.put(500)
    shelf.indexes.rest()
    with searches(explained=True) as plan:
        shelf.found(shelf.unit(1)[0], Scope("t1"), 10)

    assert any("Index Scan using" in line and "_v_idx" in line for line in plan), plan


def test_an_index_is_built_for_a_tenant_that_has_grown_and_not_before(shelf: Shelf) -> None:
    shelf.put(16)
    shelf.indexes.rest()
    assert indexes(shelf) == []

    shelf.put(1)
    shelf.indexes.rest()
    shelf.put(5)
    shelf.indexes.rest()

    assert [valid for _, valid in indexes(shelf)] == [True]


def test_an_index_that_an_interrupted_build_left_is_built_anew(shelf: Shelf) -> None:
    shelf.put(30)
    shelf.indexes.rest()
    ((name, _),) = indexes(shelf)
    with shelf.database.write() as connection:
        connection.execute(
            sa.text("UPDATE pg_index SET indisvalid = false WHERE indexrelid = CAST(:name AS regclass)"), {"name": name}
        )
    assert indexes(shelf) == [(name, False)]

    shelf.open()

    assert [valid for _, valid in indexes(shelf)] == [True]


def test_a_row_of_another_document_under_a_key_is_replaced(shelf: Shelf) -> None:
    """As when a database from an older backup gives keys again."""
    shelf.put(3)
    with shelf.database.write() as connection:
        connection.execute(sa.text(f"UPDATE {TABLE} SET document_id = 'doc_of_another_time' WHERE key = 1"))

    assert shelf.repaired() == Differences(missing=0, surplus=1)

    assert shelf.told() == EQUAL
    assert_found_exactly(shelf, shelf.unit(1)[0], Scope("t1"), 3)


def test_what_is_written_twice_is_there_once_as_written_last(shelf: Shelf) -> None:
    """As when two processes fill in the same vectors."""
    document = shelf.put(2)
    keys, vectors = shelf.chunks.vectors([1, 2], generation=shelf.store.generation)
    again = IndexRows(
        keys=keys,
        vectors=-vectors,
        tenant_id="t1",
        collection_id=document.collection_id,
        document_id=document.id,
        version=1,
        texts=["", ""],
    )
    with shelf.database.write() as connection:
        shelf.store.write_in(connection, again)

    assert len(shelf.store) == 2
    ((key, score),) = shelf.found(-vectors[0], Scope("t1"), 1)
    assert key == 1
    assert score == pytest.approx(1.0, abs=1e-3)


def test_a_document_that_is_deleted_while_its_vectors_are_filled_in_gets_none(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, gone = shelf.put(3), shelf.put(2)
    with shelf.database.write() as connection:
        connection.execute(sa.text(f"DELETE FROM {TABLE}"))
    fill = vars(PgVectors)["_fill"]

    def after_a_deletion(store: PgVectors, *given: Any) -> int:
        shelf.library.documents.delete(gone.id, tenant_id="t1", follow=shelf.indexes.remove_in)
        return int(fill(store, *given))

    monkeypatch.setattr(PgVectors, "_fill", after_a_deletion)

    shelf.store.reconcile()

    assert shelf.told() == EQUAL
    assert len(shelf.store) == len(shelf.chunks.keys_in(Scope("t1", document_ids=(kept.id,)))) == 3


def test_of_many_vectors_the_number_is_an_estimate(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.put(40)
    monkeypatch.setattr(pgvector_store, "_COUNTED", 10)
    assert len(shelf.store) == 11, "at least so many"

    with shelf.database.session() as connection:
        connection.exec_driver_sql(f"ANALYZE {TABLE}")

    assert len(shelf.store) == 40


def test_dropping_a_generation_twice_is_no_error(shelf: Shelf) -> None:
    stores = PgVectorStores(shelf.database, chunks=shelf.chunks)
    stores.drop(shelf.store.generation)
    stores.drop(shelf.store.generation)

    with shelf.database.read() as connection:
        assert not sa.inspect(connection).has_table(TABLE)


REFUSED = {
    "has none: install": "SELECT NULL AS installed, NULL AS available WHERE false",
    "0.8 or newer; this database has 0.7.4": "SELECT '0.7.4' AS installed, '0.8.5' AS available",
}


@pytest.mark.parametrize("why", REFUSED)
def test_without_a_pgvector_that_scans_its_index_again_the_start_is_refused(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(dialect, "_PGVECTOR", sa.text(REFUSED[why]))

    with postgres_database.write() as connection, pytest.raises(SetupError, match=f"FOOTNOTE_VECTOR_STORE=.*{why}"):
        require_pgvector(connection)


def test_who_may_not_create_extensions_is_told_who_may() -> None:
    with empty_postgres() as url:  # one without the extension: that of other tests must not lose it
        database = Database.open(url)
        with database.write() as connection:
            connection.exec_driver_sql("CREATE ROLE guest")
        try:
            with database.write() as connection:  # ends as it must after an error: nothing is kept
                connection.exec_driver_sql("SET LOCAL ROLE guest")
                with pytest.raises(SetupError, match="run `CREATE EXTENSION vector` as an administrator"):
                    require_pgvector(connection)
        finally:
            with database.write() as connection:
                connection.exec_driver_sql("DROP ROLE guest")
            database.close()
