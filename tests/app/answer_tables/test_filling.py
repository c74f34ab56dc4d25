"""app.answer_tables: a cell is a question to one document; one that fails harms no other, none is asked twice."""

from threading import Event

import pytest

from app.db.collections import CollectionRepository
from app.db.table_cells import MOST_ATTEMPTS
from app.errors import Conflict, InvalidRequest, NotFound, RateLimited, StoreUnavailable
from app.server.state import State
from app.types import Principal, Role
from tests.app.answer_tables.office import COLOUR, FEES, ROOT, Office
from tests.app.watches.desk import FEE, PETS, RAISED


def test_each_question_is_asked_of_each_document_alone(office: Office) -> None:
    first, second = office.documents(FEE, RAISED)
    table = office.table([second, first])
    assert (table.state, table.rows, table.cells) == ("running", 2, {"waiting": 4})
    assert office.fill() == 4

    done = office.now_is(table)
    assert (done.state, sum(done.cells.values()), done.cells["answered"]) == ("finished", 4, 2)
    assert [row.document_id for row in office.lines(table)] == [second, first], "as they were named"
    assert [scope.document_ids for scope in office.passages.scopes] == [(second,)] * 2 + [(first,)] * 2
    for row, fee in zip(office.lines(table), (RAISED, FEE), strict=True):
        answer = row.cells[0].answer
        assert answer is not None
        assert {one["cited_text"] for one in answer["citations"]} == {fee}
        assert {one["document_id"] for one in answer["citations"]} == {row.document_id}
        assert answer["answered"]
    assert office.fill() == 0


def test_a_cell_that_is_not_sure_says_so(office: Office) -> None:
    office.answerer = office.quoting(margin=-6.0)
    table = office.table(office.documents(FEE), FEES, COLOUR)
    office.fill()
    unsure, refused = office.lines(table)[0].cells

    assert (unsure.state, refused.state) == ("unsure", "refused")
    for cell, reason, footnotes in ((unsure, "unsure", {FEE}), (refused, "not_in_sources", set())):
        assert cell.answer is not None
        assert (cell.answer["answered"], cell.answer["verified"], cell.answer["reason"]) == (False, False, reason)
        assert {one["cited_text"] for one in cell.answer["citations"]} == footnotes


def test_bills_of_rows_and_table_equal_the_ledger(office: Office) -> None:
    table = office.table(office.documents(FEE, RAISED, PETS))
    office.fill()
    calls, lines = office.rows(), office.lines(table)
    bill = office.tables.get(table.id, principal=ROOT)[1]

    assert sum(call.input_tokens + call.output_tokens for call in calls) == bill.tokens > 0
    assert sum(row.bill.tokens for row in lines) == bill.tokens
    assert bill.unpriced == len(calls)
    for row in lines:
        ids = {cell.answer["id"] for cell in row.cells if cell.answer}
        assert row.bill.tokens == sum(call.input_tokens for call in calls if call.request_id in ids)
    assert {call.key_id for call in calls} == {office.key.id}


def test_one_cell_that_fails_harms_no_other_and_is_tried_again(office: Office) -> None:
    bad, good = office.documents(FEE, RAISED)
    broken = True

    def before(document_id: str) -> None:
        if broken and document_id == bad:
            raise StoreUnavailable("The database is busy.")

    office.passages.before = before
    table = office.table([bad, good], FEES)
    assert office.fill() == 2
    assert office.states(table) == [["waiting"], ["answered"]]
    assert office.lines(table)[0].cells[0].error == "The database is busy."
    assert office.fill() == 0, "not at once"
    for _ in range(MOST_ATTEMPTS):
        office.fill(later=300)
    assert office.states(table) == [["failed"], ["answered"]]
    assert office.now_is(table).state == "finished"

    broken, kept = False, office.lines(table)[1]
    office.tables.resume(table.id, principal=office.ann)
    assert office.fill() == 1, "only what failed"
    assert office.states(table) == [["answered"], ["answered"]]
    assert office.lines(table)[1] == kept


def test_an_error_of_ours_is_not_shown(office: Office) -> None:
    (document,) = office.documents(FEE)

    def before(_: str) -> None:
        raise RuntimeError("/a/path of ours")

    office.passages.before = before
    table = office.table([document], FEES)
    office.fill()

    assert office.lines(table)[0].cells[0].error == "The question could not be answered."


def test_a_deleted_document_fails_and_the_rest_is_asked(office: Office) -> None:
    gone, left = office.documents(FEE, RAISED)
    table = office.table([gone, left], FEES)
    office.library.documents.delete(gone, tenant_id="acme")
    office.fill()

    row, other = office.lines(table)
    assert (row.cells[0].state, row.cells[0].error) == ("failed", "There is no such document.")
    assert (row.filename, other.cells[0].state) == ("0.txt", "answered")


def test_a_document_that_is_not_ingested_yet_is_asked_later(office: Office) -> None:
    waiting = office.library.upload(FEE, filename="late.txt")
    office.passages.put(waiting.id, FEE)
    table = office.table([waiting.id], FEES)
    office.fill()
    assert office.states(table) == [["waiting"]]
    office.library.commit(office.library.claim(), [FEE])
    office.fill(later=60)

    assert office.states(table) == [["answered"]]


def test_a_revoked_key_stops_the_table_with_words(office: Office) -> None:
    table = office.table(office.documents(FEE, PETS))
    office.state.access.keys.revoke(office.key.id, tenant_id="acme")
    assert office.fill() == 1

    found = office.now_is(table)
    assert (found.state, found.state_detail, found.cells) == ("stopped", "The key is revoked.", {"waiting": 4})
    assert (office.passages.scopes, office.rows()) == ([], [])
    assert office.fill(later=1000) == 0


def test_a_key_that_lost_the_collection_reads_no_document_of_it(office: Office) -> None:
    other = CollectionRepository(office.state.database).create("acme", "other")
    office.state.access.keys.update(office.key.id, tenant_id="acme", collections=(office.library.collection_id,))
    limited = Principal("acme", "ann", office.key.id, Role.READER, (office.library.collection_id,))
    table = office.table(office.documents(FEE), FEES, principal=limited)
    office.state.access.keys.update(office.key.id, tenant_id="acme", collections=(other.id,))
    office.fill()

    assert office.lines(table)[0].cells[0].error == "There is no such document."
    assert office.passages.scopes == []


def test_a_budget_without_room_stops_the_table_and_it_goes_on_when_resumed(office: Office) -> None:
    table = office.table(office.documents(FEE, PETS), FEES)
    budget = office.state.usage.budgets.create(
        Principal("acme", "root", "key_root", Role.ADMIN),
        scope_type="key",
        scope_id=office.key.id,
        unit="tokens",
        limit=0,
        period="total",
        tz="UTC",
        enforcement="hard",
    )
    office.fill()
    found = office.now_is(table)
    assert (found.state, found.cells) == ("stopped", {"waiting": 2})
    assert found.state_detail
    assert "budget" in found.state_detail

    office.state.usage.budgets.update(ROOT, budget.id, limit=10**9)
    assert office.tables.resume(table.id, principal=office.ann).state == "running"
    assert office.fill() == 2
    assert office.now_is(table).state == "finished"


def test_a_rate_limit_has_the_table_wait_and_costs_no_attempt(office: Office) -> None:
    (document,) = office.documents(FEE)
    limited = True

    def before(_: str) -> None:
        if limited:
            raise RateLimited("Too many tokens.", name="tokens", limit=1, window_s=60, retry_after_s=30)

    office.passages.before = before
    table = office.table([document], FEES)
    for _ in range(2 * MOST_ATTEMPTS):
        assert office.fill(later=30) == 1
        assert office.fill(later=0) == 0
    assert (office.now_is(table).state, office.now_is(table).state_detail) == ("running", "Too many tokens.")

    limited = False
    office.fill(later=30)
    assert office.states(table) == [["answered"]]
    assert office.now_is(table).state_detail is None


def test_after_a_restart_a_finished_cell_is_not_asked_again(office: Office) -> None:
    table = office.table(office.documents(FEE, RAISED), FEES)
    claimed = office.cells_of("boot_1").claim()
    assert claimed is not None, "it ends before it has an answer"
    office.table_runner(office.cells_of("boot_2", gone=["boot_1"])).work()
    before = office.lines(table)
    assert office.states(table) == [["answered"], ["answered"]]
    assert before[0].cells[0].answer is not None
    assert before[0].cells[0].answer["id"] != claimed.request_id, "what the dead process asked is asked anew"
    assert office.table_runner(office.cells_of("boot_3", gone=["boot_1", "boot_2"])).work() == 0
    assert office.lines(table) == before
    assert len(office.passages.scopes) == 2


def test_a_cell_that_ends_the_server_each_time_is_given_up(office: Office) -> None:
    bad, good = office.documents(FEE, RAISED)
    table = office.table([bad, good], FEES)
    office.cells_of("boot_0").claim()
    assert office.table_runner(office.cells_of("boot_1")).work() == 1, "the other one, since that process lives"
    for at in range(1, MOST_ATTEMPTS):
        claimed = office.cells_of(f"boot_{at}", gone=[f"boot_{one}" for one in range(at)]).claim()
        assert claimed is not None
        assert (claimed.document_id, claimed.attempts) == (bad, at + 1)
    office.table_runner(office.cells_of("boot_9", gone=[f"boot_{one}" for one in range(9)])).work()

    assert office.states(table) == [["failed"], ["answered"]]
    assert office.lines(table)[0].cells[0].error == "The server ended each time while this was asked."


def test_a_table_that_is_deleted_meanwhile_cancels_its_cell(office: Office) -> None:
    (document,) = office.documents(FEE)
    table = office.table([document], FEES)
    office.passages.before = lambda _: office.tables.delete(table.id, principal=office.ann)
    assert office.fill() == 1

    assert office.tables.list(office.ann, limit=9) == ((), None)
    with pytest.raises(NotFound):
        office.tables.get(table.id, principal=office.ann)


def test_a_stopped_process_leaves_the_cell_waiting_without_an_attempt(office: Office) -> None:
    table = office.table(office.documents(FEE), FEES)
    searching, ended = Event(), Event()

    def before(_: str) -> None:
        searching.set()
        assert ended.wait(10)

    def stopping() -> bool:
        if searching.is_set():
            ended.set()
        return searching.is_set()

    office.passages.before = before
    assert office.table_runner().work(stopping=stopping) == 1
    assert office.states(table) == [["waiting"]]
    office.passages.before = lambda _: None
    again = office.cells_of("boot_1").claim()
    assert again is not None
    assert again.attempts == 1


def test_tables_are_asked_in_turns(office: Office) -> None:
    documents = office.documents(FEE, RAISED, PETS)
    tables = [office.table(documents, FEES) for _ in range(2)]
    order: list[list[int]] = []
    office.passages.before = lambda _: order.append([office.now_is(one).cells.get("asking", 0) for one in tables])
    assert office.fill() == 6

    assert order == [[1, 0], [0, 1]] * 3


def test_limits_of_documents_and_tables(state: State) -> None:
    office = Office(state, most=1, most_documents=2)
    documents = office.documents(FEE, RAISED, PETS)
    for refused in (documents, []):
        with pytest.raises(InvalidRequest):
            office.table(refused)
    with pytest.raises(NotFound):
        office.table([documents[0], "doc_9"])
    with pytest.raises(InvalidRequest):
        office.table(documents[:1], FEES, FEES)
    assert office.table([documents[0], documents[0]]).rows == 1
    with pytest.raises(Conflict):
        office.table(documents[:1])
