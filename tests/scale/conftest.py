"""A rig for each test: an empty PostgreSQL that processes are to share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db.migration import upgrade
from app.db.session import Database
from tests.postgres import empty_postgres
from tests.scale.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with empty_postgres() as url:
        database = Database.open(url)
        upgrade(database)
        database.close()
        rig = Rig(tmp_path, url)
        try:
            yield rig
        finally:
            rig.close()
