"""Processes on one PostgreSQL deliver each alert, weekly summary and event once, also when one of them dies."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from app.db.deliveries import Deliveries
from app.db.session import Database
from app.db.tables.budgets import budget, budget_alert
from app.db.tables.ledger import process, weekly_summary
from app.db.tables.watches import watch_event
from app.db.watch_runs import WatchDeliveries
from app.db.watches import WatchRepository, WatchTerms
from app.outbound.webhooks import NotDelivered
from app.types import Principal, Role
from app.usage.budgets.alert_delivery import AlertDelivery
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.overview.reports import OverviewReports
from app.usage.overview.weekly import WeeklySummary
from app.watches.runner import WatchNews
from tests.app.usage.samples import Clock
from tests.statements import executions_of

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()
URL = "https://hooks.example/T0"

Post = Callable[[Mapping[str, object]], object]


class Receiver:
    """Counts what it takes, by id; `before` is called with each body first, and may refuse it."""

    def __init__(self, before: Post = lambda _: None) -> None:
        self.before = before
        self.taken: Counter[object] = Counter()
        self._lock = threading.Lock()

    def __call__(self, body: Mapping[str, object]) -> None:
        self.before(body)
        with self._lock:
            self.taken[body["id"]] += 1


class Member:
    """A process beside others: it has a row of `process` while it lives."""

    def __init__(self, database: Database, boot_id: str, *, clock: Clock) -> None:
        self.database, self.boot_id, self.clock = database, boot_id, clock
        row = {"boot_id": boot_id, "role": "api", "version": "0", "host": "h", "started_at": 0.0, "beat": 1}
        with self.database.write() as connection:
            connection.execute(sa.insert(process).values(**row))

    def alerts(self, receiver: Receiver) -> AlertDelivery:
        rows = AlertRepository(self.database, clock=self.clock, claimant=self.boot_id)
        return AlertDelivery(rows, lambda _, body: receiver(body), currency="eur")

    def weekly(self, receiver: Receiver, channel: str = "webhook") -> WeeklySummary:
        reports = OverviewReports(self.database, zone=ZoneInfo("UTC"), clock=self.clock)

        def send(body: Mapping[str, object]) -> None:
            receiver({"id": f"{channel} {body['id']}"})

        return WeeklySummary(
            self.database, reports, send, channel=channel, tenant_id="t1", clock=self.clock, claimant=self.boot_id
        )

    def news(self, receiver: Receiver) -> WatchNews:
        return WatchNews(WatchDeliveries(self.database, clock=self.clock, claimant=self.boot_id), receiver)

    def buried(self) -> None:
        ending = sa.update(process).where(process.c.boot_id == self.boot_id).values(ended_at=1.0)
        with self.database.write() as connection:
            connection.execute(ending)


@pytest.fixture
def members(postgres_database: Database) -> list[Member]:
    clock = Clock(NOW)
    return [Member(postgres_database, f"boot-{number}", clock=clock) for number in range(4)]


def fire(database: Database, count: int) -> set[object]:
    """Alerts of one budget that are due, the ids that their bodies have."""
    values = {
        "budget_id": "b", "tenant_id": "t1", "scope_type": "tenant", "scope_id": "t1", "unit": "tokens",
        "limit_value": 9, "period": "minute", "enforcement": "hard", "webhook_url": URL, "created_by": "u",
        "created_at": 0,
    }  # fmt: skip
    fired = {"budget_id": "b", "series": 1, "percent": 80, "reason": "spent", "used": 8, "limit_value": 9}
    times = {"fired_at": 0, "next_attempt_at": 0}
    with database.write() as connection:
        connection.execute(sa.insert(budget).values(values))
        connection.execute(sa.insert(budget_alert), [{**fired, **times, "window_start": each} for each in range(count)])
    return {f"b:1:{each}:80" for each in range(count)}


def happen(database: Database, count: int) -> set[object]:
    """Events of one watched question that are due, their ids."""
    ann, terms = Principal("t1", "ann", "key_a", Role.MEMBER), WatchTerms(question="What is the fee?", on_change=True)
    watch_id = WatchRepository(database).create(ann, terms).id
    told = {"answer": "30 euros.", "created_at": 0.0}
    row: dict[str, object] = {
        "watch_id": watch_id, "question": terms.question, "before": told, "after": told, "differences": [],
        "created_at": 0.0, "delivery": "waiting", "next_attempt_at": 0.0,
    }  # fmt: skip
    with database.write() as connection:
        connection.execute(sa.insert(watch_event), [{**row, "id": f"event_{each}"} for each in range(count)])
    return {f"event_{each}" for each in range(count)}


def states(database: Database, table: sa.Table) -> Counter[tuple[object, ...]]:
    columns = table.c.delivery, table.c.attempts, table.c.claimed_by
    with database.read() as connection:
        return Counter(tuple(row) for row in connection.execute(sa.select(*columns)))


def alerts_of(database: Database) -> list[tuple[object, ...]]:
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(sa.select(budget_alert).order_by(*budget_alert.primary_key))]


def all_at_once(works: list[Callable[[], object]]) -> None:
    """Call them until none returns anything, each in a thread of its own."""
    together = threading.Barrier(len(works))
    failed: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            together.wait()
            while work():
                pass
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_four_processes_deliver_each_alert_once(members: list[Member]) -> None:
    receiver = Receiver()
    expected = fire(members[0].database, 200)

    all_at_once([each.alerts(receiver).work for each in members])
    all_at_once([each.alerts(receiver).work for each in members])  # what all skipped at the end of the first look

    assert receiver.taken == Counter(expected)
    assert states(members[0].database, budget_alert) == {("delivered", 1, None): 200}


def test_four_processes_deliver_each_weekly_summary_once(members: list[Member]) -> None:
    receiver, channels = Receiver(), [f"mail:{number}@example.org" for number in range(20)]

    def work(member: Member) -> Callable[[], object]:
        summaries = [member.weekly(receiver, channel) for channel in channels]
        return lambda: sum(summary.work() for summary in summaries)

    all_at_once([work(each) for each in members])

    assert sorted(receiver.taken.values()) == [1] * 20
    assert states(members[0].database, weekly_summary) == {("delivered", 1, None): 20}


def test_four_processes_deliver_each_event_once(members: list[Member]) -> None:
    receiver = Receiver()
    expected = happen(members[0].database, 100)

    all_at_once([each.news(receiver).work for each in members])
    all_at_once([each.news(receiver).work for each in members])  # what all skipped at the end of the first look

    assert receiver.taken == Counter(expected)
    assert states(members[0].database, watch_event) == {("delivered", 1, None): 100}


def test_what_one_is_delivering_no_other_delivers(members: list[Member]) -> None:
    first, second, *_ = members
    other = Receiver()
    fire(first.database, 1)
    happen(first.database, 1)

    assert first.alerts(Receiver(lambda _: second.alerts(other).work())).work() == 1
    assert first.news(Receiver(lambda _: second.news(other).work())).work() == 1
    assert first.weekly(Receiver(lambda _: second.weekly(other).work())).work()

    assert len(other.taken) == 0


def test_what_a_process_read_and_another_delivered_since_is_delivered_once(members: list[Member]) -> None:
    first, second, *_ = members
    receiver = Receiver()
    fire(first.database, 3)
    (stale, *_) = AlertRepository(second.database, clock=second.clock, claimant=second.boot_id).due(limit=1)
    first.alerts(receiver).work()

    assert not AlertRepository(second.database, claimant=second.boot_id).take(stale)


def test_what_failed_is_tried_again_by_whoever_comes_first(members: list[Member]) -> None:
    first, second, *_ = members
    fire(first.database, 1)
    happen(first.database, 1)

    def refuse(_: object) -> None:
        raise NotDelivered("The receiver answered 500.")

    down, up = Receiver(refuse), Receiver()
    assert first.alerts(down).work() == 1
    assert first.news(down).work() == 1
    assert first.weekly(down).work()
    tables = budget_alert, watch_event, weekly_summary
    assert [states(first.database, table) for table in tables] == [{("waiting", 1, None): 1}] * 3
    first.clock.now += 11
    assert second.alerts(up).work() == 1
    assert second.news(up).work() == 1
    assert second.weekly(up).work()

    assert sorted(up.taken.values()) == [1, 1, 1]
    assert [states(first.database, table) for table in tables] == [{("delivered", 2, None): 1}] * 3


def test_what_a_process_took_before_it_died_another_delivers_after_the_burial(members: list[Member]) -> None:
    dead, other, *_ = members
    fire(dead.database, 1)
    happen(dead.database, 1)
    receiver = Receiver()

    def dies(_: object) -> None:
        raise ConnectionError("nothing of it runs any more")

    with pytest.raises(ConnectionError):
        dead.alerts(Receiver(dies)).work()
    with pytest.raises(ConnectionError):
        dead.news(Receiver(dies)).work()
    with pytest.raises(ConnectionError):
        dead.weekly(Receiver(dies)).work()
    other.clock.now += 7200
    assert other.alerts(receiver).work() == 0, "it may only be slow"
    assert other.news(receiver).work() == 0
    assert not other.weekly(receiver).work()
    dead.buried()
    assert other.alerts(receiver).work() == 1
    assert other.news(receiver).work() == 1
    assert other.weekly(receiver).work()

    assert sorted(receiver.taken.values()) == [1, 1, 1]


def test_a_process_takes_up_what_it_could_not_note(members: list[Member]) -> None:
    """The database was away after it had sent: as where a process is alone, the receiver may see it twice."""
    first, *_ = members
    fire(first.database, 1)
    receiver = Receiver()

    def fails(_: object) -> None:
        raise ConnectionError("the database is away")

    with pytest.raises(ConnectionError):
        first.alerts(Receiver(fails)).work()
    assert first.alerts(receiver).work() == 1

    assert sorted(receiver.taken.values()) == [1]


def test_one_that_wakes_after_its_burial_takes_nothing_and_changes_nothing(members: list[Member]) -> None:
    buried, other, *_ = members
    fire(other.database, 2)
    receiver, late = Receiver(), Receiver()

    left: list[list[tuple[object, ...]]] = []

    def taken_over(_: object) -> None:
        buried.buried()
        assert other.alerts(receiver).work() == 2
        left.append(alerts_of(other.database))
        raise NotDelivered("The receiver answered 500.")

    late.before = taken_over
    buried.alerts(late).work()

    assert (sorted(receiver.taken.values()), len(late.taken)) == ([1, 1], 0)
    assert left == [alerts_of(other.database)]
    assert not buried.weekly(late).work()


def test_one_stopped_inside_its_claim_holds_up_no_other(members: list[Member]) -> None:
    stopped, other, *_ = members
    fire(stopped.database, 2)
    receiver = Receiver()
    first = sa.select(budget_alert.c.percent).where(budget_alert.c.window_start == 0).with_for_update()
    with stopped.database.write() as connection:
        connection.execute(first)
        assert other.alerts(receiver).work() == 2

    assert set(receiver.taken) == {"b:1:1:80"}


def test_a_process_alone_takes_its_deliveries_without_a_statement(members: list[Member]) -> None:
    """Also those that a process which shared the database had taken."""
    database = members[0].database
    fire(database, 1)
    with database.write() as connection:
        connection.execute(sa.update(budget_alert).values(claimed_by=members[1].boot_id))
    with executions_of(database) as statements:
        assert Deliveries(database, budget_alert, claimant=None).take(budget_alert.c.budget_id == "b", attempts=0)
    alone = AlertDelivery(AlertRepository(database, clock=members[0].clock), lambda *_: None, currency="eur")

    assert statements == []
    assert alone.work() == 1
    assert states(database, budget_alert) == {("delivered", 1, None): 1}
