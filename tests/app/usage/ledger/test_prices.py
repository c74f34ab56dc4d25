"""Prices begin, are ended by the next one, never overlap and never change."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.prices import price
from app.errors import Conflict, InvalidRequest, SetupError
from app.types import Principal, Role
from app.usage.ledger.prices import Price, PriceRepository, parse_price, per_million
from app.usage.ledger.pricing import rates_at
from tests.app.usage.samples import Clock
from tests.examples import examples

ADMIN = Principal("t1", "root", "k0", Role.ADMIN)
NOW = 1_763_600_000
MICROS = 1_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def prices(database: Database, clock: Clock) -> PriceRepository:
    return PriceRepository(database, AuditLog(database, clock=clock), currency="eur", clock=clock)


def add(
    prices: PriceRepository, amount: str = "0.15", *, model: str = "m1", meter: str = "input", at: int | None = None
):
    begin = None if at is None else at * MICROS
    return prices.add(ADMIN, model=model, meter=meter, price_per_million=amount, effective_from=begin)


def every(prices: PriceRepository, **chosen: Any) -> tuple[Price, ...]:
    found, cursor = prices.list(**chosen, limit=500)
    assert cursor is None
    return found


def in_seconds(prices: PriceRepository) -> list[tuple[float, float | None]]:
    ends = [(item.effective_from, item.effective_to) for item in every(prices)]
    return [(begin / MICROS, None if end is None else end / MICROS) for begin, end in ends]


def test_another_currency_than_that_of_the_prices_is_refused(database: Database, prices: PriceRepository) -> None:
    dollars = PriceRepository(database, AuditLog(database), currency="usd")
    dollars.require_currency()

    add(prices)

    prices.require_currency()
    with pytest.raises(SetupError, match='in "eur", FOOTNOTE_CURRENCY is "usd"'):
        dollars.require_currency()


def test_a_price_begins_now_and_says_who_set_it(prices: PriceRepository) -> None:
    added = prices.add(ADMIN, model="m1", meter="input", price_per_million="0.15", source="contract 7")

    assert every(prices) == (added,)
    assert (added.pico_per_token, added.currency, added.source) == (150_000, "eur", "contract 7")
    assert (added.effective_from, added.effective_to) == (NOW * MICROS, None)
    assert (added.created_by, added.created_at) == ("root", NOW * MICROS)


def test_a_new_price_ends_the_one_before_and_is_audited(
    prices: PriceRepository, database: Database, clock: Clock
) -> None:
    before = add(prices)
    clock.now += 10
    after = add(prices, "0.2")

    assert in_seconds(prices) == [(NOW, NOW + 10), (NOW + 10, None)]
    entries, _ = AuditLog(database).list(tenant_id="t1", action="price.added", limit=10)
    assert [(entry.target, entry.detail["ended"]) for entry in entries] == [
        (after.price_id, before.price_id),
        (before.price_id, None),
    ]
    assert entries[0].detail["price_per_million"] == "0.200000"


def test_a_coming_price_ends_todays_when_it_begins(prices: PriceRepository) -> None:
    add(prices, "1")
    add(prices, "2", at=NOW + 100)
    add(prices, "3", at=NOW + 200)

    assert in_seconds(prices) == [(NOW, NOW + 100), (NOW + 100, NOW + 200), (NOW + 200, None)]


def test_models_and_meters_have_prices_of_their_own(prices: PriceRepository, clock: Clock) -> None:
    add(prices, meter="input")
    clock.now += 1
    add(prices, meter="output")
    add(prices, model="m2")

    assert [item.effective_to for item in every(prices)] == [None, None, None]


def test_the_past_gets_a_price_only_where_it_had_none(prices: PriceRepository) -> None:
    add(prices, "1")
    add(prices, "2", at=NOW - 50)
    add(prices, "3", at=NOW - 100)

    assert in_seconds(prices) == [(NOW - 100, NOW - 50), (NOW - 50, NOW), (NOW, None)]
    for taken in (NOW - 100, NOW - 75, NOW - 1):
        with pytest.raises(Conflict, match="the past is not changed"):
            add(prices, "9", at=taken)
    assert [item.pico_per_token for item in every(prices)] == [3_000_000, 2_000_000, 1_000_000]


def test_a_price_that_would_have_to_end_before_a_later_one_is_refused(prices: PriceRepository) -> None:
    add(prices, "1")
    add(prices, "2", at=NOW + 100)

    with pytest.raises(Conflict, match="later price"):
        add(prices, "3", at=NOW + 50)
    with pytest.raises(Conflict, match="at that moment"):
        add(prices, "3", at=NOW + 100)
    assert in_seconds(prices) == [(NOW, NOW + 100), (NOW + 100, None)]


def test_a_refused_price_leaves_no_audit_entry(prices: PriceRepository, database: Database) -> None:
    add(prices)
    with pytest.raises(Conflict):
        add(prices, "9", at=NOW)

    assert len(AuditLog(database).list(tenant_id="t1", limit=10)[0]) == 1


@pytest.mark.parametrize(
    "written",
    [
        "",
        "-1",
        "+1",
        "1e3",
        "1E-3",
        "NaN",
        "inf",
        ".5",
        "1.",
        "01",
        "1,5",
        " 1",
        "1 ",
        "1_0",
        "0x1",
        "\uff11",
        "1.0000001",
        "1000000.000001",
        "1000001",
        "99999999999999999999",
        "1\n",
    ],
    ids=ascii,
)
def test_what_is_no_plain_decimal_is_no_price(prices: PriceRepository, written: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        add(prices, written)
    assert caught.value.param == "price_per_million"
    assert every(prices) == ()


@given(st.integers(0, 10**12))
def test_every_price_is_exact_in_both_directions(pico_per_token: int) -> None:
    assert parse_price(per_million(pico_per_token)) == pico_per_token


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"meter": "reasoning"}, "meter"),
        ({"model": ""}, "model"),
        ({"model": "m" * 201}, "model"),
        ({"model": "m\0"}, "model"),
        ({"source": "s" * 501}, "source"),
        ({"effective_from": -1}, "effective_from"),
        ({"effective_from": 10**18}, "effective_from"),
    ],
)
def test_an_invalid_price_is_refused_by_its_parameter_name(
    prices: PriceRepository, asked: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        prices.add(ADMIN, **{"model": "m1", "meter": "input", "price_per_million": "1", **asked})
    assert caught.value.param == param


def test_a_list_is_read_page_by_page_and_by_model_meter_and_moment(prices: PriceRepository, clock: Clock) -> None:
    for model in ("m2", "m1"):
        for meter in ("output", "input"):
            add(prices, model=model, meter=meter)
    clock.now += 5
    add(prices, "7")

    whole = every(prices)
    assert [(item.model, item.meter) for item in whole] == [
        ("m1", "input"),
        ("m1", "input"),
        ("m1", "output"),
        ("m2", "input"),
        ("m2", "output"),
    ]
    paged: list[Price] = []
    cursor: str | None = None
    while True:
        page, cursor = prices.list(limit=2, cursor=cursor)
        paged += page
        if cursor is None:
            break
    assert tuple(paged) == whole
    assert every(prices, model="m1", meter="input") == whole[:2]
    assert every(prices, model="m1", meter="input", at=(NOW + 5) * MICROS) == (whole[1],)
    assert every(prices, model="m1", meter="input", at=(NOW + 5) * MICROS - 1) == (whole[0],)
    assert every(prices, at=NOW * MICROS - 1) == ()
    with pytest.raises(InvalidRequest):
        prices.list(meter="colour", limit=1)
    with pytest.raises(InvalidRequest):
        prices.list(cursor="colour", limit=1)


@pytest.mark.parametrize(
    "change",
    [
        "pico_per_token = 0",
        "effective_to = effective_to + 1",
        "effective_to = NULL",
        "source = 'x'",
        "effective_to = 9999999999999999, pico_per_token = 0",
        "effective_to = 9999999999999999, effective_from = effective_from - 1",
        "effective_to = 9999999999999999, meter = 'output'",
    ],
)
def test_nobody_changes_a_price(prices: PriceRepository, clock: Clock, database: Database, change: str) -> None:
    add(prices)
    clock.now += 1
    add(prices, "0.2")
    before = every(prices)

    which = "IS NULL" if change.startswith("effective_to = 9") else "IS NOT NULL"
    with pytest.raises(sa.exc.IntegrityError, match="only be ended"), database.write() as connection:
        connection.exec_driver_sql(f"UPDATE price SET {change} WHERE effective_to {which}")
    with pytest.raises(sa.exc.IntegrityError, match="never deleted"), database.write() as connection:
        connection.exec_driver_sql("DELETE FROM price")
    assert every(prices) == before


def insert(
    database: Database, price_id: str, begin: int, end: int | None, *, model: str = "m1", meter: str = "input"
) -> None:
    with database.write() as connection:
        connection.execute(row(price_id, begin, end, model=model, meter=meter))


def row(price_id: str, begin: int, end: int | None, *, model: str = "m1", meter: str = "input") -> sa.Insert:
    return sa.insert(price).values(
        price_id=price_id,
        model_id=model,
        meter=meter,
        currency="eur",
        pico_per_token=1,
        effective_from=begin,
        effective_to=end,
        created_by="root",
        created_at=0,
    )


@pytest.mark.parametrize(("begin", "end"), [(0, None), (0, 11), (10, 20), (10, None), (15, 16), (19, 40), (12, None)])
def test_the_database_refuses_overlapping_periods_of_one_model_and_meter(
    database: Database, begin: int, end: int | None
) -> None:
    insert(database, "first", 10, 20)

    with pytest.raises(sa.exc.IntegrityError):
        insert(database, "second", begin, end)
    insert(database, "before", 0, 10)
    insert(database, "after", 20, None)
    insert(database, "other", begin, end, meter="output")


Period = tuple[int, int | None]
PERIODS = st.tuples(st.integers(0, 12), st.none() | st.integers(1, 6)).map(
    lambda drawn: (drawn[0], None if drawn[1] is None else drawn[0] + drawn[1])
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PERIODS, max_size=6))
def test_the_database_accepts_any_periods_exactly_when_disjoint(
    sqlite_database: Database, periods: list[Period]
) -> None:
    with sqlite_database.read() as connection:
        model = f"m{connection.exec_driver_sql('SELECT count(*) FROM price').scalar_one()}"
    taken: list[Period] = []
    for number, (begin, end) in enumerate(periods):
        apart = all((end is not None and end <= other) or (stop is not None and stop <= begin) for other, stop in taken)
        try:
            insert(sqlite_database, f"{model}-{number}", begin, end, model=model)
        except sa.exc.IntegrityError:
            assert not apart
        else:
            assert apart
            taken.append((begin, end))


def outcomes(act: Callable[[int], object]) -> list[str]:
    """What 20 threads that do the same at once come to."""

    def attempt(number: int) -> str:
        try:
            act(number)
        except (Conflict, sa.exc.IntegrityError) as error:
            return type(error).__name__
        return "done"

    with ThreadPoolExecutor(20) as pool:
        return sorted(pool.map(attempt, range(20)))


def test_of_twenty_who_add_a_price_at_once_one_wins(prices: PriceRepository) -> None:
    add(prices, "1")

    assert outcomes(lambda n: add(prices, f"2.{n:02}", at=NOW + 60)) == ["Conflict"] * 19 + ["done"]
    assert in_seconds(prices) == [(NOW, NOW + 60), (NOW + 60, None)]


def test_of_twenty_overlapping_rows_written_past_us_one_stays(prices: PriceRepository, database: Database) -> None:
    assert outcomes(lambda n: insert(database, f"p{n}", n, None)) == ["IntegrityError"] * 19 + ["done"]
    assert len(every(prices)) == 1


def test_an_overlap_is_seen_in_what_is_not_committed_yet(database: Database) -> None:
    with ThreadPoolExecutor(1) as pool:
        with database.write() as connection:
            connection.execute(row("first", 10, None))
            second = pool.submit(insert, database, "second", 20, None)
            wait([second], timeout=0.5)
        with pytest.raises(sa.exc.IntegrityError, match="overlap"):
            second.result()


def test_a_price_is_in_force_at_its_beginning_and_not_at_its_end(prices: PriceRepository, database: Database) -> None:
    first, second = add(prices, "1"), add(prices, "2", at=NOW + 1)

    with database.read() as connection:
        at = [rates_at(connection, "m1", at=NOW * MICROS + offset) for offset in (-1, 0, MICROS - 1, MICROS)]
    assert [[rate.price_id for rate in rates] for rates in at] == [
        [],
        [first.price_id],
        [first.price_id],
        [second.price_id],
    ]
