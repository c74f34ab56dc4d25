"""A call is admitted by every budget that applies, in one transaction with its ledger row, or refused."""

from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.budgets import budget_hold, budget_window
from app.db.tables.ledger import usage_event
from app.db.tables.usage_columns import Measures
from app.errors import BudgetExceeded
from app.types import Operation, Principal, Role, Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.entry import Entry
from app.usage.ledger.ledger import Ledger
from tests.app.usage.budgets.samples import ADMIN, all_windows, price, set_budget
from tests.app.usage.samples import Clock, reservation

CALL = 120  # tokens of the sample's prompt and longest answer
DONE = Settlement(status=UsageStatus.COMPLETED, output_tokens=41, delivered_tokens=40)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budgets(database: Database, clock: Clock) -> BudgetRepository:
    return BudgetRepository(database, AuditLog(database, clock=clock), clock=clock)


@pytest.fixture
def ledger(database: Database, clock: Clock) -> Ledger:
    return Ledger(database, "boot-1", clock, observers=(Budgets(),))


def counts(database: Database, table: sa.Table) -> int:
    with database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_the_most_a_call_can_take_is_held_until_it_settles_what_it_took(
    ledger: Ledger, budgets: BudgetRepository
) -> None:
    made = set_budget(budgets, limit=200)
    ledger.reserve(reservation())
    held = budgets.get(made.id, tenant_id="t1").window
    ledger.settle("req_1:1", DONE)
    settled = budgets.get(made.id, tenant_id="t1").window

    assert (held.reserved, held.settled) == (CALL, 0)
    assert (settled.reserved, settled.settled) == (0, 20 + 41)


def test_a_limit_is_reached_exactly_and_not_passed(ledger: Ledger, budgets: BudgetRepository) -> None:
    made = set_budget(budgets, limit=2 * CALL)
    ledger.reserve(reservation("req_1:1"))
    ledger.reserve(reservation("req_2:1"))

    with pytest.raises(BudgetExceeded) as refusal:
        ledger.reserve(reservation("req_3:1", max_output_tokens=0))
    assert refusal.value.budget_id == made.id
    assert (refusal.value.limit, refusal.value.used, refusal.value.reserved) == (2 * CALL, 0, 2 * CALL)
    assert made.window.end is not None
    assert refusal.value.reset_at == made.window.end // 1_000_000


def test_a_refusal_leaves_nothing_behind(ledger: Ledger, budgets: BudgetRepository, database: Database) -> None:
    roomy = set_budget(budgets, limit=1000)
    set_budget(budgets, limit=CALL - 1, scope_type="user", scope_id="u1")

    with pytest.raises(BudgetExceeded):
        ledger.reserve(reservation())

    assert budgets.get(roomy.id, tenant_id="t1").window.reserved == 0
    assert [counts(database, table) for table in (usage_event, budget_hold, budget_window)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("scope_type", "scope_id", "counted"),
    [
        ("tenant", "t1", True),
        ("user", "u1", True),
        ("user", "u2", False),
        ("key", "k1", True),
        ("key", "k2", False),
        ("collection", "col_1", True),
        ("collection", "col_2", True),
        ("collection", "col_3", False),
    ],
)
def test_a_call_counts_against_its_tenant_user_key_and_collections(
    ledger: Ledger, budgets: BudgetRepository, scope_type: str, scope_id: str, counted: bool
) -> None:
    made = set_budget(budgets, limit=1000, scope_type=scope_type, scope_id=scope_id)
    ledger.reserve(replace(reservation(), collection_ids=("col_1", "col_2")))

    assert budgets.get(made.id, tenant_id="t1").window.reserved == (CALL if counted else 0)


def test_a_user_budget_does_not_count_the_same_user_id_of_another_tenant(
    ledger: Ledger, budgets: BudgetRepository
) -> None:
    rival = Principal("t2", "u1", "k1", Role.ADMIN)
    theirs = set_budget(budgets, principal=rival, limit=0, scope_type="user", scope_id="u1")
    ledger.reserve(reservation())

    assert budgets.get(theirs.id, tenant_id="t2").window.reserved == 0


def test_a_call_without_a_user_or_key_counts_against_no_budget(ledger: Ledger, budgets: BudgetRepository) -> None:
    set_budget(budgets, limit=0)
    ledger.reserve(
        reservation(user_id="", key_id="", operation=Operation.EMBED_DOC, input_tokens=50, max_output_tokens=0)
    )

    assert ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))


def test_a_soft_budget_refuses_nothing_and_counts(ledger: Ledger, budgets: BudgetRepository) -> None:
    made = set_budget(budgets, limit=1, enforcement="soft")
    ledger.reserve(reservation())
    ledger.settle("req_1:1", DONE)

    assert budgets.get(made.id, tenant_id="t1").window.settled == 61


def test_money_is_held_at_the_price_of_the_longest_answer(
    ledger: Ledger, budgets: BudgetRepository, database: Database
) -> None:
    price(database, input=3, output=5)
    made = set_budget(budgets, unit="cost", limit=20 * 3 + 100 * 5)
    ledger.reserve(reservation())
    held = budgets.get(made.id, tenant_id="t1").window.reserved
    with pytest.raises(BudgetExceeded):
        ledger.reserve(reservation("req_2:1"))
    ledger.settle("req_1:1", DONE)
    window = budgets.get(made.id, tenant_id="t1").window

    assert held == 20 * 3 + 100 * 5
    assert (window.reserved, window.settled) == (0, 20 * 3 + 41 * 5)


def test_a_soft_budget_in_money_holds_nothing_for_a_model_without_a_price(
    ledger: Ledger, budgets: BudgetRepository
) -> None:
    made = set_budget(budgets, unit="cost", limit=100, enforcement="soft")
    ledger.reserve(reservation())
    ledger.settle("req_1:1", DONE)

    assert (made.window.reserved, budgets.get(made.id, tenant_id="t1").window.settled) == (0, 0)


def test_a_call_larger_than_the_whole_limit_is_told_that_waiting_does_not_help(
    ledger: Ledger, budgets: BudgetRepository
) -> None:
    set_budget(budgets, limit=CALL - 1)

    with pytest.raises(BudgetExceeded, match="alone") as refusal:
        ledger.reserve(reservation())
    assert refusal.value.reset_at is None


def test_a_server_that_counts_otherwise_is_booked_as_it_counts(ledger: Ledger, budgets: BudgetRepository) -> None:
    made = set_budget(budgets, limit=CALL)
    ledger.reserve(reservation())
    ledger.settle("req_1:1", replace(DONE, input_tokens=90, output_tokens=100, delivered_tokens=100))

    assert budgets.get(made.id, tenant_id="t1").window.settled == 190, "above the limit, and true"


def test_the_end_of_a_period_makes_room(ledger: Ledger, budgets: BudgetRepository, clock: Clock) -> None:
    made = set_budget(budgets, limit=CALL, period="minute")
    ledger.reserve(reservation("req_1:1"))
    assert made.window.end is not None
    clock.now = made.window.end / 1_000_000
    ledger.reserve(reservation("req_2:1"))

    assert [window.reserved for window in all_windows(budgets, made.id)] == [CALL, CALL]


def test_what_a_dead_process_held_is_given_back(
    database: Database, ledger: Ledger, budgets: BudgetRepository, clock: Clock
) -> None:
    """Invariant 9."""
    made = set_budget(budgets, limit=1000)
    ledger.reserve(reservation("req_1:1"))
    ledger.reserve(reservation("req_2:1"))
    ledger.checkpoint("req_2:1", 7)

    assert Ledger(database, "boot-2", clock, observers=(Budgets(),)).recover() == 2

    window = budgets.get(made.id, tenant_id="t1").window
    assert (window.reserved, window.settled) == (0, 20 + 27)
    with database.read() as connection:
        still_held = sa.select(sa.func.count()).where(budget_hold.c.settled.is_(None))
        assert connection.execute(still_held).scalar_one() == 0


def test_a_call_inside_another_transaction_is_refused_alone(
    database: Database, ledger: Ledger, budgets: BudgetRepository
) -> None:
    made = set_budget(budgets, limit=CALL)
    with database.write() as connection:
        for event_id in ("req_1:1", "req_2:1"):
            try:
                with connection.begin_nested():
                    ledger.reserve_in(connection, reservation(event_id))
            except BudgetExceeded:
                refused = event_id

    assert refused == "req_2:1"
    assert len(ledger.usage("req_1")) == 1
    assert ledger.usage("req_2") == ()
    assert budgets.get(made.id, tenant_id="t1").window.reserved == CALL


def test_a_call_that_is_said_twice_to_have_ended_gives_back_once(
    database: Database, ledger: Ledger, budgets: BudgetRepository, clock: Clock
) -> None:
    made = set_budget(budgets, limit=1000)
    for event_id in ("req_1:1", "req_2:1"):
        ledger.reserve(reservation(event_id))
    entry = Entry(
        event_id="req_1:1",
        tenant_id="t1",
        project_id="",
        user_id="u1",
        key_id="k1",
        model="m1",
        operation=Operation.CHAT,
        status="completed",
        at=round(clock.now * 1_000_000),
        calls=1,
        measures=Measures(input_tokens=20, output_tokens=5, output_delivered_tokens=5),
        cost_pico=None,
    )
    with database.write() as connection:
        Budgets().settle_in(connection, entry)
        Budgets().settle_in(connection, entry)
        Budgets().settle_in(connection, replace(entry, event_id="req_2:1", calls=0, status="adjustment"))

    window = budgets.get(made.id, tenant_id="t1").window
    assert (window.reserved, window.settled) == (CALL, 25), "and an adjustment gives nothing back"


def test_the_administrator_of_a_tenant_is_not_above_its_budget(ledger: Ledger, budgets: BudgetRepository) -> None:
    set_budget(budgets, limit=10_000)
    set_budget(budgets, limit=0, scope_type="user", scope_id=ADMIN.user_id)

    with pytest.raises(BudgetExceeded):
        ledger.reserve(reservation(user_id=ADMIN.user_id))
