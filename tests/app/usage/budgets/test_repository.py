"""app.usage.budgets: administrators create and change budgets of their own tenant; each change is audited."""

import pytest
import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.documents import job
from app.errors import InvalidRequest, NotFound
from app.types import JobStatus, Principal, Role, Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.ledger import Ledger
from tests.app.db.samples import Library
from tests.app.usage.budgets.samples import ADMIN, all_windows, set_budget
from tests.app.usage.samples import Clock, reservation

RIVAL = Principal("t2", "root", "key_rival", Role.ADMIN)
DONE = Settlement(status=UsageStatus.COMPLETED, output_tokens=41)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def audit(database: Database, clock: Clock) -> AuditLog:
    return AuditLog(database, clock=clock)


@pytest.fixture
def budgets(database: Database, audit: AuditLog, clock: Clock) -> BudgetRepository:
    return BudgetRepository(database, audit, clock=clock)


@pytest.fixture
def ledger(database: Database, clock: Clock) -> Ledger:
    return Ledger(database, "boot-1", clock, observers=(Budgets(),))


def acts(audit: AuditLog) -> list[tuple[str, dict[str, object]]]:
    """What the tenant's administrators did, in order."""
    entries, _ = audit.list(tenant_id="t1", limit=100)
    return [(entry.action, entry.detail) for entry in reversed(entries)]


def test_a_budget_is_kept_as_it_was_set(budgets: BudgetRepository, clock: Clock) -> None:
    made = set_budget(budgets, limit=500, scope_type="user", scope_id="u1", thresholds=(100, 80, 80))

    assert budgets.get(made.id, tenant_id="t1") == made
    assert (made.limit, made.thresholds, made.series, made.created_by) == (500, (80, 100), 1, "root")
    assert made.created_at == round(clock.now * 1_000_000)
    assert made.window.start <= made.created_at < (made.window.end or 0)


def test_every_change_is_in_the_audit_log_with_what_was_before(budgets: BudgetRepository, audit: AuditLog) -> None:
    made = set_budget(budgets, limit=500, webhook_url="https://hooks.example/T0/secret")
    budgets.update(ADMIN, made.id, limit=900)
    budgets.update(ADMIN, made.id, enforcement="soft", thresholds=(70,))
    budgets.update(ADMIN, made.id)
    budgets.reset(ADMIN, made.id)
    budgets.delete(ADMIN, made.id)

    assert [action for action, _ in acts(audit)] == [
        "budget.create",
        "budget.update",
        "budget.update",
        "budget.reset",
        "budget.delete",
    ]
    details = [detail for _, detail in acts(audit)]
    assert details[1] == {"before": {"limit_value": 500}, "after": {"limit_value": 900}}
    assert details[2]["after"] == {"enforcement": "soft", "thresholds": [70]}
    assert details[3] == {"series": 1, "used": 0, "reserved": 0}
    assert "secret" not in str(details), "the address of a webhook may hold one"


def test_another_tenants_budget_does_not_exist(budgets: BudgetRepository) -> None:
    made = set_budget(budgets, limit=500)

    for attempt in (
        lambda: budgets.get(made.id, tenant_id="t2"),
        lambda: budgets.update(RIVAL, made.id, limit=1),
        lambda: budgets.reset(RIVAL, made.id),
        lambda: budgets.delete(RIVAL, made.id),
        lambda: budgets.windows(made.id, tenant_id="t2", limit=10),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert budgets.list(tenant_id="t2") == ()
    assert budgets.get(made.id, tenant_id="t1").limit == 500


def test_a_deleted_budget_is_gone_and_its_calls_still_settle(budgets: BudgetRepository, ledger: Ledger) -> None:
    made = set_budget(budgets, limit=500)
    ledger.reserve(reservation("req_1:1"))
    budgets.delete(ADMIN, made.id)
    ledger.reserve(reservation("req_2:1", max_output_tokens=600))

    assert ledger.settle("req_1:1", DONE)
    assert ledger.settle("req_2:1", DONE)
    assert budgets.list(tenant_id="t1") == ()
    with pytest.raises(NotFound):
        budgets.get(made.id, tenant_id="t1")


def test_a_reset_begins_another_count_and_keeps_the_one_before(budgets: BudgetRepository, ledger: Ledger) -> None:
    made = set_budget(budgets, limit=200)
    ledger.reserve(reservation("req_1:1"))
    assert budgets.reset(ADMIN, made.id).window.reserved == 0
    ledger.reserve(reservation("req_2:1"))
    ledger.settle("req_1:1", DONE)

    windows = all_windows(budgets, made.id)
    assert [(window.series, window.reserved, window.settled) for window in windows] == [(2, 120, 0), (1, 0, 61)]


def test_windows_come_page_by_page_newest_first(budgets: BudgetRepository, ledger: Ledger, clock: Clock) -> None:
    made = set_budget(budgets, limit=200, period="minute")
    for number in range(5):
        ledger.reserve(reservation(f"req_{number}:1"))
        clock.now += 60
    first, cursor = budgets.windows(made.id, tenant_id="t1", limit=2)
    second, cursor = budgets.windows(made.id, tenant_id="t1", limit=2, cursor=cursor)
    third, end = budgets.windows(made.id, tenant_id="t1", limit=2, cursor=cursor)

    assert [*first, *second, *third] == list(all_windows(budgets, made.id))
    assert end is None
    with pytest.raises(InvalidRequest):
        budgets.windows(made.id, tenant_id="t1", limit=2, cursor="nonsense")


def test_a_caller_sees_the_budgets_that_can_stop_him(budgets: BudgetRepository) -> None:
    whole = set_budget(budgets, limit=1)
    user = set_budget(budgets, limit=2, scope_type="user", scope_id="u1")
    key = set_budget(budgets, limit=3, scope_type="key", scope_id="k1")
    collection = set_budget(budgets, limit=4, scope_type="collection", scope_id="col_1")
    set_budget(budgets, limit=5, scope_type="user", scope_id="u2")
    set_budget(budgets, principal=RIVAL, limit=6)

    free = Principal("t1", "u1", "k1", Role.READER)
    limited = Principal("t1", "u3", "k3", Role.READER, collections=("col_1",))
    assert {found.id for found in budgets.of(free)} == {whole.id, user.id, key.id}
    assert {found.id for found in budgets.of(limited)} == {whole.id, collection.id}


@pytest.mark.parametrize("change", ["update", "reset", "delete"])
def test_ingestion_that_waits_for_room_is_tried_at_once(
    database: Database, budgets: BudgetRepository, clock: Clock, change: str
) -> None:
    library = Library(database)
    made = set_budget(budgets, limit=1)
    waiting, _ = library.upload("one"), library.upload("two")
    for code in ("budget-exceeded", "parser-crashed"):
        library.jobs.postpone(library.claim(), seconds=10**6, code=code, detail="Later.")

    if change == "update":
        budgets.update(ADMIN, made.id, limit=1000)
    else:
        getattr(budgets, change)(ADMIN, made.id)

    with database.read() as connection:
        due = sa.select(job.c.id).where(job.c.status == JobStatus.QUEUED, job.c.next_attempt_at <= clock.now)
        assert connection.execute(due).scalars().all() == [waiting.job_id]
