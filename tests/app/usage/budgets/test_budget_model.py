"""Calls, budgets and their administrators in any order equal a model in memory."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.budgets import budget, budget_alert, budget_hold, budget_window
from app.errors import BudgetExceeded
from app.types import Reservation, Settlement, UsageStatus
from app.usage.budgets.alert_delivery import AlertDelivery
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.budgets.windows import edges_of
from app.usage.ledger.ledger import Ledger
from tests.app.usage.budgets.samples import ADMIN, set_budget
from tests.app.usage.samples import Clock, reservation
from tests.examples import examples

INPUT = 20  # tokens of the sample's prompt
USERS = st.sampled_from(["u1", "u2"])
LIMITS = st.integers(0, 400)
THRESHOLDS = (50, 100)
BERLIN = ZoneInfo("Europe/Berlin")
Place = tuple[str, int, int]  # budget, series, start of the window


@dataclass
class Limit:
    """A budget as the model has it."""

    user: str | None
    limit: int
    period: str
    hard: bool
    series: int = 1
    deleted: bool = False
    ceiling: dict[Place, int] = field(default_factory=dict)  # the most a window may hold by its limits so far

    def applies(self, user: str) -> bool:
        return not self.deleted and self.user in {None, user}


class Admission(RuleBasedStateMachine):
    """One tenant, two users, and an administrator who changes his mind."""

    migrated: ClassVar[Path]

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(self.migrated, self.folder / "footnote.db")
        self.database = Database.open(f"sqlite:///{self.folder / 'footnote.db'}")
        self.clock = Clock()
        self.budgets = BudgetRepository(self.database, AuditLog(self.database), clock=self.clock)
        self.posted: list[object] = []
        self.delivery = AlertDelivery(
            AlertRepository(self.database, clock=self.clock),
            lambda _, body: self.posted.append(body["id"]),
            currency="usd",
        )
        self.ledger = Ledger(
            self.database, "boot-1", self.clock, observers=(Budgets(on_refusal=self.delivery.refused),)
        )
        self.limits: dict[str, Limit] = {}
        self.open: dict[str, list[tuple[Place, int]]] = {}
        self.reserved: Counter[Place] = Counter()
        self.settled: Counter[Place] = Counter()
        self.passed: set[tuple[str, int, int, int]] = set()
        self.alerts: dict[tuple[str, int, int, int], tuple[int, int]] = {}
        self.calls = 0
        self.latest = 0  # the ledger's clock stands still where the administrator's is put back

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            shutil.rmtree(self.folder)

    @precondition(lambda self: len(self.limits) < 4)
    @rule(
        user=st.none() | USERS,
        limit=LIMITS,
        period=st.sampled_from(["minute", "day", "month", "total"]),
        hard=st.booleans(),
    )
    def make(self, user: str | None, limit: int, period: str, hard: bool) -> None:
        made = set_budget(
            self.budgets,
            scope_type="tenant" if user is None else "user",
            scope_id=user,
            limit=limit,
            period=period,
            enforcement="hard" if hard else "soft",
            thresholds=THRESHOLDS,
            webhook_url="https://example.com/",
        )
        self.limits[made.id] = Limit(user, limit, period, hard)

    @rule(user=USERS, most=st.integers(0, 120))
    def ask(self, user: str, most: int) -> None:
        amount = INPUT + most
        self._look_at_the_clock()
        places = self._places(user)
        refusing = [place for place in places if not self._room(place, amount)]
        self.calls += 1
        event_id = f"req_{self.calls}:1"
        try:
            self.ledger.reserve(reservation(event_id, user_id=user, max_output_tokens=most))
        except BudgetExceeded as error:
            refusal: BudgetExceeded | None = error
        else:
            refusal = None
        if refusal is not None:
            first = min(refusing)
            assert refusal.budget_id == first[0]
            self.passed.add((*first, max(THRESHOLDS)))
            return
        assert not refusing
        self.open[event_id] = [(place, amount) for place in places]
        for place in places:
            self.reserved[place] += amount
            limit = self.limits[place[0]]
            limit.ceiling[place] = max(limit.ceiling.get(place, 0), limit.limit)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), counted=st.integers(0, 60))
    def settle(self, data: st.DataObject, counted: int) -> None:
        """Any call, in any order, with any count of the prompt, also a larger one than was reserved."""
        event_id = data.draw(st.sampled_from(sorted(self.open)))
        holds = self.open.pop(event_id)
        self._look_at_the_clock()
        self.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, input_tokens=counted))
        (row,) = self.ledger.usage(event_id.partition(":")[0])
        for place, amount in holds:
            self.reserved[place] -= amount
            self.settled[place] += row.input_tokens
            limit = self.limits[place[0]]
            limit.ceiling[place] = limit.ceiling.get(place, 0) + max(0, row.input_tokens - amount)
            if not limit.deleted and limit.series == place[1] and self.settled[place]:
                self.passed.update(
                    (*place, percent) for percent in THRESHOLDS if self.settled[place] * 100 >= percent * limit.limit
                )
        assert not self.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED)), "once"

    @precondition(lambda self: self._living())
    @rule(data=st.data(), limit=LIMITS)
    def raise_or_lower(self, data: st.DataObject, limit: int) -> None:
        budget_id = data.draw(st.sampled_from(self._living()))
        window = self.budgets.update(ADMIN, budget_id, limit=limit).window
        self.limits[budget_id].limit = limit
        place = (budget_id, window.series, window.start)
        if self.settled[place]:
            self.passed.update(
                (*place, percent) for percent in THRESHOLDS if self.settled[place] * 100 >= percent * limit
            )

    @precondition(lambda self: self._living())
    @rule(data=st.data())
    def reset(self, data: st.DataObject) -> None:
        budget_id = data.draw(st.sampled_from(self._living()))
        after = self.budgets.reset(ADMIN, budget_id).window
        assert (after.reserved, after.settled) == (0, 0)
        self.limits[budget_id].series += 1

    @precondition(lambda self: self._living())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        budget_id = data.draw(st.sampled_from(self._living()))
        self.budgets.delete(ADMIN, budget_id)
        self.limits[budget_id].deleted = True

    @rule(seconds=st.sampled_from([-3600, -1, 20, 60, 3600, 86_400, 40 * 86_400]))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule()
    def deliver(self) -> None:
        self.delivery.work()
        with self.database.read() as connection:
            fired = {tuple(row) for row in connection.execute(sa.select(*budget_alert.primary_key))}
        assert fired == self.passed, "every threshold that was passed, and no other"

    @precondition(lambda self: self._living())
    @rule(data=st.data(), user=USERS, most=st.integers(0, 120), more=st.integers(0, 400))
    def try_a_higher_limit(self, data: st.DataObject, user: str, most: int, more: int) -> None:
        """Invariant 18: in the same moment, a higher limit never refuses what a lower one admitted."""
        budget_id = data.draw(st.sampled_from(self._living()))
        call = reservation("req_0:1", user_id=user, max_output_tokens=most)
        silent = Ledger(self.database, "boot-1", self.clock, observers=(Budgets(),))
        with rolled_back(self.database) as connection:
            lower = admitted(silent, connection, call)
            connection.execute(
                sa.update(budget).where(budget.c.budget_id == budget_id).values(limit_value=budget.c.limit_value + more)
            )
            assert admitted(silent, connection, call) or not lower

    @invariant()
    def the_windows_are_the_sums_of_their_holds(self) -> None:
        """Invariant 17: reserved and settled are the holds', and within the limit of a hard budget."""
        if not hasattr(self, "database"):
            return
        held: Counter[Place] = Counter()
        settled: Counter[Place] = Counter()
        with self.database.read() as connection:
            for hold in connection.execute(sa.select(budget_hold)):
                place = (hold.budget_id, hold.series, hold.window_start)
                if hold.settled is None:
                    held[place] += hold.reserved
                else:
                    settled[place] += hold.settled
            windows = connection.execute(sa.select(budget_window)).all()
        for row in windows:
            place = (row.budget_id, row.series, row.window_start)
            assert row.reserved == held[place] == self.reserved[place]
            assert row.settled == settled[place] == self.settled[place]
            limit = self.limits[row.budget_id]
            if limit.hard:
                assert row.reserved + row.settled <= limit.ceiling[place]

    @invariant()
    def an_alert_fires_at_most_once(self) -> None:
        """Invariant 19: one row and one message for each budget, window and threshold, which then stay as they are."""
        if not hasattr(self, "database"):
            return
        with self.database.read() as connection:
            for row in connection.execute(sa.select(budget_alert)):
                key = (row.budget_id, row.series, row.window_start, row.percent)
                assert self.alerts.setdefault(key, (row.used, row.fired_at)) == (row.used, row.fired_at)
        assert len(self.posted) == len(set(self.posted))

    def _living(self) -> list[str]:
        return sorted(budget_id for budget_id, limit in self.limits.items() if not limit.deleted)

    def _look_at_the_clock(self) -> None:
        self.latest = max(self.latest, round(self.clock.now * 1_000_000))

    def _places(self, user: str) -> list[Place]:
        return [
            (budget_id, limit.series, edges_of(limit.period, self.latest, BERLIN).start)
            for budget_id, limit in sorted(self.limits.items())
            if limit.applies(user)
        ]

    def _room(self, place: Place, amount: int) -> bool:
        limit = self.limits[place[0]]
        return not limit.hard or self.reserved[place] + self.settled[place] + amount <= limit.limit


class _Enough(Exception):
    """Rolls a transaction back."""


@contextmanager
def rolled_back(database: Database) -> Iterator[sa.Connection]:
    try:
        with database.write() as connection:
            yield connection
            raise _Enough
    except _Enough:
        return


def admitted(ledger: Ledger, connection: sa.Connection, call: Reservation) -> bool:
    """Whether a call is admitted; it is taken back."""
    try:
        with connection.begin_nested():
            ledger.reserve_in(connection, call)
            raise _Enough
    except _Enough:
        return True
    except BudgetExceeded:
        return False


def test_any_sequence_of_budget_operations_equals_the_model_in_memory(migrated_file: Path) -> None:
    """Invariants 17, 18 and 19."""

    class OnThisFile(Admission):
        migrated = migrated_file

    run_state_machine_as_test(
        OnThisFile,
        settings=settings(
            max_examples=examples(25),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
