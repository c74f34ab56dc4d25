"""app.db.group_commit shares commits between writers; each returns only after its commit."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db.session import Database
from app.errors import StoreUnavailable

_TABLE = "CREATE TABLE kept (number INTEGER PRIMARY KEY)"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database.open(f"sqlite:///{tmp_path / 'test.db'}")
    with database.write() as connection:
        connection.exec_driver_sql(_TABLE)
    yield database
    database.close()


def keep(database: Database, number: int) -> None:
    with database.write_shortly() as connection:
        connection.exec_driver_sql("INSERT INTO kept VALUES (?)", (number,))


def kept(database: Database) -> list[int]:
    with database.read() as connection:
        return [row[0] for row in connection.exec_driver_sql("SELECT number FROM kept ORDER BY number")]


@contextmanager
def commits() -> Iterator[list[object]]:
    """The commits of any engine meanwhile; readers' count too."""
    seen: list[object] = []

    def note(connection: object) -> None:
        seen.append(connection)

    sa.event.listen(sa.Engine, "commit", note)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "commit", note)


def together(database: Database, *bodies: Callable[[], None]) -> list[BaseException | None]:
    """Run bodies that all come while another writes, so that they share a commit; how each ended."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        with database.write():
            running = [pool.submit(body) for body in bodies]
            while database.waiting_writers < len(bodies):
                threading.Event().wait(0.001)
        return [each.exception(30) for each in running]


def test_concurrent_writers_share_commits(database: Database) -> None:
    with commits() as seen:
        ends = together(database, *(lambda number=number: keep(database, number) for number in range(8)))

    assert ends == [None] * 8
    assert kept(database) == list(range(8))
    assert len(seen) < 1 + 8, "one of the first writer, fewer than eight of the others"


def test_a_part_that_fails_takes_only_itself_back(database: Database) -> None:
    def fail() -> None:
        with database.write_shortly() as connection:
            connection.exec_driver_sql("INSERT INTO kept VALUES (99)")
            raise LookupError("a mistake")

    ends = together(database, lambda: keep(database, 1), fail, lambda: keep(database, 2))

    assert [type(end) for end in ends] == [type(None), LookupError, type(None)]
    assert kept(database) == [1, 2]


def test_a_write_returns_only_after_its_commit(database: Database) -> None:
    """Whoever returned can be read by others at once."""
    unseen: list[int] = []

    def check(number: int) -> None:
        keep(database, number)
        if number not in kept(database):
            unseen.append(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, range(64)))

    assert not unseen


def test_a_failed_shared_commit_reports_no_success_for_lost_writes(database: Database) -> None:
    """The transaction is taken back under them, as SQLite does when the disk is full."""

    def lose() -> None:
        with database.write_shortly() as connection:
            connection.exec_driver_sql("INSERT INTO kept VALUES (7)")
            connection.connection.dbapi_connection.rollback()  # type: ignore[union-attr]
            raise LookupError("the disk is full")

    ends = together(database, *[lambda number=number: keep(database, number) for number in range(3)], lose)

    told = [number for number, end in enumerate(ends[:3]) if end is None]
    assert kept(database) == told
    assert all(end is None or isinstance(end, StoreUnavailable) for end in ends[:3])
    keep(database, 50)
    assert 50 in kept(database)


def test_a_single_writer_commits_alone_without_waiting(database: Database) -> None:
    with commits() as seen:
        keep(database, 1)

    assert len(seen) == 1
    assert kept(database) == [1]
