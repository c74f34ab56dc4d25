"""app.db.answer_citations stores the citations of an answer once, before its ledger period closes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.db.answer_citations import AnswerCitationRepository
from app.db.session import Database
from app.db.tables.ledger import answer_citation
from app.usage.ledger.ledger import Ledger
from tests.app.db.samples import Library


def rows(database: Database) -> list[tuple[object, ...]]:
    column = answer_citation.c
    order = (column.request_id, column.document_id, column.tenant_id, column.num_citations, column.cited_at)
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(sa.select(*order).order_by(*order))]


def test_an_answer_is_a_row_for_each_document_it_cites(database: Database) -> None:
    citations = AnswerCitationRepository(database, clock=lambda: 1_763_600_000.000_001)

    citations.record("req_1", tenant_id="t1", citations={"d2": 1, "d1": 3})

    at = 1_763_600_000_000_001
    assert rows(database) == [("req_1", "d1", "t1", 3, at), ("req_1", "d2", "t1", 1, at)]


def test_what_is_written_down_stays_as_it_is(database: Database) -> None:
    AnswerCitationRepository(database, clock=lambda: 5.0).record("req_1", tenant_id="t1", citations={"d1": 3})
    before = rows(database)

    AnswerCitationRepository(database, clock=lambda: 6.0).record("req_1", tenant_id="t1", citations={"d1": 4})

    assert rows(database) == before


def test_the_same_answer_from_many_threads_is_there_once(database: Database) -> None:
    citations = AnswerCitationRepository(database)
    documents = {f"d{number}": number + 1 for number in range(20)}

    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: citations.record("req_1", tenant_id="t1", citations=documents), range(16)):
            pass

    assert [row[1:4] for row in rows(database)] == sorted((name, "t1", times) for name, times in documents.items())


def test_the_ledger_is_not_closed_over_a_citation_that_is_being_written(database: Database) -> None:
    """What reads up to `Ledger.moment` reads the same at any time, what answers cite included."""
    reached, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def clock() -> float:
        reached.set()
        assert go_on.wait(20)
        return 5.0

    def close() -> int:
        moment = ledger.moment()
        closed.set()
        return moment

    ledger = Ledger(database, "b", lambda: 5.0)
    citations = AnswerCitationRepository(database, clock=clock)
    with ThreadPoolExecutor(2) as pool:
        written = pool.submit(citations.record, "req_1", tenant_id="t1", citations={"d1": 1})
        assert reached.wait(20)
        moment = pool.submit(close)
        assert not closed.wait(0.3), "the moment waits for the citation"
        go_on.set()
        written.result(20)
        moment.result(20)
    assert len(rows(database)) == 1


def test_an_answer_without_citations_is_no_row(sqlite_database: Database) -> None:
    with pytest.raises(AssertionError):
        AnswerCitationRepository(sqlite_database).record("req_1", tenant_id="t1", citations={})


def test_documents_whose_live_version_is_newer_are_told_with_it(database: Database) -> None:
    library, other = Library(database), Library(database, tenant_id="t2")
    same, changed, foreign = library.index("a"), library.index("b"), other.index("c")
    library.index_again(changed, "bb")
    other.index_again(foreign, "cc")
    waiting = library.upload("d")

    newer = AnswerCitationRepository(database).newer_versions(
        {same.id: 1, changed.id: 1, foreign.id: 1, waiting.id: 1, "doc_gone": 1}, tenant_id="t1"
    )

    assert newer == {changed.id: 2}
