"""Ingestion under a budget: a document without room waits or fails alone; others go on."""

import pytest
import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.tables.ledger import usage_event
from app.errors import BudgetExceeded
from app.jobs.attempt import BUDGET_SECONDS, delay_after, reason
from app.types import Operation
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.ledger import Ledger
from tests.app.db.samples import Library
from tests.app.jobs.bench import Bench, eventually
from tests.app.jobs.test_worker import LONG
from tests.app.usage.budgets.samples import ADMIN, set_budget
from tests.app.usage.samples import reservation
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]


@pytest.fixture
def budgets(sqlite_database):
    return BudgetRepository(sqlite_database, AuditLog(sqlite_database))


@pytest.fixture
def bench(sqlite_database, tmp_path):
    ledger = Ledger(sqlite_database, boot_id="boot-1", observers=(Budgets(),))
    bench = Bench(Library(sqlite_database), tmp_path, ledger=ledger)
    yield bench
    bench.worker.stop()


def refused(*, wait_s: float | None) -> BudgetExceeded:
    reset_at = None if wait_s is None else 1_000_000
    return BudgetExceeded(budget_id="b", unit="tokens", limit=1, used=1, reserved=0, reset_at=reset_at, wait_s=wait_s)


def until_queued_again(bench, document):
    eventually(lambda: bench.library.get(document.id).next_attempt_at is not None)
    return bench.library.get(document.id)


def rows(bench, document) -> int:
    with bench.library.database.read() as connection:
        mine = sa.select(sa.func.count()).where(usage_event.c.request_id == document.job_id)
        return int(connection.execute(mine).scalar_one())


def hold(bench, tokens: int) -> None:
    """A call of the uploader that runs all the while."""
    call = reservation(operation=Operation.EMBED_DOC, input_tokens=tokens, max_output_tokens=0)
    bench.ledger.reserve(call)


def test_in_one_group_a_document_without_room_waits_and_the_others_are_indexed(bench, budgets):
    made = set_budget(budgets, limit=10_000, period="month")
    hold(bench, 9_970)
    small = [bench.upload(f"Record {number}.") for number in range(3)]
    large = bench.upload("The keeper of the lighthouse counted ships all night long. " * 3)
    bench.worker.start()
    indexed = [bench.until(document, "indexed") for document in small]
    waiting = until_queued_again(bench, large)

    assert (waiting.status, waiting.error_code) == ("queued", "budget-exceeded")
    assert waiting.error_detail == "A budget has no room for this document before its next period."
    assert rows(bench, large) == 0, "nothing was reserved, nothing is billed"
    for document in small:
        bench.bill(document)
    window = budgets.get(made.id, tenant_id="t1").window
    assert (window.reserved, window.settled) == (9_970, sum(document.embedding_tokens for document in indexed))


def test_it_waits_until_the_period_ends_and_is_taken_when_the_budget_is_raised(bench, budgets):
    made = set_budget(budgets, limit=10_000, period="month")
    hold(bench, 9_999)
    bench.worker.start()
    document = bench.upload("Record one, and a little more.")
    waiting = until_queued_again(bench, document)
    assert made.window.end is not None
    budgets.update(ADMIN, made.id, limit=20_000)

    assert waiting.next_attempt_at == pytest.approx(made.window.end / 1_000_000, abs=61)
    assert bench.until(document, "indexed").error_code is None


def test_a_large_document_without_room_waits_too(bench, budgets):
    set_budget(budgets, limit=10_000, period="month")
    hold(bench, 9_900)
    bench.worker.start()
    large = bench.upload(LONG)
    waiting = until_queued_again(bench, large)
    bench.until(bench.upload("A small one."), "indexed")

    assert waiting.error_code == "budget-exceeded"


@pytest.mark.parametrize("period", ["total", "month"])
def test_a_document_that_no_later_period_could_admit_fails_with_the_reason(bench, budgets, period):
    set_budget(budgets, limit=1, period=period)
    bench.worker.start()
    failed = bench.until(bench.upload("Far too much for this budget."), "failed")

    assert failed.error_code == "budget-exceeded"
    assert failed.error_detail == "A budget has no room for this document, and it has no next period."


def test_a_collections_budget_stops_its_documents_only(bench, budgets):
    set_budget(budgets, limit=1, period="total", scope_type="collection", scope_id=bench.library.collection_id)
    elsewhere = bench.library.collections.create(tenant_id="t1", name="elsewhere").id
    bench.worker.start()
    stopped = bench.upload("Stopped here.")
    free = bench.upload("Free there.", collection_id=elsewhere)

    assert bench.until(stopped, "failed").error_code == "budget-exceeded"
    bench.until(free, "indexed")


def test_a_budget_is_waited_for_a_minute_at_least():
    assert delay_after(refused(wait_s=1.0), attempts=1) == BUDGET_SECONDS
    assert delay_after(refused(wait_s=500.0), attempts=40) == 500
    assert delay_after(refused(wait_s=None), attempts=1) is None


def test_a_document_waiting_for_a_budget_has_the_code_budget_exceeded(sqlite_database):
    assert reason(refused(wait_s=5.0))[0] == "budget-exceeded"
