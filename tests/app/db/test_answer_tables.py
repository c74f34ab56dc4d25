"""app.db.answer_tables and table_cells: reach, claims of many processes, fences, and the end of a table."""

import threading
from collections.abc import Mapping, Sequence

import pytest

from app.db.answer_tables import AnswerTable, AnswerTableRepository, CellState, Column
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.table_cells import CellFinding, ClaimedCell, TableCells
from app.errors import NotFound
from app.types import Principal, Role
from retrieval.types import Scope
from tests.app.db.samples import Library

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)
BOB = Principal("t1", "bob", "key_b", Role.MEMBER)
ROOT = Principal("t1", "root", "key_r", Role.ADMIN)
STRANGER = Principal("t2", "ann", "key_a", Role.ADMIN)
LIMITED = Principal("t1", "ann", "key_c", Role.MEMBER, ("col_1",))
ANSWER = {"id": "req_1", "answered": True, "citations": []}
ANSWERED = CellFinding(state="answered", answer=ANSWER)


class Station:
    """The repositories over one database, with a clock that the test moves."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = 1000.0
        self.tables = AnswerTableRepository(database, clock=self.clock)
        self.library = Library(database)

    def clock(self) -> float:
        return self.now

    def table(self, documents: int = 2, columns: int = 2) -> AnswerTable:
        ids = tuple(self.library.upload(f"Text {at} of {self.now}.").id for at in range(documents))
        asked = [Column(f"Column {at}", f"Question {at}?") for at in range(columns)]
        return self.tables.create(ANN, asked, Scope(tenant_id="t1", document_ids=ids))

    def cells_of(self, boot_id: str, *, gone: Sequence[str] = ()) -> TableCells:
        return TableCells(self.database, OwnProcess(boot_id, lambda boot: boot.in_(list(gone)), self.clock))

    def counts(self, table: AnswerTable) -> Mapping[CellState, int]:
        return self.tables.get(table.id, principal=ROOT)[0].cells


@pytest.fixture
def station(database: Database) -> Station:
    return Station(database)


def claimed_by(cells: TableCells) -> ClaimedCell:
    claimed = cells.claim()
    assert claimed is not None
    return claimed


@pytest.mark.parametrize("other", [BOB, STRANGER, LIMITED])
def test_a_table_is_its_users_and_an_administrators(station: Station, other: Principal) -> None:
    made = station.table()
    for principal in (ANN, ROOT):
        assert station.tables.list(principal, limit=9)[0] == (made,)
    assert station.tables.list(other, limit=9) == ((), None)
    for refused in (
        lambda: station.tables.get(made.id, principal=other),
        lambda: station.tables.rows(made.id, principal=other, limit=9),
        lambda: station.tables.resume(made.id, principal=other),
        lambda: station.tables.delete(made.id, principal=other),
    ):
        with pytest.raises(NotFound):
            refused()


def test_many_processes_share_the_cells_and_the_last_ends_the_table(station: Station) -> None:
    table = station.table(documents=4, columns=3)
    taken: list[tuple[int, int]] = []
    lock = threading.Lock()

    def work(cells: TableCells) -> None:
        while (claimed := cells.claim()) is not None:
            with lock:
                taken.append((claimed.row, claimed.column_no))
            assert cells.finish(claimed, ANSWERED)

    threads = [threading.Thread(target=work, args=(station.cells_of(f"boot_{at}"),)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == [(row, column) for row in range(4) for column in range(3)]
    assert station.counts(table) == {"answered": 12}
    assert station.tables.get(table.id, principal=ANN)[0].state == "finished"


def test_a_claim_of_a_living_process_stands_and_one_of_a_gone_process_is_fenced(station: Station) -> None:
    table = station.table(documents=1, columns=1)
    first, second = station.cells_of("boot_1"), station.cells_of("boot_2")
    lost = claimed_by(first)
    assert second.claim() is None
    assert first.holds(lost)

    heir = station.cells_of("boot_2", gone=["boot_1"])
    taken = claimed_by(heir)
    assert (taken.attempts, taken.row, taken.column_no) == (2, lost.row, lost.column_no)
    assert not first.holds(lost)
    assert not first.finish(lost, CellFinding(state="waiting", stops="The key is revoked."))
    assert station.tables.get(table.id, principal=ANN)[0].state == "running", "a gone process stops nothing"
    assert heir.finish(taken, ANSWERED)
    assert not first.finish(lost, ANSWERED)


def test_a_claim_that_ended_without_a_finding_is_free_for_the_same_process(station: Station) -> None:
    station.table(documents=1, columns=1)
    cells = station.cells_of("boot_1")
    lost, again = claimed_by(cells), claimed_by(cells)

    assert (again.claim, again.attempts) == (lost.claim + 1, lost.attempts + 1)
    assert not cells.holds(lost)
    assert not cells.finish(lost, ANSWERED)
    assert cells.finish(again, ANSWERED)


def test_a_process_that_others_have_buried_claims_nothing(station: Station) -> None:
    station.table()
    buried = TableCells(station.database, OwnProcess.alone("boot_1", clock=station.clock), may_claim=lambda _: False)

    assert buried.claim() is None


def test_a_deleted_table_takes_its_cells_from_the_process_that_asks_one(station: Station) -> None:
    table, cells = station.table(), station.cells_of("boot_1")
    claimed = claimed_by(cells)
    station.tables.delete(table.id, principal=ANN)

    assert not cells.holds(claimed)
    assert not cells.finish(claimed, ANSWERED)
    assert cells.claim() is None


def test_tables_are_deleted_while_others_claim_their_cells(station: Station) -> None:
    tables = [station.table(documents=2, columns=2) for _ in range(3)]
    failed: list[Exception] = []

    def work(cells: TableCells) -> None:
        try:
            while (claimed := cells.claim()) is not None:
                cells.finish(claimed, ANSWERED)
        except Exception as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(station.cells_of(f"boot_{at}"),)) for at in range(2)]
    for thread in threads:
        thread.start()
    for table in tables:
        station.tables.delete(table.id, principal=ANN)
    for thread in threads:
        thread.join()

    assert failed == []
    assert station.tables.list(ROOT, limit=9) == ((), None)


def test_a_stopped_table_is_not_claimed_until_it_is_resumed(station: Station) -> None:
    table, cells = station.table(documents=1, columns=2), station.cells_of("boot_1")
    assert cells.finish(claimed_by(cells), ANSWERED)
    assert cells.finish(claimed_by(cells), CellFinding(state="waiting", counted=False, stops="No room."))
    found = station.tables.get(table.id, principal=ANN)[0]
    assert (found.state, found.state_detail, station.counts(table)) == (
        "stopped",
        "No room.",
        {"answered": 1, "waiting": 1},
    )
    assert cells.claim() is None

    station.tables.resume(table.id, principal=ANN)
    again = claimed_by(cells)
    assert (again.column_no, again.attempts) == (1, 1)
