"""Databases for tests, both kinds. A folder's `conftest` imports the fixtures it uses."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db.migration import upgrade
from app.db.session import Database
from tests.installation import migrated
from tests.postgres import empty_postgres, migrated_postgres


@pytest.fixture(scope="session")
def migrated_file() -> Path:
    """A migrated SQLite file to copy."""
    return migrated()


@pytest.fixture
def sqlite_database(migrated_file: Path, tmp_path: Path) -> Iterator[Database]:
    path = shutil.copy(migrated_file, tmp_path / "footnote.db")
    database = Database.open(f"sqlite:///{path}")
    yield database
    database.close()


@pytest.fixture
def postgres_database() -> Iterator[Database]:
    with migrated_postgres() as database:
        yield database


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """A migrated, empty database of each kind."""
    name = "sqlite_database" if request.param == "sqlite" else "postgres_database"
    database = request.getfixturevalue(name)
    assert isinstance(database, Database)
    return database


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of each kind without tables."""
    if request.param == "sqlite":
        database = Database.open(f"sqlite:///{tmp_path / 'empty.db'}")
        yield database
        database.close()
        return
    with empty_postgres() as url:
        database = Database.open(url)
        yield database
        database.close()


@pytest.fixture
def migrated_database(empty_database: Database) -> Database:
    """A migrated database of each kind that nobody else uses: its tables may be changed."""
    upgrade(empty_database)
    return empty_database
