"""Exports while the ledger is written, named after their case: of one moment, the same bytes twice, in flat memory."""

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.db.session import Database
from app.db.tables.ledger import api_request, usage_event
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reports.line_rows import lines_as_csv
from app.usage.reports.raw_ledger import LineFilter, RawLedger
from tests.app.usage.samples import Clock, reservation
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.server import ADMIN_KEY

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

DONE = Settlement(status=UsageStatus.COMPLETED, output_tokens=7)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(database: Database, clock: Clock) -> Ledger:
    return Ledger(database, boot_id="b1", clock=clock)


def settle(ledger: Ledger, event_id: str) -> None:
    ledger.reserve(reservation(event_id))
    ledger.settle(event_id, DONE)


def test_f7_an_export_while_calls_settle_is_of_the_moment_it_began(database, ledger, clock):
    for number in range(6):
        settle(ledger, f"req_a{number}:1")
    clock.now += 1
    moment = ledger.moment()

    found = []
    for batch in RawLedger(database, batch=2).batches(tenant_id="t1", start=0, end=moment, only=LineFilter()):
        found += [line.event_id for line in batch]
        settle(ledger, f"req_b{len(found)}:1")

    assert found == [f"req_a{number}:1" for number in range(6)]


def test_f7_the_moment_waits_for_settlements_that_are_being_written(database, ledger, clock):
    ledger.reserve(reservation("req_1:1"))
    seen: list[list[str]] = []

    def export() -> None:
        end = ledger.moment()
        batches = RawLedger(database).batches(tenant_id="t1", start=0, end=end, only=LineFilter())
        seen.append([line.event_id for batch in batches for line in batch])

    exporter = threading.Thread(target=export)
    with database.write() as connection:
        ledger.settle_in(connection, "req_1:1", DONE)
        clock.now += 1
        exporter.start()
        exporter.join(timeout=0.3)  # long enough to have read without the call, had it not waited
        assert exporter.is_alive()
    exporter.join(timeout=30)

    assert seen == [["req_1:1"]]


def test_f7_nothing_counts_before_a_moment_that_has_passed_though_the_clock_steps_back(database, ledger, clock):
    moment = ledger.moment()
    clock.now -= 3600

    settle(ledger, "req_1:1")

    assert [*RawLedger(database).batches(tenant_id="t1", start=0, end=moment, only=LineFilter())] == []


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    settings = Settings(data_dir=tmp_path / "data", admin_key=ADMIN_KEY, _env_file=None)
    with build(settings, with_models=False) as state:
        yield state


def test_f7_a_closed_period_is_the_same_bytes_twice_while_calls_settle(state):
    """Invariant 16: every file."""
    for number in range(3):
        state.usage.ledger.reserve(reservation(f"req_{number}:1", tenant_id="default"))
        state.usage.ledger.settle(f"req_{number}:1", DONE)
    app = create_app(lambda: nullcontext(state), version=state.serving.version)
    end = state.usage.ledger.moment() // 10**6 + 1
    params = {"start_time": end - 86_400, "end_time": end}
    paths = ("usage/events", "usage/completions", "usage/documents", "costs")
    with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as client:

        def files() -> list[bytes]:
            return [
                client.get(f"/v1/admin/{path}", params=params, headers={"Accept": accept}).content
                for path in paths
                for accept in ("text/csv", "application/x-ndjson")
            ]

        once = files()
        state.usage.ledger.reserve(reservation("req_late:1", tenant_id="default"))
        state.usage.ledger.settle("req_late:1", DONE)
        again = files()

    assert once == again
    assert once[0].count(b"req_") == 2 * 3


def test_f7_memory_stays_flat_however_many_lines_there_are(sqlite_database):
    write_many(sqlite_database, 5000)

    def peak(lines: int) -> int:
        raw = RawLedger(sqlite_database, batch=500)
        batches = raw.batches(tenant_id="t1", start=0, end=lines, only=LineFilter())
        return memory_of(
            lambda: sum(piece.count(b"\r\n") for piece in lines_as_csv(batches, ZoneInfo("UTC"))), lines + 1
        )

    peak(600)  # what is loaded once
    assert peak(5000) < 1.5 * peak(1000)


def memory_of(work: Callable[[], int], expected: int) -> int:
    tracemalloc.start()
    try:
        assert work() == expected
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def write_many(database: Database, lines: int) -> None:
    """One settled call a microsecond."""
    row = {"operation": "chat", "tenant_id": "t1", "boot_id": "b", "model_id": "m", "tokenizer_rev": "r"}
    with database.write() as connection:
        connection.execute(
            sa.insert(api_request).values(request_id="req", tenant_id="t1", endpoint="/", accepted_at=0, boot_id="b")
        )
        connection.execute(
            sa.insert(usage_event),
            [
                {"event_id": f"req:{n}", "request_id": "req", "status": "completed", "accepted_at": n, "settled_at": n}
                | row
                for n in range(lines)
            ],
        )
