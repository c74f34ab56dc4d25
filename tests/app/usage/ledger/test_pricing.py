"""What a call costs is its tokens times the prices in force when it was accepted, exactly."""

import itertools
import time
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.audit import AuditLog
from app.db.session import Database
from app.types import Components, Operation, Principal, Role, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceRepository, per_million
from app.usage.ledger.pricing import CACHED_INPUT, EMBEDDING, INPUT, METERS, OUTPUT, Rate, cost_pico
from tests.app.usage.samples import Clock, reservation
from tests.examples import examples

ADMIN = Principal("t1", "root", "k0", Role.ADMIN)
_models = itertools.count()


def rates(**pico_per_token: int) -> list[Rate]:
    return [Rate(meter, meter, pico) for meter, pico in pico_per_token.items()]


def cost(known: list[Rate], operation: Operation = Operation.CHAT, *, output_tokens: int = 3) -> int | None:
    return cost_pico(known, operation, input_tokens=10, cached_tokens=4, output_tokens=output_tokens)


def test_each_meter_counts_its_own_tokens() -> None:
    assert cost(rates(input=100, cached_input=10, output=1000)) == 6 * 100 + 4 * 10 + 3 * 1000
    assert cost(rates(embedding=7), Operation.EMBED_QUERY) == 70
    assert cost(rates(embedding=7), Operation.EMBED_DOC) == 70


def test_cached_input_without_a_price_of_its_own_costs_what_input_costs() -> None:
    assert cost(rates(input=100, output=0)) == 1000


def test_a_price_of_zero_is_free_and_no_price_is_unpriced() -> None:
    assert cost(rates(input=0, output=0)) == 0
    assert cost([]) is None
    assert cost(rates(input=100)) is None
    assert cost(rates(output=100)) is None
    assert cost(rates(input=100, output=5), Operation.EMBED_QUERY) is None
    assert cost(rates(embedding=5)) is None


def test_a_meter_that_counted_nothing_needs_no_price() -> None:
    assert cost(rates(input=100), output_tokens=0) == 1000


def test_a_cost_larger_than_a_float_holds_is_exact() -> None:
    dear = rates(input=999_999_999_999, output=1)

    total = cost_pico(dear, Operation.CHAT, input_tokens=3_999_999, cached_tokens=0, output_tokens=1)

    assert total == 3_999_999 * 999_999_999_999 + 1


@dataclass
class Reference:
    """Prices as fractions of a unit for a million tokens, searched by the moment they began."""

    began: dict[str, list[int]] = field(default_factory=lambda: {meter: [] for meter in METERS})
    amounts: dict[str, list[Fraction]] = field(default_factory=lambda: {meter: [] for meter in METERS})

    def at(self, meter: str, moment: int) -> Fraction | None:
        place = bisect_right(self.began[meter], moment)
        return self.amounts[meter][place - 1] if place else None

    def cost(self, operation: Operation, moment: int, *, read: int, cached: int, written: int) -> Fraction | None:
        """In units."""
        if operation == Operation.EMBED_QUERY:
            parts = [(read, self.at(EMBEDDING, moment))]
        else:
            dear, cheap = self.at(INPUT, moment), self.at(CACHED_INPUT, moment)
            parts = [(read - cached, dear), (cached, dear if cheap is None else cheap)]
            parts.append((written, self.at(OUTPUT, moment)))
        known = any(self.at(meter, moment) is not None for meter in METERS)
        if not known or any(count and amount is None for count, amount in parts):
            return None
        return sum((count * amount for count, amount in parts if amount is not None), Fraction(0)) / 10**6


MOST = 4_000_000
TOKENS = st.integers(0, 30) | st.integers(0, MOST)
PRICED = st.tuples(st.just("price"), st.sampled_from(METERS), st.integers(0, 10**12))
CALLED = st.tuples(
    st.sampled_from([Operation.CHAT, Operation.REWRITE, Operation.EMBED_QUERY]),
    TOKENS,
    st.tuples(TOKENS, TOKENS),
)


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.permutations(METERS).flatmap(lambda meters: st.integers(0, 4).map(lambda count: meters[:count])),
    st.lists(st.tuples(st.integers(0, 2), PRICED | CALLED | st.just("settle")), min_size=2, max_size=14),
)
def test_a_call_costs_the_prices_at_the_moment_it_was_accepted(
    sqlite_database: Database, unpriced: list[str], story: list[Any]
) -> None:
    """Invariant 6: cost_pico = the sum over meters of tokens times the price at accepted_at, as integers."""
    model, clock, reference = f"m{next(_models)}", Clock(), Reference()
    ledger = Ledger(sqlite_database, "b", clock)
    prices = PriceRepository(sqlite_database, AuditLog(sqlite_database), currency="usd", clock=clock)
    running: list[tuple[str, Any]] = []
    accepted: dict[str, int] = {}
    owed: dict[str, Fraction | None] = {}

    def settle() -> None:
        event_id, (operation, read, (cached, written)) = running.pop(0)
        moment = accepted[event_id]
        cached, written = min(cached, read), 0 if operation == Operation.EMBED_QUERY else written
        ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, cached_tokens=cached, output_tokens=written))
        owed[event_id] = reference.cost(operation, moment, read=read, cached=cached, written=written)

    begun = [(0, ("price", meter, 314_159_265_359 + 7 * place)) for place, meter in enumerate(METERS)]
    for pause, act in [item for item in begun if item[1][1] not in unpriced] + story:
        clock.now += pause
        now = round(clock.now * 10**6)
        if act == "settle":
            if running:
                settle()
        elif act[0] == "price":
            _, meter, pico = act
            if reference.began[meter] and reference.began[meter][-1] == now:
                continue  # two prices cannot begin at the same moment
            prices.add(ADMIN, model=model, meter=meter, price_per_million=per_million(pico))
            clock.now += 2e-6  # a price and a call are never written at the same moment; a float holds no single one
            reference.began[meter].append(now)
            reference.amounts[meter].append(Fraction(pico, 10**6))
        else:
            event_id = f"{model}-{len(accepted)}:1"
            operation, read, _ = act
            parts = Components(context=read) if operation.generates else Components()
            call = reservation(event_id, model=model, operation=operation, components=parts, input_tokens=read)
            ledger.reserve(replace(call, max_output_tokens=MOST))
            accepted[event_id] = now
            running.append((event_id, act))
            clock.now += 2e-6
    while running:
        settle()

    for event_id, expected in owed.items():
        (event,) = ledger.usage(event_id.partition(":")[0])
        assert (None if event.cost_pico is None else Fraction(event.cost_pico, 10**12)) == expected


def test_no_call_gets_a_price_that_ended_before_it_was_accepted_however_many_come_at_once(database: Database) -> None:
    """Invariant 6, while prices change under calls that are being written down."""
    ledger = Ledger(database, "b", time.time)
    prices = PriceRepository(database, AuditLog(database), currency="usd")
    for meter in (INPUT, OUTPUT):
        prices.add(ADMIN, model="m1", meter=meter, price_per_million="1")

    def spend(thread: int) -> None:
        for number in range(25):
            event_id = f"r{thread}-{number}:1"
            ledger.reserve(reservation(event_id))
            ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=2))

    def change(_: int) -> None:
        for number in range(20):
            prices.add(ADMIN, model="m1", meter=INPUT, price_per_million=f"{number + 2}")

    acts: list[Callable[[int], None]] = [spend, spend, spend, change]
    with ThreadPoolExecutor(len(acts)) as pool:
        for done in [pool.submit(act, number) for number, act in enumerate(acts)]:
            done.result()

    known = prices.list(model="m1", meter=INPUT, limit=100)[0]
    for thread, number in itertools.product(range(3), range(25)):
        (event,) = ledger.usage(f"r{thread}-{number}")
        (due,) = [
            item.pico_per_token
            for item in known
            if item.effective_from <= event.accepted_at
            and (item.effective_to is None or event.accepted_at < item.effective_to)
        ]
        assert event.cost_pico == 20 * due + 2 * 10**6


@pytest.mark.parametrize("amount", ["0.000001", "0.1", "3.141592", "1000000"])
def test_a_million_tokens_cost_their_price(sqlite_database: Database, amount: str) -> None:
    clock = Clock()
    prices = PriceRepository(sqlite_database, AuditLog(sqlite_database), currency="usd", clock=clock)
    prices.add(ADMIN, model="m1", meter=EMBEDDING, price_per_million=amount)
    ledger = Ledger(sqlite_database, "b", clock)
    ledger.reserve(reservation(operation=Operation.EMBED_DOC, input_tokens=10**6, max_output_tokens=0))
    ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))

    (event,) = ledger.usage("req_1")
    assert event.cost_pico is not None
    assert Fraction(event.cost_pico, 10**12) == Fraction(amount)


def test_a_clock_that_is_put_back_begins_no_price_before_a_call_that_was_accepted(database: Database) -> None:
    clock = Clock()
    ledger = Ledger(database, "b", clock)
    prices = PriceRepository(database, AuditLog(database), currency="usd", clock=ledger.seconds)
    ledger.reserve(reservation())
    clock.now -= 3600
    added = prices.add(ADMIN, model="m1", meter=INPUT, price_per_million="1")
    ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))

    (event,) = ledger.usage("req_1")
    assert added.effective_from >= event.accepted_at
    assert event.cost_pico is None


def test_a_row_bears_the_currency_of_the_installation(sqlite_database: Database) -> None:
    Ledger(sqlite_database, "b", currency="eur").reserve(reservation())

    with sqlite_database.read() as connection:
        assert connection.exec_driver_sql("SELECT currency FROM usage_event").scalar_one() == "eur"
