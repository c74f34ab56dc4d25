"""tests.bench.ledger.partitions: its tiny form, and that a ledger by month keeps the ledger's promises."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from rich.console import Console
from sqlalchemy import exc

from app.db.migration import upgrade
from app.db.session import Database
from app.errors import StoreUnavailable
from app.types import DocumentShare, Settlement, UsageStatus
from app.usage.ledger.call_rows import locked_call
from app.usage.ledger.ledger import Ledger
from tests.app.usage.samples import reservation
from tests.bench.ledger.partitioned_ledger import months_from, partition
from tests.bench.ledger.partitions import compare
from tests.postgres import empty_postgres

_NOW = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
_SETTLEMENT = Settlement(status=UsageStatus.COMPLETED, cached_tokens=0, output_tokens=1, delivered_tokens=1)


@pytest.fixture
def by_month() -> Iterator[Database]:
    with empty_postgres() as url:
        database = Database.open(url)
        upgrade(database)
        first = Ledger(database, "boot", clock=lambda: _NOW)
        first.reserve(reservation("req_before:1"))
        first.settle("req_before:1", _SETTLEMENT)
        with database.write() as connection:
            partition(connection, months_from(2025, 12, 2))
        yield database
        database.close()


def _partition_of(database: Database, event_id: str) -> str:
    with database.read() as connection:
        query = sa.text("SELECT CAST(CAST(tableoid AS regclass) AS TEXT) FROM usage_event WHERE event_id = :id")
        return str(connection.execute(query, {"id": event_id}).scalar_one())


def test_both_layouts_are_measured_in_one_run() -> None:
    with empty_postgres() as url:
        server = sa.make_url(url)
        try:
            figures = compare(server, 1000, Console(quiet=True))
        finally:
            engine = sa.create_engine(server.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                for name in ("whole", "by_month"):
                    connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            engine.dispose()

    assert all({*figure} == {"whole", "by_month"} for figure in figures.values() if isinstance(figure, dict))
    assert len(figures) == 14


def test_a_call_moves_to_its_month_when_it_is_settled_and_is_settled_once(by_month: Database) -> None:
    ledger = Ledger(by_month, "boot", clock=lambda: _NOW)
    ledger.reserve(reservation("req_1:1", documents=[DocumentShare("doc_1", 2, 4)]))
    assert _partition_of(by_month, "req_1:1") == "usage_event_open"

    assert ledger.settle("req_1:1", _SETTLEMENT)

    assert not ledger.settle("req_1:1", _SETTLEMENT)
    assert _partition_of(by_month, "req_1:1") == _partition_of(by_month, "req_before:1") == "usage_event_2026_01"


@pytest.mark.parametrize("state", ["open", "settled", "moved"])
def test_an_id_is_reserved_once(by_month: Database, state: str) -> None:
    ledger = Ledger(by_month, "boot", clock=lambda: _NOW)
    event_id = "req_before:1" if state == "moved" else "req_1:1"
    if state != "moved":
        ledger.reserve(reservation(event_id))
    if state == "settled":
        ledger.settle(event_id, _SETTLEMENT)

    with pytest.raises(exc.IntegrityError):
        ledger.reserve(reservation(event_id))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE usage_event SET output_tokens = 2 WHERE status <> 'reserved'",
        "UPDATE usage_event_2026_01 SET output_tokens = 2",
        "DELETE FROM usage_event WHERE event_id = 'req_1:1'",
        "DELETE FROM usage_event_2026_01",
        "DELETE FROM usage_event_open",
        "DELETE FROM usage_event_key",
    ],
)
def test_nothing_settled_is_changed_and_nothing_is_deleted(by_month: Database, statement: str) -> None:
    ledger = Ledger(by_month, "boot", clock=lambda: _NOW)
    ledger.reserve(reservation("req_1:1", documents=[DocumentShare("doc_1", 2, 4)]))
    ledger.settle("req_1:1", _SETTLEMENT)

    with pytest.raises(exc.IntegrityError), by_month.write() as connection:
        connection.exec_driver_sql(statement)


def test_a_deletion_refused_row_by_row_would_refuse_every_settlement(by_month: Database) -> None:
    """Why the guard is asked once a statement here: settling moves a row by deleting it where it was."""
    with by_month.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER a_row BEFORE DELETE ON usage_event FOR EACH ROW EXECUTE FUNCTION ledger_refuse('never')"
        )
    ledger = Ledger(by_month, "boot", clock=lambda: _NOW)
    ledger.reserve(reservation("req_1:1"))

    with pytest.raises(exc.IntegrityError, match="never"):
        ledger.settle("req_1:1", _SETTLEMENT)


def test_who_waits_for_a_call_that_is_being_settled_is_told_to_try_again(by_month: Database) -> None:
    """Whole, the second settlement waits and returns False: here its row is gone to another table meanwhile."""
    ledger = Ledger(by_month, "boot", clock=lambda: _NOW)
    ledger.reserve(reservation("req_1:1"))
    outcome: list[object] = []

    def settle() -> None:
        try:
            outcome.append(ledger.settle("req_1:1", _SETTLEMENT))
        except StoreUnavailable as error:
            outcome.append(error)

    second = threading.Thread(target=settle)
    with by_month.write() as connection:
        assert locked_call(connection, "req_1:1") is not None
        second.start()
        _wait_for_a_waiter(by_month)
        ledger.settle_in(connection, "req_1:1", _SETTLEMENT)
    second.join(timeout=30)

    assert [type(result) for result in outcome] == [StoreUnavailable]
    assert not ledger.settle("req_1:1", _SETTLEMENT), "trying again finds it settled"


def _wait_for_a_waiter(database: Database) -> None:
    waiting = threading.Event()
    for _ in range(1000):
        with database.read() as connection:
            if connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one():
                return
        waiting.wait(0.02)
    pytest.fail("nobody waits")
