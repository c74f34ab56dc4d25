"""Costs by line item and by document add up to what calls cost, to the last pico-unit."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.session import Database
from app.db.tables.documents import job
from app.db.tables.ledger import api_request, usage_event, usage_event_document
from app.db.tables.prices import price, usage_adjustment
from app.db.tables.usage_columns import Measures
from app.errors import InvalidRequest
from app.types import Operation
from app.usage.ledger.entry import Entry
from app.usage.ledger.pricing import METERS, Rate, cost_pico
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.rollups import Rollups
from tests.app.usage.reports.lines import Books, Line, pico, results
from tests.app.usage.samples import Clock
from tests.examples import examples

START, END = 1_763_596_800, 1_763_596_800 + 86_400
AT = START * 10**6
EXPLORE = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Call:
    """A settled call: what it counted, the rates noted with it by meter, its documents' tokens, its adjustments."""

    operation: str
    input_tokens: int
    cached: int
    output: int
    rates: dict[str, int]
    documents: dict[str, int]
    adjustments: tuple[int, ...]
    late: int

    @property
    def cost(self) -> int | None:
        """As it was settled."""
        rates = [Rate(meter, meter, pico) for meter, pico in self.rates.items()]
        return cost_pico(
            rates,
            Operation(self.operation),
            input_tokens=self.input_tokens,
            cached_tokens=self.cached,
            output_tokens=self.output,
        )


@st.composite
def calls(draw: st.DrawFn) -> Call:
    documents = draw(st.dictionaries(st.sampled_from(["d1", "d2", "d3"]), st.integers(0, 400), max_size=3))
    operation = draw(st.sampled_from(["chat", "chat", "embed_doc", "embed_query"]))
    tokens = sum(documents.values()) + draw(st.integers(0, 500))
    return Call(
        operation=operation,
        input_tokens=tokens,
        cached=draw(st.integers(0, tokens)) if operation == "chat" else 0,
        output=draw(st.integers(0, 100)) if operation == "chat" else 0,
        rates=draw(st.dictionaries(st.sampled_from(METERS), st.integers(0, 10**15), max_size=4)),
        documents=documents if operation == "chat" else {},
        adjustments=tuple(draw(st.lists(st.integers(-(10**17), 10**17), max_size=2))),
        late=draw(st.integers(0, 40_000)),
    )


class Bills:
    """Calls written with their prices, documents and adjustments."""

    def __init__(self, database: Database, made: list[Call]) -> None:
        self.reports = UsageReports(database, clock=Clock(END + 1000))
        rollups = Rollups(ZoneInfo("UTC"))
        with database.write() as connection:
            self.tenant = f"run{connection.execute(sa.select(sa.func.count()).select_from(api_request)).scalar()}"
            for number, call in enumerate(made):
                self._write(connection, rollups, f"{self.tenant}_{number}", call)

    def _write(self, connection: sa.Connection, rollups: Rollups, request_id: str, call: Call) -> None:
        event_id, at = f"{request_id}:1", AT + call.late * 10**6
        connection.execute(
            sa.insert(api_request).values(
                request_id=request_id, tenant_id=self.tenant, endpoint="/", accepted_at=0, boot_id="b"
            )
        )
        price_ids = []
        for meter, rate in call.rates.items():
            price_ids.append(f"{event_id}{meter}")
            values: dict[str, Any] = {
                "price_id": price_ids[-1],
                "model_id": event_id,
                "meter": meter,
                "pico_per_token": rate,
            }
            connection.execute(
                sa.insert(price).values(**values, currency="usd", effective_from=0, created_by="u", created_at=0)
            )
        connection.execute(
            sa.insert(usage_event).values(
                event_id=event_id,
                request_id=request_id,
                operation=call.operation,
                tenant_id=self.tenant,
                boot_id="b",
                model_id="m",
                tokenizer_rev="r",
                status="completed",
                tok_context=call.input_tokens if call.operation == "chat" else 0,
                input_tokens=call.input_tokens,
                input_cached_tokens=call.cached,
                output_tokens=call.output,
                max_output_tokens=100,
                cost_pico=call.cost,
                price_ids=json.dumps(price_ids),
                accepted_at=0,
                settled_at=at,
            )
        )
        for document_id, tokens in call.documents.items():
            values = {"event_id": event_id, "document_id": document_id, "chunks": 1, "tokens": tokens}
            connection.execute(sa.insert(usage_event_document).values(**values))
        if call.operation == "embed_doc":
            connection.execute(
                sa.insert(job).values(
                    id=request_id,
                    tenant_id=self.tenant,
                    document_id="d1",
                    version=1,
                    status="done",
                    attempts=1,
                    replace=False,
                    user_id="u",
                    key_id="k",
                    created_at=0,
                )
            )
        rollups.settle_in(connection, self._entry(call, at, call.cost, "completed"))
        for number, cost in enumerate(call.adjustments):
            values = {"adjustment_id": f"{event_id}{number}", "event_id": event_id, "cost_pico": cost}
            more: dict[str, Any] = {
                "kind": "rerate",
                "currency": "usd",
                "reason": "r",
                "created_by": "u",
                "created_at": at,
            }
            connection.execute(sa.insert(usage_adjustment).values(**values, **more))
            rollups.settle_in(connection, self._entry(call, at, cost, "adjustment"))

    def _entry(self, call: Call, at: int, cost: int | None, status: str) -> Entry:
        settled = status == "completed"
        return Entry(
            event_id="",
            tenant_id=self.tenant,
            project_id="",
            user_id="",
            key_id="",
            model="m",
            operation=Operation(call.operation),
            status=status,
            at=at,
            calls=1 if settled else 0,
            measures=Measures(
                input_tokens=call.input_tokens,
                input_cached_tokens=call.cached,
                output_tokens=call.output,
                tok_context=call.input_tokens if call.operation == "chat" else 0,
            )
            if settled
            else Measures(),
            cost_pico=cost,
        )

    def costs(self, **asked: Any) -> list[dict[str, Any]]:
        query = ReportQuery(tenant_id=self.tenant, start=START, end=END, **asked)
        page: dict[str, Any] = self.reports.costs(query)
        return results(page["data"])

    def total(self) -> int:
        return sum(pico(result["amount"]["value"]) for result in self.costs())


@EXPLORE
@given(made=st.lists(calls(), max_size=6))
def test_line_items_are_tokens_times_prices_and_add_up(database: Database, made: list[Call]) -> None:
    """Invariants 6 and 13 for the bill."""
    bills = Bills(database, made)

    items = {result["line_item"]: result for result in bills.costs(group_by=["line_item"])}

    amounts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for call in made:
        counts: dict[str, Any] = {
            "input": call.input_tokens - call.cached,
            "cached input": call.cached,
            "output": call.output,
        }
        if call.operation != "chat":
            counts = {"embedding": call.input_tokens}
        for meter, count in counts.items():
            tokens[f"m, {meter}"] += count
            if call.cost is not None:
                fallback = call.rates.get("input", 0) if meter == "cached input" else 0
                amounts[f"m, {meter}"] += count * call.rates.get(meter.replace(" ", "_"), fallback)
        amounts["adjustment"] += sum(call.adjustments)
    assert {name: result["quantity"] for name, result in items.items() if name != "adjustment"} == {
        name: count for name, count in tokens.items() if count
    }
    for name, result in items.items():
        assert pico(result["amount"]["value"]) == amounts[name]
    assert sum(pico(result["amount"]["value"]) for result in items.values()) == bills.total()
    assert bills.total() == sum((call.cost or 0) + sum(call.adjustments) for call in made)


@EXPLORE
@given(
    made=st.lists(calls(), max_size=6),
    group_by=st.lists(st.sampled_from(["model", "operation", "status"]), unique=True),
)
def test_documents_bear_their_share_and_what_is_left_is_of_none(
    database: Database, made: list[Call], group_by: list[str]
) -> None:
    """Invariant 13 by document: a share is cost times its tokens by the prompt's, rounded down."""
    bills = Bills(database, made)

    found = bills.costs(group_by=[*group_by, "document_id"])

    expected: Counter[str] = Counter()
    for call in made:
        for cost in (call.cost or 0, *call.adjustments):
            if call.operation == "embed_doc":
                expected["d1"] += cost
            for document_id, tokens in call.documents.items():
                if tokens:
                    sign = -1 if cost < 0 else 1  # towards zero
                    expected[document_id] += sign * (abs(cost) * tokens // call.input_tokens)
    shares: Counter[str] = Counter()
    for result in found:
        shares[result["document_id"]] += pico(result["amount"]["value"])
    assert sum(shares.values()) == bills.total()
    assert {name: share for name, share in shares.items() if share and name} == {
        name: share for name, share in expected.items() if share
    }


def test_a_result_has_the_published_shape(database: Database) -> None:
    call = Call("chat", 10, 4, 2, {"input": 10**6, "output": 3 * 10**6}, {}, (), 0)
    bills = Bills(database, [call])

    found = bills.costs(group_by=["line_item", "model"])

    assert found[0] == {
        "object": "organization.costs.result",
        "amount": {"value": "0.000004000000", "currency": "usd"},
        "quantity": 4,
        "quantity_unit": "tokens",
        "num_unpriced": None,
        "tenant_id": None,
        "project_id": None,
        "user_id": None,
        "api_key_id": None,
        "model": "m",
        "operation": None,
        "status": None,
        "line_item": "m, cached input",
        "document_id": None,
    }
    assert [result["line_item"] for result in found] == ["m, cached input", "m, input", "m, output"]


def test_what_has_no_price_has_no_amount(database: Database) -> None:
    bills = Bills(database, [Call("chat", 10, 0, 2, {}, {"d1": 5}, (), 0)])

    assert [result["amount"]["value"] for result in bills.costs(group_by=["line_item"])] == [None, None]
    (whole,) = bills.costs()
    assert (whole["amount"]["value"], whole["num_unpriced"]) == (None, 1)
    (of_none,) = bills.costs(group_by=["document_id"])
    assert (of_none["amount"]["value"], of_none["document_id"]) == (None, "")


def test_a_cost_that_no_price_explains_is_an_item_of_its_own(database: Database) -> None:
    books = Books(database, [Line(AT, cost=10**12, parts=(1, 0, 0, 0, 0))])

    (result,) = results(books.buckets("costs", start=START, end=END, group_by=["line_item"]))

    assert (result["line_item"], result["amount"]["value"]) == ("m1, other", "1.000000000000")


def test_a_call_is_divided_by_line_item_or_by_document(sqlite_database: Database) -> None:
    with pytest.raises(InvalidRequest) as caught:
        UsageReports(sqlite_database).costs(
            ReportQuery(tenant_id="t1", start=0, end=9, group_by=["document_id", "line_item"])
        )
    assert caught.value.param == "group_by"
