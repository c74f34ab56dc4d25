"""Calls that were settled before their price was known get it as adjustments, once, and stay as they are."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.ledger import usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.usage_columns import Measures
from app.errors import InvalidRequest
from app.types import Operation, Principal, Role, Settlement, UsageStatus
from app.usage.ledger.adjustments import Adjustments, adjusted_calls
from app.usage.ledger.entry import Entry
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceRepository
from app.usage.ledger.rerating import ModelRerating, Rerater, Rerating
from tests.app.usage.budgets.listener import Listener
from tests.app.usage.samples import Clock, reservation
from tests.examples import examples

ADMIN = Principal("t1", "root", "k0", Role.ADMIN)
START = 1_763_600_000


class Books:
    """A ledger, its prices and what re-rates it, three calls at a time."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock(START)
        self.audit = AuditLog(database, clock=self.clock)
        self.listener = Listener()
        self.ledger = Ledger(database, "b", self.clock)
        self.prices = PriceRepository(database, self.audit, currency="usd", clock=self.clock)
        self.adjustments = Adjustments(
            database, self.audit, observers=(self.listener,), currency="usd", clock=self.clock
        )
        self.rerater = Rerater(database, self.adjustments, self.audit, clock=self.clock, at_once=3)

    def price(self, meter: str, amount: str, *, at: int, model: str = "m1") -> None:
        self.prices.add(ADMIN, model=model, meter=meter, price_per_million=amount, effective_from=at * 1_000_000)

    def spend(self, number: int, *, cached: int = 0, output: int = 2, **chosen: Any) -> None:
        event_id = f"req_{number}:1"
        self.ledger.reserve(reservation(event_id, **chosen))
        done = Settlement(status=UsageStatus.COMPLETED, cached_tokens=cached, output_tokens=output)
        assert self.ledger.settle(event_id, done)

    def rerate(self, *, start: int = 0, end: int = START + 10**6, who: Principal = ADMIN, **chosen: Any) -> Rerating:
        asked = {"dry_run": False, "reason": "prices came late", **chosen}
        return self.rerater.run(who, start=start * 1_000_000, end=end * 1_000_000, **asked)

    def rows(self, table: sa.Table = usage_event) -> list[dict[str, Any]]:
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(sa.select(table)).mappings()]

    def costs(self) -> dict[str, int]:
        """What each call costs with its adjustments."""
        with self.database.read() as connection:
            found = adjusted_calls(connection, sa.select(usage_event))
        return {call.row["event_id"]: call.cost_pico for call in found}


@pytest.fixture
def books(database: Database) -> Books:
    return Books(database)


@pytest.fixture
def sqlite_books(sqlite_database: Database) -> Books:
    return Books(sqlite_database)


def late_prices(books: Books) -> None:
    """Four calls without a price, and then one from before them."""
    for number in range(4):
        books.spend(number)
    books.clock.now += 100
    books.price("input", "2", at=START - 5)
    books.price("output", "10", at=START - 5)


def test_a_dry_run_says_what_would_change_and_writes_nothing(books: Books) -> None:
    late_prices(books)
    books.spend(4, model="m2")
    found = books.rerate(dry_run=True)

    each = 20 * 2_000_000 + 2 * 10_000_000
    assert found.models == (
        ModelRerating("m1", calls=4, adjusted=4, newly_priced=4, difference_pico=4 * each),
        ModelRerating("m2", calls=1, unpriced=1),
    )
    assert books.rows(usage_adjustment) == []
    assert books.listener.entries == []
    assert [entry.action for entry in books.audit.list(tenant_id="t1", limit=9)[0]] == ["price.added"] * 2


def test_calls_without_a_price_get_it_and_stay_as_they_are(books: Books) -> None:
    late_prices(books)
    before, foreseen = books.rows(), books.rerate(dry_run=True)
    done = books.rerate()

    assert done.models == foreseen.models
    assert books.rows() == before
    assert {row["cost_pico"] for row in before} == {None}
    assert set(books.costs().values()) == {60_000_000}
    made = books.rows(usage_adjustment)
    assert len(made) == 4
    assert {(row["kind"], row["reason"], row["created_by"]) for row in made} == {("rerate", "prices came late", "root")}
    noted = {item.price_id for item in books.prices.list(limit=9)[0]}
    assert all(set(row["price_ids"].strip("[]").replace('"', "").split(",")) == noted for row in made)


def test_a_rerating_is_booked_at_its_own_time_with_a_cost_and_no_call(books: Books) -> None:
    late_prices(books)
    books.rerate()

    assert sorted(entry.event_id for entry in books.listener.entries) == [f"req_{n}:1" for n in range(4)]
    told = {replace(entry, event_id="") for entry in books.listener.entries}
    assert told == {
        Entry(
            event_id="",
            tenant_id="t1",
            project_id="",
            user_id="u1",
            key_id="k1",
            model="m1",
            operation=Operation.CHAT,
            status="adjustment",
            at=(START + 100) * 1_000_000,
            calls=0,
            measures=Measures(),
            cost_pico=60_000_000,
        )
    }


def test_the_second_time_nothing_is_adjusted(books: Books) -> None:
    late_prices(books)
    books.rerate()
    costs = books.costs()

    (again,) = books.rerate().models
    assert again == ModelRerating("m1", calls=4)
    assert books.costs() == costs
    assert len(books.rows(usage_adjustment)) == 4


def test_those_who_rerate_at_the_same_moment_adjust_each_call_once(books: Books) -> None:
    late_prices(books)

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: books.rerate(), range(4)))

    assert sum(model.adjusted for run in runs for model in run.models) == 4
    assert sum(model.difference_pico for run in runs for model in run.models) == 4 * 60_000_000
    assert len(books.rows(usage_adjustment)) == 4


def test_a_price_that_came_for_one_more_meter_makes_calls_cheaper(books: Books) -> None:
    books.price("input", "2", at=START)
    books.price("output", "10", at=START)
    books.spend(1, cached=15)
    assert books.costs() == {"req_1:1": 60_000_000}
    books.clock.now += 9
    books.price("cached_input", "0.5", at=START - 1)

    (found,) = books.rerate().models
    assert (found.adjusted, found.newly_priced, found.difference_pico) == (1, 0, -15 * 1_500_000)
    assert books.costs() == {"req_1:1": 5 * 2_000_000 + 15 * 500_000 + 2 * 10_000_000}


def test_the_price_of_a_call_is_that_of_its_acceptance_and_not_of_its_end(books: Books) -> None:
    books.ledger.reserve(reservation())
    books.clock.now += 50
    books.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))
    books.clock.now += 50
    books.price("input", "9", at=START + 10)

    assert books.rerate().models == (ModelRerating("m1", calls=1, unpriced=1),)
    books.price("input", "3", at=START - 10)
    books.rerate()
    assert books.costs() == {"req_1:1": 60_000_000}


def test_only_settled_calls_of_the_tenant_the_range_and_the_models_are_looked_at(books: Books) -> None:
    books.spend(1)
    books.spend(2, model="m2")
    books.spend(3, tenant_id="t2")
    books.ledger.reserve(reservation("req_4:1"))
    books.clock.now += 10
    books.spend(5)
    for model in ("m1", "m2"):
        for meter in ("input", "output"):
            books.price(meter, "1", at=START - 1, model=model)
    books.clock.now += 10

    assert books.rerate(end=START).models == ()
    assert books.rerate(start=START + 11).models == ()
    assert books.rerate(end=START + 10, models=["m1"]).models == (
        ModelRerating("m1", calls=1, adjusted=1, newly_priced=1, difference_pico=22_000_000),
    )
    assert {entry.event_id for entry in books.listener.entries} == {"req_1:1"}
    assert [found.calls for found in books.rerate(dry_run=True).models] == [2, 1]
    assert [found.model for found in books.rerate(who=replace(ADMIN, tenant_id="t2")).models] == ["m1"]
    assert {entry.event_id for entry in books.listener.entries} == {"req_1:1", "req_3:1"}


def test_calls_are_gone_through_in_lots_each_once(books: Books) -> None:
    for number in range(10):
        books.clock.now += number % 4 == 3
        books.spend(number)
    books.price("input", "1", at=START - 1)
    books.price("output", "1", at=START - 1)
    books.clock.now += 1

    (found,) = books.rerate().models
    assert (found.calls, found.adjusted) == (10, 10)
    assert sorted(entry.event_id for entry in books.listener.entries) == [f"req_{number}:1" for number in range(10)]


def test_a_corrected_call_is_rerated_by_its_corrected_counts(books: Books) -> None:
    books.spend(1)
    books.adjustments.correct(ADMIN, "req_1:1", Measures(output_tokens=5), reason="counted wrongly")
    books.price("input", "1", at=START - 1)
    books.price("output", "1", at=START - 1)
    books.clock.now += 1

    books.rerate()
    assert books.costs() == {"req_1:1": 27_000_000}
    books.adjustments.correct(ADMIN, "req_1:1", Measures(output_tokens=-1), reason="counted wrongly")
    assert books.rerate().models == (ModelRerating("m1", calls=1),)
    assert books.costs() == {"req_1:1": 26_000_000}


def test_a_run_is_audited_at_its_beginning_and_at_its_end(books: Books) -> None:
    late_prices(books)
    done = books.rerate(models=["m1"])

    entries = [entry for entry in books.audit.list(tenant_id="t1", limit=9)[0] if entry.target == done.rerating_id]
    assert sorted(entry.action for entry in entries) == ["usage.rerate_begun", "usage.rerated"]
    (end,) = [entry for entry in entries if entry.action == "usage.rerated"]
    assert (end.detail["adjusted"], end.detail["difference_pico"], end.detail["models"]) == (4, 240_000_000, ["m1"])


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"start": -1, "end": 5}, "start_time"),
        ({"start": 5, "end": 5}, "end_time"),
        ({"start": 5, "end": 10**12}, "end_time"),
        ({"reason": ""}, "reason"),
    ],
)
def test_invalid_rerating_parameters_are_refused_by_name_and_not_audited(
    sqlite_books: Books, asked: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        sqlite_books.rerate(**asked)
    assert caught.value.param == param
    assert sqlite_books.audit.list(tenant_id="t1", limit=9)[0] == ()


CALLS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 30)), min_size=1, max_size=6)
LATE = st.lists(
    st.tuples(st.sampled_from(["input", "cached_input", "output"]), st.integers(0, 4), st.integers(0, 9)), max_size=5
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CALLS, LATE)
def test_after_rerating_every_call_costs_what_its_moment_cost(
    sqlite_books: Books, calls: list[Any], late: list[Any]
) -> None:
    """Invariant 6, for calls with their adjustments: prices filled in later are searched by brute force."""
    books = sqlite_books
    model = f"m{books.clock.now}"
    begin = int(books.clock.now) + 10
    known: dict[str, dict[int, int]] = {"input": {}, "cached_input": {}, "output": {}}
    calls_at: dict[str, tuple[int, int, int]] = {}
    books.clock.now = begin
    for pause, cached, output in calls:
        books.clock.now += pause
        event_id = f"{model}-{len(calls_at)}:1"
        books.ledger.reserve(reservation(event_id, model=model))
        books.ledger.settle(
            event_id, Settlement(status=UsageStatus.COMPLETED, cached_tokens=cached, output_tokens=output)
        )
        calls_at[event_id] = int(books.clock.now), cached, output
    books.clock.now += 20
    for meter, at, amount in sorted(late, key=lambda item: -item[1]):
        if begin + at not in known[meter]:
            books.price(meter, str(amount), at=begin + at, model=model)
            known[meter][begin + at] = amount * 10**6

    def price_at(meter: str, moment: int) -> int | None:
        begun = [at for at in known[meter] if at <= moment]
        return known[meter][max(begun)] if begun else None

    books.rerate(models=[model])
    books.clock.now += 1
    costs = books.costs()
    for event_id, (moment, cached, output) in calls_at.items():
        dear, cheap, out = (price_at(meter, moment) for meter in ("input", "cached_input", "output"))
        parts = [(20 - cached, dear), (cached, dear if cheap is None else cheap), (output, out)]
        due = 0 if any(count and pico is None for count, pico in parts) else sum(n * (pico or 0) for n, pico in parts)
        assert costs[event_id] == due
    assert sum(found.adjusted for found in books.rerate(models=[model]).models) == 0
