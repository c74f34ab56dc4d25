"""Upgrades: a copy before, killed half way, a schema from the future, and two servers on one database."""

import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from app.backup.data_dir import data_dir_lock
from app.cli.main import cli
from app.db.migration import current_revision, head_revision, upgrade
from app.db.safety_copy import KEPT
from app.db.server_lock import server_lock
from app.db.session import Database
from app.errors import SetupError
from app.server.bootstrap import build
from app.settings import Settings
from migrations.first_release import FIRST
from tests.databases import migrated_file
from tests.faults.forked import KillPoint, exit_status_of, watch
from tests.postgres import empty_postgres

__all__ = ["migrated_file"]

OLD = FIRST
AFTER = "0021"
POINTS = (
    KillPoint("app.db.migration:upgrade", "call"),
    KillPoint("migrations.first_release:make", "return"),
    KillPoint("migrations.first_release:differences", "return"),
    KillPoint("app.db.safety_copy:_copy", "return"),
    KillPoint("app.db.safety_copy:copy_before", "return"),
    KillPoint("alembic.runtime.migration:MigrationContext.run_migrations", "call"),
    KillPoint("alembic.runtime.migration:HeadMaintainer.update_to_step", "call"),
    KillPoint("alembic.runtime.migration:HeadMaintainer.update_to_step", "return", 2),
    KillPoint("alembic.runtime.migration:MigrationContext.run_migrations", "return"),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of an older version, with something in it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'footnote.db'}"
        _age(url)
        yield url
        return
    with empty_postgres() as url:
        _age(url)
        yield url


def _age(url: str, revision: str = OLD) -> None:
    with opened(url) as database:
        upgrade(database, revision)
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE key_counter SET next_key = 42")


@contextmanager
def opened(url: str) -> Iterator[Database]:
    database = Database.open(url)
    try:
        yield database
    finally:
        database.close()


def state_of(url: str) -> tuple[str | None, int]:
    with opened(url) as database, database.read() as connection:
        return current_revision(database), connection.exec_driver_sql("SELECT next_key FROM key_counter").scalar_one()


def _upgrade_until(point: KillPoint, url: str, copies: Path) -> None:
    watch(point)
    with opened(url) as database:
        upgrade(database, copies=copies)


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a11_an_upgrade_killed_half_way_is_rolled_back_and_done_by_the_next_start(
    old_url: str, tmp_path: Path, point: KillPoint
) -> None:
    copies = tmp_path / "backups"
    status = exit_status_of(_upgrade_until, point, old_url, copies)
    if "copy" in point.function and old_url.startswith("postgresql"):
        assert status in {0, -signal.SIGKILL}, "nothing is copied there"
        return
    assert status == -signal.SIGKILL

    assert state_of(old_url) == (OLD, 42), "all of it or nothing"
    with opened(old_url) as database:
        upgrade(database, copies=copies)
    assert state_of(old_url) == (head_revision(), 42)
    assert not list(tmp_path.glob("backups/*.unfinished"))


def test_an_upgrade_keeps_a_whole_copy_from_before_that_only_its_owner_reads(tmp_path: Path) -> None:
    url, copies = f"sqlite:///{tmp_path / 'footnote.db'}", tmp_path / "backups"
    _age(url)

    with opened(url) as database:
        copy = upgrade(database, copies=copies)
        again = upgrade(database, copies=copies)

    assert copy is not None
    assert again is None, "nothing was to be done"
    assert copy.name.startswith(f"before-{OLD}-")
    assert copy.stat().st_mode & 0o077 == 0
    assert state_of(f"sqlite:///{copy}") == (OLD, 42)


def test_only_the_newest_pre_upgrade_copies_are_kept(tmp_path: Path) -> None:
    copies, made = tmp_path / "backups", []
    for number in range(KEPT + 2):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        _age(url)
        with opened(url) as database:
            made.append(upgrade(database, copies=copies))
        time.sleep(0.01)

    assert sorted(copies.iterdir()) == sorted(filter(None, made[-KEPT:]))


def test_a_new_database_is_not_copied(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 'new.db'}") as database:
        assert upgrade(database, copies=tmp_path / "backups") is None
    assert not (tmp_path / "backups").exists()


def test_an_upgrade_that_cannot_be_copied_does_not_begin(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'footnote.db'}"
    _age(url)
    (tmp_path / "backups").write_text("a file where the folder should be")

    with opened(url) as database, pytest.raises(SetupError, match="Nothing was changed") as refusal:
        upgrade(database, copies=tmp_path / "backups")

    assert str(tmp_path) not in str(refusal.value)
    assert state_of(url) == (OLD, 42)


def test_an_upgrade_that_fails_says_that_nothing_changed_and_names_the_copy(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'footnote.db'}"
    _age(url, AFTER)
    with sqlite3.connect(tmp_path / "footnote.db") as connection:
        connection.execute("ALTER TABLE conversation RENAME TO away")

    with opened(url) as database, pytest.raises(SetupError, match=rf"it is unchanged\. .* before-{AFTER}-") as refusal:
        upgrade(database, copies=tmp_path / "backups")

    assert str(tmp_path) not in str(refusal.value)
    assert state_of(url) == (AFTER, 42)


@pytest.mark.parametrize(
    "command", ["serve", "migrate", "keys list", "usage", "documents", "prices list", "backup {tmp}/x.tar.gz", "check"]
)
def test_a11_a_schema_newer_than_the_program_is_refused_by_every_command(
    command: str, migrated_file: Path, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    with sqlite3.connect(data_dir / "footnote.db") as copy, sqlite3.connect(migrated_file) as source:
        source.backup(copy)
        copy.execute("UPDATE alembic_version SET version_num = '9999'")

    result = CliRunner().invoke(
        cli, command.format(tmp=tmp_path).split(), env={"FOOTNOTE_DATA_DIR": str(data_dir), "FOOTNOTE_PORT": "0"}
    )

    assert result.exit_code != 0
    said = f"{result.output} {result.exception}"
    assert "newer Footnote" in " ".join(said.split()), said
    assert not (data_dir / "backups").exists()


def test_b7_a_second_server_on_a_data_dir_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, _env_file=None)
    with build(settings, with_models=False) as state:
        with pytest.raises(SetupError, match="Another Footnote process is using this data dir"), build(settings):
            pass
        assert state.corpus.jobs.queued() == 0
        result = CliRunner().invoke(cli, ["serve"], env={"FOOTNOTE_DATA_DIR": str(tmp_path), "FOOTNOTE_PORT": "0"})
        assert result.exit_code != 0
    with data_dir_lock(tmp_path):
        pass


def test_b7_a_second_server_on_a_postgresql_database_is_refused_whatever_its_data_dir(tmp_path: Path) -> None:
    with empty_postgres() as url:
        one, two = (Settings(data_dir=tmp_path / name, database_url=url, _env_file=None) for name in ("one", "two"))
        with build(one, with_models=False):
            with pytest.raises(SetupError, match="using this database"), build(two, with_models=False):
                pass
        with build(two, with_models=False):
            pass


def test_b7_a_server_gives_its_lock_back_before_it_closes_the_connection() -> None:
    """PostgreSQL ends the backend of a closed connection in its own time."""
    held: list[bool] = []

    def look(*_: object) -> None:
        held.append(_is_locked(other))

    with empty_postgres() as url, opened(url) as database, opened(url) as other:
        with server_lock(database, watch_s=60):
            held.append(_is_locked(other))
            sa.event.listen(sa.pool.Pool, "invalidate", look)
        sa.event.remove(sa.pool.Pool, "invalidate", look)

    assert held == [True, False]


def test_b7_the_lock_of_a_database_is_taken_again_when_its_connection_was_ended(tmp_path: Path) -> None:
    lost: list[bool] = []
    with empty_postgres() as url, opened(url) as database, opened(url) as other:
        with server_lock(database, on_loss=lambda: lost.append(True), watch_s=0.05):
            _end_other_connections(other)
            _wait_until(lambda: _is_locked(other))
        _wait_until(lambda: not _is_locked(other))  # PostgreSQL ends a closed connection's backend in its own time
    assert lost == []


def test_b7_a_server_whose_lock_another_took_is_told(tmp_path: Path) -> None:
    lost: list[bool] = []
    with empty_postgres() as url, opened(url) as database, opened(url) as other, ExitStack() as stack:
        stack.enter_context(server_lock(database, on_loss=lambda: lost.append(True), watch_s=0.3))

        def taken_by_the_other() -> bool:
            _end_other_connections(other)
            try:
                stack.enter_context(server_lock(other, watch_s=60))
            except SetupError:  # its backend has not ended yet, or the watch was faster
                return False
            return True

        _wait_until(taken_by_the_other)
        _wait_until(lambda: bool(lost))


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it did not happen within 20 s"
        time.sleep(0.02)


def _end_other_connections(database: Database) -> None:
    with database.session() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _is_locked(database: Database) -> bool:
    with database.session() as connection:
        found = connection.scalar(
            sa.text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )
        return bool(found)
