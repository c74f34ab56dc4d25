"""app.usage.reconciliation.engine_counters stores the engine's counters beside the ledger."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.rollups import engine_counter
from app.errors import StoreUnavailable
from app.usage.reconciliation.engine_counters import EngineCounters
from generation.engine import LocalEngine
from tests.app.usage.samples import Clock
from tests.generation.fakes import RecordingObserver, ScriptedRunner, request, scripted_engine, wait_until


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = scripted_engine(ScriptedRunner())
    yield engine
    engine.close()


def rows(database: Database) -> list[tuple[object, ...]]:
    with database.read() as connection:
        query = sa.select(
            engine_counter.c.boot_id,
            engine_counter.c.model_id,
            engine_counter.c.prefill_tokens,
            engine_counter.c.decode_tokens,
            engine_counter.c.requests,
            engine_counter.c.started_at,
            engine_counter.c.updated_at,
            engine_counter.c.closed,
        )
        return [tuple(row) for row in connection.execute(query.order_by(engine_counter.c.boot_id))]


def test_the_row_is_there_before_the_first_request_and_is_kept_to_the_end(
    database: Database, engine: LocalEngine
) -> None:
    clock, observer = Clock(1000.0), RecordingObserver()
    counters = EngineCounters(database, engine, boot_id="boot_1", clock=clock)
    counters.flush()
    assert rows(database) == [("boot_1", "scripted", 0, 0, 0, 10**9, 10**9, False)]

    stream = engine.submit(request(prompt=(1, 2, 3), max_tokens=8), observer=observer)
    stream.close()
    observer.wait()
    stream = engine.submit(request(prompt=(1, 2, 3, 4), max_tokens=5), observer=RecordingObserver())
    wait_until(lambda: engine.stats().decode_tokens >= 5)
    clock.now = 2000.0
    counters.flush()
    assert rows(database)[0][4:] == (2, 10**9, 2 * 10**9, False)

    stream.close()
    engine.close()
    counters.close()
    stats = engine.stats()
    totals = (stats.prompt_tokens, stats.decode_tokens, 2)
    assert rows(database) == [("boot_1", "scripted", *totals, 10**9, 2 * 10**9, True)]
    assert stats.decode_tokens >= 5


def test_every_process_has_a_row_of_its_own(database: Database, engine: LocalEngine) -> None:
    for boot in ("boot_1", "boot_2"):
        counters = EngineCounters(database, engine, boot_id=boot)
        counters.flush()
        counters.close()

    assert [row[0] for row in rows(database)] == ["boot_1", "boot_2"]


def test_an_engine_that_rests_costs_no_write_and_one_that_works_is_written(
    sqlite_database: Database, engine: LocalEngine
) -> None:
    clock = Clock(1000.0)
    counters = EngineCounters(sqlite_database, engine, boot_id="boot_1", clock=clock)
    counters.flush()
    clock.now = 3000.0
    observer = RecordingObserver()
    engine.submit(request(max_tokens=1), observer=observer).close()
    observer.wait()
    counters.flush_if_changed()
    stats = engine.stats()
    assert rows(sqlite_database)[0][2:7] == (stats.prompt_tokens, stats.decode_tokens, 1, 10**9, 3 * 10**9)

    clock.now = 3500.0
    counters.flush_if_changed()
    assert rows(sqlite_database)[0][6] == 3 * 10**9
    clock.now = 4000.0
    counters.close()
    assert rows(sqlite_database)[0][6] == 4 * 10**9


class AwayDatabase(Database):
    """Cannot be written while `away`."""

    away = False

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        if self.away:
            raise StoreUnavailable("The database cannot be reached or is locked; try again in a moment.")
        with super().write() as connection:
            yield connection


def test_a_database_that_is_away_is_told_everything_later(
    migrated_file: Path, tmp_path: Path, engine: LocalEngine
) -> None:
    database = AwayDatabase.open(f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'footnote.db')}")
    assert isinstance(database, AwayDatabase)
    counters = EngineCounters(database, engine, boot_id="boot_1")
    counters.flush()
    database.away = True
    observer = RecordingObserver()
    engine.submit(request(max_tokens=3), observer=observer).close()
    observer.wait()
    counters.flush_if_changed()
    assert rows(database)[0][4] == 0
    database.away = False
    counters.flush_if_changed()
    assert rows(database)[0][4] == 1

    database.away = True
    engine.close()
    counters.close()
    assert rows(database)[0][-1] is False, "as of a process that died"
    database.close()
