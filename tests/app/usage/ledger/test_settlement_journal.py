"""app.usage.ledger.settlement_journal stores settlements on disk while the database is away; each settles once."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.db.session import Database
from app.types import Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.settlement_journal import SettlementJournal
from tests.app.usage.samples import reservation
from tests.examples import examples

SPENT = Settlement(
    status=UsageStatus.COMPLETED,
    input_tokens=20,
    output_tokens=7,
    delivered_tokens=5,
    first_token_ms=1.5,
    total_ms=9.25,
)
LEFT = Settlement(status=UsageStatus.CLIENT_ABORT, input_tokens=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settlements.jsonl"


def test_a_process_after_it_reads_what_was_kept(path: Path) -> None:
    journal = SettlementJournal(path)
    journal.append("req_1:2", SPENT)
    journal.append("req_2:2", LEFT)

    assert SettlementJournal(path).pending() == (("req_1:2", SPENT), ("req_2:2", LEFT))
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_first_settlement_of_a_row_stands(path: Path) -> None:
    journal = SettlementJournal(path)
    journal.append("req_1:2", SPENT)
    journal.append("req_1:2", LEFT)

    assert SettlementJournal(path).pending() == journal.pending() == (("req_1:2", SPENT),)


def test_the_file_is_emptied_with_its_last_line_and_goes_on(path: Path) -> None:
    journal = SettlementJournal(path)
    journal.append("req_1:2", SPENT)
    journal.append("req_2:2", LEFT)
    journal.remove("req_1:2")
    assert path.stat().st_size > 0
    journal.remove("req_2:2")
    assert path.stat().st_size == 0

    journal.append("req_3:2", SPENT)
    assert SettlementJournal(path).pending() == (("req_3:2", SPENT),)


@settings(deadline=None, max_examples=examples(60))
@given(cut=st.integers(0, 400))
def test_a_torn_last_line_is_cut_off_and_the_next_one_is_whole(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "settlements.jsonl"
    journal = SettlementJournal(path)
    journal.append("req_1:2", SPENT)
    first = path.stat().st_size
    journal.append("req_2:2", SPENT)
    torn = path.read_bytes()[: max(0, path.stat().st_size - cut)]
    path.write_bytes(torn)

    reopened = SettlementJournal(path)
    whole = [f"req_{number}:2" for number in range(1, 1 + torn.count(b"\n"))]
    assert [event_id for event_id, _ in reopened.pending()] == whole
    reopened.append("req_3:2", LEFT)
    assert [event_id for event_id, _ in SettlementJournal(path).pending()] == [*whole, "req_3:2"]
    assert first > 0


def test_a_damaged_line_in_the_middle_keeps_no_other_from_being_read(path: Path) -> None:
    journal = SettlementJournal(path)
    journal.append("req_1:2", SPENT)
    journal.append("req_2:2", LEFT)
    first, second = path.read_bytes().splitlines(keepends=True)
    lines = [first, b"\xff\xfe}{\n", b"[1]\n", json.dumps({"event_id": "x", "status": "odd"}).encode() + b"\n", second]
    path.write_bytes(b"".join(lines))

    assert SettlementJournal(path).pending() == (("req_1:2", SPENT), ("req_2:2", LEFT))


def test_where_the_file_cannot_be_written_either_it_is_kept_in_memory(tmp_path: Path) -> None:
    journal = SettlementJournal(tmp_path / "no-such-folder" / "settlements.jsonl")
    journal.append("req_1:2", SPENT)

    assert journal.pending() == (("req_1:2", SPENT),)
    journal.remove("req_1:2")
    assert len(journal) == 0


def test_the_journal_is_settled_in_order_and_once(database: Database, path: Path) -> None:
    journal = SettlementJournal(path)
    ledger = Ledger(database, "boot_1", journal=journal)
    for number in (1, 2, 3):
        ledger.reserve(reservation(f"req_{number}:1"))
    ledger.settle("req_2:1", Settlement(status=UsageStatus.ERROR))
    for number in (1, 2, 3):
        journal.append(f"req_{number}:1", SPENT)
    journal.append("req_9:1", SPENT)  # of a row that is not there

    assert ledger.settle_journaled() == 2
    assert (len(journal), path.stat().st_size) == (0, 0)
    statuses = [ledger.usage(f"req_{number}")[0].status for number in (1, 2, 3)]
    assert statuses == ["completed", "error", "completed"]
    assert ledger.settle_journaled() == 0


def test_what_contradicts_its_row_stays_and_keeps_no_other_from_being_settled(database: Database, path: Path) -> None:
    journal = SettlementJournal(path)
    ledger = Ledger(database, "boot_1", journal=journal)
    ledger.reserve(reservation("req_1:1", max_output_tokens=5))
    ledger.reserve(reservation("req_2:1"))
    journal.append("req_1:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=6))
    journal.append("req_2:1", SPENT)

    assert ledger.settle_journaled() == 1
    assert [event_id for event_id, _ in journal.pending()] == ["req_1:1"]
