"""Budgets under a thousand callers at once, and under administrators who change them while calls run."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.budgets import budget_hold
from app.db.tables.ledger import usage_event
from app.errors import BudgetExceeded
from app.types import Operation, Settlement, UsageStatus
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.ledger import Ledger
from tests.app.usage.budgets.samples import ADMIN, all_windows, set_budget
from tests.app.usage.samples import Clock, reservation
from tests.databases import database, migrated_file, postgres_database, sqlite_database

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

THREADS = 8
CALLS = 1000
ADMITTED = 50
EACH = 120  # tokens of the sample's prompt and longest answer
PATIENCE_SECONDS = 60.0
DONE = Settlement(status=UsageStatus.COMPLETED, output_tokens=41)


def repository(database: Database, clock: Clock | None = None) -> BudgetRepository:
    clock = clock or Clock()
    return BudgetRepository(database, AuditLog(database, clock=clock), clock=clock)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def lock_waits(database: Database) -> int:
    """How many transactions wait for a lock another one holds, as PostgreSQL says."""
    with database.read() as connection:
        waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")
        return int(connection.execute(waiting).scalar_one())


class Crowd:
    """Callers that reserve through one ledger; counts what became of them, and how many are inside at once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self.inside = 0
        self.most_inside = 0
        self.outcomes: Counter[str] = Counter()

    def reserve(self, number: int) -> None:
        with self._lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        try:
            self._ledger.reserve(reservation(f"req_{number}:1"))
            outcome = "admitted"
        except BudgetExceeded as refusal:
            full = refusal.used + refusal.reserved + EACH > refusal.limit
            outcome = "refused" if full and refusal.reset_at is not None else "refused for no reason"
        with self._lock:
            self.inside -= 1
            self.outcomes[outcome] += 1


def test_f1_of_a_thousand_parallel_reservations_on_a_budget_for_fifty_exactly_fifty_are_admitted(
    database: Database,
) -> None:
    """Contention is made, not hoped for: eight callers stand at a lock that is held before any of them gets through."""
    budgets, ledger = repository(database), Ledger(database, "boot-1", Clock(), observers=(Budgets(),))
    made = set_budget(budgets, limit=ADMITTED * EACH)
    ledger.reserve(reservation("req_first:1"))  # the window exists: nobody waits for its row to be made
    crowd = Crowd(ledger)
    with ThreadPoolExecutor(THREADS) as pool:
        with database.write() as connection:
            ledger.reserve_in(connection, reservation("req_second:1"))
            calls = [pool.submit(crowd.reserve, number) for number in range(CALLS - 2)]
            if database.kind == "postgresql":
                eventually(lambda: lock_waits(database) == THREADS)
            else:  # its one writer is held by us
                eventually(lambda: crowd.most_inside == THREADS)
            assert not crowd.outcomes
        for call in calls:
            call.result()

    assert crowd.most_inside == THREADS
    assert crowd.outcomes == {"admitted": ADMITTED - 2, "refused": CALLS - ADMITTED}
    window = budgets.get(made.id, tenant_id="t1").window
    assert (window.reserved, window.settled) == (ADMITTED * EACH, 0)
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(usage_event)).scalar_one() == ADMITTED


def test_f1_calls_that_come_and_go_never_take_more_than_the_limit(database: Database) -> None:
    """Room that is given back is taken again; what is settled and held stays within the limit at every commit."""
    budgets, ledger = repository(database), Ledger(database, "boot-1", Clock(), observers=(Budgets(),))
    wide = set_budget(budgets, limit=20 * EACH)
    narrow = set_budget(budgets, limit=12 * EACH, scope_type="user", scope_id="u1")
    seen: list[int] = []

    def call(number: int) -> bool:
        event_id = f"req_{number}:1"
        try:
            ledger.reserve(reservation(event_id))
        except BudgetExceeded:
            return False
        window = budgets.get(narrow.id, tenant_id="t1").window
        seen.append(window.reserved + window.settled)
        return ledger.settle(event_id, DONE)

    with ThreadPoolExecutor(THREADS) as pool:
        admitted = sum(pool.map(call, range(150)))

    assert max(seen) <= 12 * EACH
    for made in (wide, narrow):
        window = budgets.get(made.id, tenant_id="t1").window
        assert (window.reserved, window.settled) == (0, admitted * 61)
    assert 12 <= admitted <= 12 * EACH // 61


def test_f2_a_budget_in_money_refuses_what_has_no_price(database: Database) -> None:
    budgets, ledger = repository(database), Ledger(database, "boot-1", Clock(), observers=(Budgets(),))
    set_budget(budgets, unit="cost", limit=10**12, scope_type="user", scope_id="u1")

    with pytest.raises(BudgetExceeded, match="no price") as refusal:
        ledger.reserve(reservation("req_1:1"))
    assert refusal.value.reset_at is None, "no time brings a price"
    ledger.reserve(reservation("req_2:1", user_id="u2"))
    assert ledger.settle("req_2:1", DONE)
    assert ledger.usage("req_2")[0].cost_pico is None


def test_f9_a_call_settles_in_the_window_it_was_reserved_in(database: Database) -> None:
    clock = Clock()
    budgets, ledger = repository(database, clock), Ledger(database, "boot-1", clock, observers=(Budgets(),))
    made = set_budget(budgets, limit=1000, thresholds=(1, 50))
    ledger.reserve(reservation("req_1:1"))
    clock.now += 86_400  # midnight passes while it runs
    ledger.reserve(reservation("req_2:1"))
    ledger.settle("req_1:1", DONE)
    clock.now -= 2 * 86_400  # and the clock is set back
    ledger.settle("req_2:1", DONE)

    windows = all_windows(budgets, made.id)
    assert [(window.reserved, window.settled) for window in windows] == [(0, 61), (0, 61)]
    alerts, _ = AlertRepository(database).list(tenant_id="t1", limit=10)
    assert sorted(alert.window_start for alert in alerts) == sorted(window.start for window in windows)


def test_f9_raised_lowered_and_reset_while_calls_run_it_settles_where_it_belongs(database: Database) -> None:
    budgets, ledger = repository(database), Ledger(database, "boot-1", Clock(), observers=(Budgets(),))
    made = set_budget(budgets, limit=EACH, thresholds=(50,))
    ledger.reserve(reservation("req_1:1"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(reservation("req_2:1"))
    budgets.update(ADMIN, made.id, limit=2 * EACH)
    ledger.reserve(reservation("req_2:1"))
    budgets.update(ADMIN, made.id, limit=1)
    ledger.settle("req_1:1", DONE)
    lowered = budgets.get(made.id, tenant_id="t1").window
    budgets.update(ADMIN, made.id, limit=2 * EACH)
    budgets.reset(ADMIN, made.id)
    ledger.settle("req_2:1", DONE)
    ledger.reserve(reservation("req_3:1"))

    assert (lowered.reserved, lowered.settled) == (EACH, 61), "what runs keeps what it had"
    windows = all_windows(budgets, made.id)
    assert [(window.series, window.reserved, window.settled) for window in windows] == [(2, EACH, 0), (1, 0, 122)]
    alerts, _ = AlertRepository(database).list(tenant_id="t1", limit=10)
    assert [(alert.series, alert.percent, alert.limit) for alert in alerts] == [(1, 50, 1)], "once"


def test_f9_administrators_and_callers_at_once_lose_nothing(database: Database) -> None:
    """Calls of several budgets, settled in several orders, while one of the budgets is changed: no deadlock."""
    budgets, ledger = repository(database), Ledger(database, "boot-1", Clock(), observers=(Budgets(),))
    made = [
        set_budget(budgets, limit=10**6, scope_type=kind, scope_id=name)
        for kind, name in (("tenant", "t1"), ("user", "u1"), ("user", "u2"), ("key", "k1"))
    ]

    def two_in_one(number: int) -> None:
        """As ingestion does: several calls reserved in one transaction, and settled in one, in another order."""
        names = [f"req_{number}_{user}:1" for user in ("u1", "u2")]
        with database.write() as connection:
            for event_id, user_id in zip(names, ("u1", "u2"), strict=True):
                embedding = reservation(
                    event_id,
                    user_id=user_id,
                    operation=Operation.EMBED_DOC,
                    input_tokens=50,
                    max_output_tokens=0,
                )
                ledger.reserve_in(connection, embedding)
        with database.write() as connection:
            for event_id in reversed(names) if number % 2 else names:
                ledger.settle_in(connection, event_id, Settlement(status=UsageStatus.COMPLETED))

    def change(number: int) -> None:
        budgets.update(ADMIN, made[number % len(made)].id, limit=10**6 + number)

    with ThreadPoolExecutor(THREADS) as pool:
        work = [pool.submit(two_in_one, number) for number in range(40)]
        work += [pool.submit(change, number) for number in range(40)]
        for each in work:
            each.result()

    used = [budgets.get(each.id, tenant_id="t1").window for each in made]
    assert [window.settled for window in used] == [4000, 2000, 2000, 4000]
    assert [window.reserved for window in used] == [0, 0, 0, 0]
    with database.read() as connection:
        open_holds = sa.select(sa.func.count()).where(budget_hold.c.settled.is_(None))
        assert connection.execute(open_holds).scalar_one() == 0
