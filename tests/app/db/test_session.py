"""Transactions commit or roll back, readers cannot write, and database failures become domain errors."""

import sqlite3
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db.session import Database, check_sqlite, require_driver
from app.db.tables.documents import tenant
from app.errors import InvalidRequest, SetupError, StorageFull, StoreUnavailable

COUNT = sa.text("SELECT count(*) FROM tenant")


def add_tenant(connection: sa.Connection, name: str) -> None:
    connection.execute(sa.text("INSERT INTO tenant (id, created_at) VALUES (:name, 0)"), {"name": name})


def count(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(COUNT).scalar_one())


def test_a_committed_row_is_read_by_the_next_transaction(database: Database) -> None:
    with database.write() as connection:
        add_tenant(connection, "a")

    assert count(database) == 1


def test_an_exception_inside_undoes_the_whole_transaction(database: Database) -> None:
    with pytest.raises(InvalidRequest), database.write() as connection:  # noqa: PT012 - the second statement raises
        add_tenant(connection, "a")
        add_tenant(connection, "\ud800")

    assert count(database) == 0


def test_a_read_transaction_cannot_write(database: Database) -> None:
    with pytest.raises(Exception, match=r"read-?only|cannot be reached"), database.read() as connection:
        add_tenant(connection, "a")

    assert count(database) == 0


def test_a_read_transaction_does_not_see_later_commits(database: Database) -> None:
    with database.read() as reading:
        before = reading.execute(COUNT).scalar_one()
        with database.write() as writing:
            add_tenant(writing, "a")
        assert reading.execute(COUNT).scalar_one() == before

    assert count(database) == before + 1


def test_writers_from_many_threads_lose_no_update(database: Database) -> None:
    with database.write() as connection:
        connection.execute(sa.text("INSERT INTO key_counter (name, next_key) VALUES ('x', 0)"))

    def work() -> None:
        for _ in range(10):
            with database.write() as connection:
                connection.execute(sa.text("UPDATE key_counter SET next_key = next_key + 1 WHERE name = 'x'"))
            count(database)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.read() as connection:
        assert connection.execute(sa.text("SELECT next_key FROM key_counter WHERE name = 'x'")).scalar() == 80


def test_text_that_cannot_be_stored_is_the_callers_mistake(database: Database) -> None:
    with pytest.raises(InvalidRequest), database.write() as connection:
        add_tenant(connection, "\ud800")


def test_a_number_that_is_too_large_is_the_callers_mistake(database: Database) -> None:
    with pytest.raises(InvalidRequest), database.read() as connection:
        connection.execute(sa.text("SELECT 1 FROM job WHERE version = CAST(:n AS INTEGER)"), {"n": 10**30})


def test_a_wrong_statement_is_our_mistake_and_keeps_its_name(database: Database) -> None:
    with pytest.raises(sa.exc.DBAPIError), database.read() as connection:
        connection.exec_driver_sql("SELECT nonsense FROM nowhere")


def test_a_write_inside_a_write_is_refused(sqlite_database: Database) -> None:
    with sqlite_database.write(), pytest.raises(AssertionError), sqlite_database.write():
        pass


def test_the_write_ahead_log_is_durable_and_only_the_writer_checkpoints(sqlite_database: Database) -> None:
    def pragmas(connection: sa.Connection) -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "query_only", "wal_autocheckpoint")
        return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}

    shared = {"journal_mode": "wal", "foreign_keys": 1}
    with sqlite_database.write() as connection:
        assert pragmas(connection) == {**shared, "synchronous": 2, "query_only": 0, "wal_autocheckpoint": 1000}
    with sqlite_database.read() as connection:
        assert pragmas(connection) == {**shared, "synchronous": 2, "query_only": 1, "wal_autocheckpoint": 0}


@pytest.mark.parametrize("fails", [False, True])
def test_a_write_that_may_be_lost_waits_for_no_disk_and_the_next_one_does(database: Database, fails: bool) -> None:
    sqlite = database.kind == "sqlite"

    def waits(connection: sa.Connection) -> bool:
        asked = "PRAGMA synchronous" if sqlite else "SHOW synchronous_commit"
        return connection.exec_driver_sql(asked).scalar() in {2, "on"}

    try:
        with database.write_unflushed() as connection:
            connection.execute(sa.insert(tenant).values(id="t9", created_at=0.0))
            assert not waits(connection)
            if fails:
                raise LookupError
    except LookupError:
        pass

    with database.write() as connection:
        assert waits(connection)
        kept = connection.execute(sa.select(tenant.c.id).where(tenant.c.id == "t9")).scalar()
        assert (kept is None) == fails


def test_closing_leaves_one_whole_file(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path / 'a.db'}")
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x)")
    with database.read() as connection:
        connection.exec_driver_sql("SELECT * FROM t")
    database.close()

    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_a_file_locked_by_another_process_is_unavailable_and_then_works_again(sqlite_database: Database) -> None:
    with sqlite_database.read() as connection:
        file = connection.exec_driver_sql("PRAGMA database_list").one()[2]
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreUnavailable), sqlite_database.write() as connection:
            add_tenant(connection, "a")
    finally:
        other.execute("ROLLBACK")
        other.close()

    with sqlite_database.write() as connection:
        add_tenant(connection, "b")
    assert count(sqlite_database) == 1


def test_a_write_holds_the_lock_before_its_first_statement(sqlite_database: Database) -> None:
    with sqlite_database.read() as connection:
        file = connection.exec_driver_sql("PRAGMA database_list").one()[2]
    other = sqlite3.connect(file, isolation_level=None, timeout=0)
    try:
        with sqlite_database.write(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")
    finally:
        other.close()


def test_a_full_disk_writes_nothing_and_reads_go_on(sqlite_database: Database) -> None:
    with sqlite_database.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to run out of room

    with pytest.raises(StorageFull), sqlite_database.write() as connection:
        add_tenant(connection, "x" * 100_000)

    assert count(sqlite_database) == 0
    with sqlite_database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    with sqlite_database.write() as connection:
        add_tenant(connection, "x" * 100_000)
    assert count(sqlite_database) == 1


def test_a_server_that_is_not_there_is_unavailable() -> None:
    pytest.importorskip("psycopg")
    database = Database.open("postgresql://nobody@/none?host=/nonexistent")

    with pytest.raises(StoreUnavailable), database.read():
        pass
    database.close()


@pytest.mark.parametrize("url", ["mysql://host/name", "no url at all", "sqlite://", "sqlite:///:memory:", ""])
def test_a_url_that_will_not_do_is_a_setup_error(url: str) -> None:
    with pytest.raises(SetupError):
        Database.open(url)


def test_a_missing_folder_is_a_setup_error_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught:
        Database.open(f"sqlite:///{tmp_path / 'absent' / 'a.db'}")
    assert str(tmp_path) not in str(caught.value)


def test_a_file_that_is_no_database_is_a_setup_error(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"these are not the bytes of a database" * 100)

    with pytest.raises(SetupError):
        Database.open(f"sqlite:///{path}")


def test_a_missing_driver_names_the_extra_to_install() -> None:
    with pytest.raises(SetupError, match=r"footnote-rag\[postgres\]"):
        require_driver("no_such_driver", extra="postgres")


@pytest.mark.parametrize(
    ("version", "options", "complaint"),
    [((3, 34, 1), {"ENABLE_FTS5"}, "3.34.1.*3.35.0"), ((3, 40, 1), {"ENABLE_FTS3"}, "FTS5")],
)
def test_an_sqlite_that_will_not_do_is_a_setup_error(
    version: tuple[int, ...], options: set[str], complaint: str
) -> None:
    with pytest.raises(SetupError, match=complaint):
        check_sqlite(version, options)
