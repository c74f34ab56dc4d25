"""app.usage.ledger.adjustments: changes of settled calls are rows of their own."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.session import Database
from app.db.tables.ledger import usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.rollups import usage_rollup_15m
from app.db.tables.usage_columns import Measures
from app.errors import Conflict, InvalidRequest, NotFound
from app.types import Operation, Principal, Role, Settlement, UsageStatus
from app.usage.ledger.adjustments import Adjustment, Adjustments, adjusted_calls
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceRepository
from app.usage.rollups.rollups import Rollups
from tests.app.usage.budgets.listener import Listener
from tests.app.usage.samples import Clock, reservation

ADMIN = Principal("t1", "root", "k0", Role.ADMIN)
DONE = Settlement(status=UsageStatus.COMPLETED, cached_tokens=7, output_tokens=41, delivered_tokens=40)
MORE = Measures(tok_question=2, tok_context=-1, input_tokens=1, output_tokens=3, output_delivered_tokens=2)


def adjustments_of(connection: sa.Connection, event_id: str) -> tuple[Adjustment, ...]:
    """The adjustments of a call in the order they were made."""
    query = sa.select(usage_adjustment).where(usage_adjustment.c.event_id == event_id)
    query = query.order_by(usage_adjustment.c.created_at, usage_adjustment.c.adjustment_id)
    return tuple(
        Adjustment(
            adjustment_id=row["adjustment_id"],
            event_id=row["event_id"],
            kind=row["kind"],
            change=Measures.of(row),
            cost_pico=row["cost_pico"],
            currency=row["currency"],
            price_ids=tuple(json.loads(row["price_ids"])),
            reason=row["reason"],
            created_by=row["created_by"],
            created_at=row["created_at"],
        )
        for row in connection.execute(query).mappings()
    )


class Books:
    """A ledger with its prices and adjustments."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = Clock()
        self.audit = AuditLog(database, clock=self.clock)
        self.listener = Listener()
        rollups = Rollups(ZoneInfo("UTC"))
        self.ledger = Ledger(database, "b", self.clock, observers=(rollups,))
        self.prices = PriceRepository(database, self.audit, currency="usd", clock=self.clock)
        self.adjustments = Adjustments(
            database, self.audit, observers=(rollups, self.listener), currency="usd", clock=self.clock
        )

    def price(self, meter: str, amount: str, *, before: int | None = None) -> None:
        begin = None if before is None else round(self.clock.now - before) * 1_000_000
        self.prices.add(ADMIN, model="m1", meter=meter, price_per_million=amount, effective_from=begin)
        self.clock.now += 1

    def settled(self, event_id: str = "req_1:1") -> None:
        self.ledger.reserve(reservation(event_id))
        self.clock.now += 1
        assert self.ledger.settle(event_id, DONE)
        self.clock.now += 1

    def correct(self, change: Measures = MORE, event_id: str = "req_1:1", who: Principal = ADMIN) -> Adjustment:
        return self.adjustments.correct(who, event_id, change, reason="counted wrongly")

    def row(self) -> sa.RowMapping:
        with self.database.read() as connection:
            return connection.execute(sa.select(usage_event)).mappings().one()

    def standing(self) -> tuple[Measures, int]:
        with self.database.read() as connection:
            (found,) = adjusted_calls(connection, sa.select(usage_event))
        return found.counts, found.cost_pico


@pytest.fixture
def books(database: Database) -> Books:
    return Books(database)


def test_a_correction_is_a_row_of_its_own_and_the_call_stays_as_it_was(books: Books) -> None:
    books.price("input", "2")
    books.price("output", "10")
    books.settled()
    before = books.row()
    made = books.correct()

    assert books.row() == before
    assert made.cost_pico == 1 * 2_000_000 + 3 * 10_000_000
    assert (made.kind, made.change, made.reason, made.created_by) == ("correction", MORE, "counted wrongly", "root")
    assert made.created_at == round(books.clock.now * 10**6)
    with books.database.read() as connection:
        assert adjustments_of(connection, "req_1:1") == (made,)
        assert adjustments_of(connection, "req_2:1") == ()
    assert books.standing() == (Measures.of(before).plus(MORE), before["cost_pico"] + made.cost_pico)
    assert books.standing()[0].components.total == books.standing()[0].input_tokens == 21


def test_a_correction_counts_in_the_books_when_it_was_made_and_as_no_call(books: Books) -> None:
    books.price("input", "1")
    books.price("output", "1")
    books.settled()
    books.clock.now += 86_400
    made = books.correct()

    (entry,) = books.listener.entries
    assert (entry.calls, entry.status, entry.at) == (0, "adjustment", made.created_at)
    assert (entry.tenant_id, entry.user_id, entry.key_id, entry.model) == ("t1", "u1", "k1", "m1")
    assert entry.cost_pico == made.cost_pico
    with books.database.read() as connection:
        lines = {row["status"]: row for row in connection.execute(sa.select(usage_rollup_15m)).mappings()}
    assert set(lines) == {"completed", "adjustment"}
    assert lines["adjustment"]["bucket_start"] == made.created_at - made.created_at % 900_000_000
    assert {name: lines["adjustment"][name] for name in Measures._fields} == MORE._asdict()
    assert (lines["adjustment"]["num_calls"], lines["adjustment"]["num_unpriced"]) == (0, 0)
    assert lines["completed"]["output_tokens"] == 41


def test_a_correction_is_audited(books: Books) -> None:
    books.settled()
    made = books.correct()

    (entry,) = books.audit.list(tenant_id="t1", action="usage.corrected", limit=10)[0]
    assert (entry.target, entry.user_id, entry.detail["event_id"]) == (made.adjustment_id, "root", "req_1:1")
    assert (entry.detail["reason"], entry.detail["output_tokens"]) == ("counted wrongly", 3)


def test_a_correction_costs_what_its_moment_cost_and_not_what_today_costs(books: Books) -> None:
    books.price("input", "1")
    books.price("output", "1")
    books.settled()
    books.price("output", "500")

    assert books.correct(Measures(output_tokens=2)).cost_pico == 2_000_000


def test_a_correction_of_an_unpriced_call_leaves_it_unpriced(books: Books) -> None:
    books.settled()
    made = books.correct()

    assert (made.cost_pico, made.price_ids) == (0, ())
    assert books.row()["cost_pico"] is None


def test_a_correction_that_needs_a_price_there_was_not_waits_for_one(books: Books) -> None:
    books.price("input", "1")
    books.ledger.reserve(reservation())
    books.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))
    assert books.row()["cost_pico"] == 20_000_000

    with pytest.raises(Conflict, match="add that price"):
        books.correct(Measures(output_tokens=1))
    books.price("output", "5", before=1000)
    assert books.correct(Measures(output_tokens=1)).cost_pico == 5_000_000


def test_corrections_add_up(books: Books) -> None:
    books.price("input", "1")
    books.price("output", "1")
    books.settled()
    first = books.correct(Measures(output_tokens=5, output_delivered_tokens=5))
    second = books.correct(Measures(output_tokens=-6, output_delivered_tokens=-6))

    assert (first.cost_pico, second.cost_pico) == (5_000_000, -6_000_000)
    counts, cost = books.standing()
    assert (counts.output_tokens, counts.output_delivered_tokens, cost) == (40, 39, 60_000_000)


def test_corrections_at_the_same_moment_see_each_other(books: Books) -> None:
    books.settled()

    def take(_: int) -> bool:
        try:
            books.correct(Measures(output_tokens=-1, output_delivered_tokens=-10))
        except InvalidRequest:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(take, range(8)))

    assert sum(taken) == 4, "forty were delivered"
    assert (books.standing()[0].output_tokens, books.standing()[0].output_delivered_tokens) == (37, 0)


@pytest.mark.parametrize(
    "impossible",
    [
        Measures(),
        Measures(input_tokens=1),
        Measures(tok_question=1),
        Measures(tok_question=1, tok_context=1, input_tokens=1),
        Measures(tok_question=-6, tok_context=6),
        Measures(input_cached_tokens=14),
        Measures(input_cached_tokens=-8),
        Measures(tok_context=-6, tok_history=-4, tok_question=-5, input_tokens=-15),
        Measures(output_delivered_tokens=2),
        Measures(output_tokens=-2),
        Measures(output_tokens=60),
    ],
    ids=[
        "nothing",
        "input without its part",
        "a part without input",
        "parts above input",
        "part < 0",
        "cached > input",
        "cached < 0",
        "cached > what input is left",
        "delivered > output",
        "output < delivered",
        "output > max",
    ],
)
def test_a_correction_to_impossible_counts_is_refused(books: Books, impossible: Measures) -> None:
    """Invariants 1 and 3 hold for a call with its corrections."""
    books.settled()

    with pytest.raises(InvalidRequest) as caught:
        books.correct(impossible)
    assert caught.value.param == "change"
    assert books.standing()[0] == Measures.of(books.row())
    assert books.listener.entries == []


def test_an_embedding_has_no_parts_to_correct(books: Books) -> None:
    books.ledger.reserve(reservation(operation=Operation.EMBED_DOC, input_tokens=9, max_output_tokens=0))
    books.ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED))

    with pytest.raises(InvalidRequest, match="components"):
        books.correct(Measures(tok_context=1, input_tokens=1))
    assert books.correct(Measures(input_tokens=-9)).change.input_tokens == -9


def test_only_settled_calls_of_the_own_tenant_are_corrected(books: Books) -> None:
    books.settled("req_1:1")
    books.ledger.reserve(reservation("req_2:1"))

    with pytest.raises(Conflict, match="not ended"):
        books.correct(event_id="req_2:1")
    for event_id, who in (("req_9:1", ADMIN), ("req_1:1", replace(ADMIN, tenant_id="t2"))):
        with pytest.raises(NotFound):
            books.correct(event_id=event_id, who=who)


@pytest.mark.parametrize("reason", ["", "  ", "r" * 501, "r\0"], ids=["empty", "blank", "long", "NUL"])
def test_a_correction_needs_a_reason(books: Books, reason: str) -> None:
    books.settled()

    with pytest.raises(InvalidRequest) as caught:
        books.adjustments.correct(ADMIN, "req_1:1", MORE, reason=reason)
    assert caught.value.param == "reason"


@pytest.mark.parametrize("statement", ["UPDATE usage_adjustment SET cost_pico = 0", "DELETE FROM usage_adjustment"])
def test_nobody_changes_an_adjustment(books: Books, statement: str) -> None:
    books.settled()
    made = books.correct()

    with pytest.raises(sa.exc.IntegrityError, match=r"immutable|never deleted"), books.database.write() as connection:
        connection.exec_driver_sql(statement)
    with books.database.read() as connection:
        assert adjustments_of(connection, "req_1:1") == (made,)
