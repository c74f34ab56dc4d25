"""Acknowledged ledger rows survive kill -9; open ones are closed by recovery."""

import signal
import sys
import time
from pathlib import Path

import sqlalchemy as sa

from app.db.session import Database
from app.types import UsageStatus
from app.usage.ledger.ledger import Ledger
from tests.processes import running

SPENDER = """
import sys
from app.db.session import Database
from app.types import Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from tests.app.usage.samples import reservation

url, boot = sys.argv[1:]
ledger = Ledger(Database.open(url), boot)
number = 0
while True:
    number += 1
    event = f"{boot}-{number}:1"
    ledger.reserve(reservation(event))
    print("reserved", event, flush=True)
    ledger.checkpoint(event, 8)
    print("noted", event, flush=True)
    ledger.settle(event, Settlement(status=UsageStatus.COMPLETED, output_tokens=number % 90 + 8))
    print("settled", event, flush=True)
"""


def test_every_acknowledged_row_survives_kill_9(sqlite_database: Database, tmp_path: Path) -> None:
    with sqlite_database.read() as connection:
        file = connection.exec_driver_sql("PRAGMA database_list").one()[2]
    said: dict[str, set[str]] = {"reserved": set(), "noted": set(), "settled": set()}
    # one process at a time owns the file, as in the product
    sqlite_database.close()
    for boot in range(3):
        output = tmp_path / f"said-{boot}"
        command = [sys.executable, "-c", SPENDER, f"sqlite:///{file}", f"boot{boot}"]
        with output.open("wb") as sink, running(command, cwd=Path(__file__).parents[4], stdout=sink) as spender:
            while output.read_bytes().count(b"settled") < 20:
                assert spender.poll() is None
                time.sleep(0.01)
            spender.send_signal(signal.SIGKILL)
            assert spender.wait() == -signal.SIGKILL
        lines = output.read_text().split("\n")[:-1]  # a line without its end was never said
        for line in lines:
            word, event = line.split()
            said[word].add(event)

    reopened = Database.open(f"sqlite:///{file}")
    ledger = Ledger(reopened, "after")
    recovered = ledger.recover()
    with reopened.read() as connection:
        whole = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
        rows = {row.event_id: row for row in connection.execute(sa.text("SELECT * FROM usage_event"))}
    reopened.close()

    assert whole == "ok"
    assert said["reserved"] <= set(rows)
    assert all(rows[event].status == UsageStatus.COMPLETED for event in said["settled"])
    assert all(rows[event].output_tokens >= 8 for event in said["noted"])
    assert not [row for row in rows.values() if row.status == UsageStatus.RESERVED]
    assert recovered == sum(row.status == UsageStatus.RECOVERED for row in rows.values()) <= 3
    for number in range(3):
        settled = [event for event in said["settled"] if event.startswith(f"boot{number}-")]
        assert len(settled) >= 20, "each was killed at work"
