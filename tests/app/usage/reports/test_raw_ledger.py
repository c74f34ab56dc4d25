"""The ledger line by line: whole, in order, by page and as a stream."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.tables.usage_columns import Measures
from app.errors import InvalidRequest, NotFound
from app.types import Components, DocumentShare, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reports.raw_ledger import LineFilter, RawLedger
from tests.app.usage.reports.lines import Books, between, lines
from tests.app.usage.samples import Clock, reservation
from tests.examples import examples

ALL = LineFilter()
START, END = 1_763_600_000, 1_763_600_010
# few moments, so that many lines count in the same microsecond
MOMENTS = st.sampled_from([START * 10**6 + shift for shift in (-1, 0, 1, 5_000_000, 9_999_999, 10_000_000)])
WRITTEN = st.lists(lines(MOMENTS), max_size=12)
SLOW = settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def range_of(start=START, end=END):
    return {"start": start * 10**6, "end": end * 10**6}


def paged(raw, tenant_id, limit, only=ALL, between_pages=lambda: None):
    found, cursor = [], None
    while True:
        page, cursor = raw.page(tenant_id=tenant_id, **range_of(), only=only, limit=limit, cursor=cursor)
        assert len(page) <= limit
        found += page
        if cursor is None:
            return found
        between_pages()


def streamed(raw, tenant_id, only=ALL):
    return [line for batch in raw.batches(tenant_id=tenant_id, **range_of(), only=only) for line in batch]


@SLOW
@given(WRITTEN, st.integers(1, 5))
def test_pages_and_streams_have_every_line_of_the_range_once_and_in_order(database, written, limit):
    """Invariant 14: the pages together are one page."""
    books = Books(database, written)
    raw = RawLedger(database, batch=limit)

    found = paged(raw, books.tenant(), limit)

    expected = between(books.of(), START, END)
    assert sorted((line.at, line.status, line.cost_pico) for line in found if line.cost_pico is not None) == sorted(
        (line.at, line.status, line.cost) for line in expected if line.cost is not None
    )
    assert len(found) == len(expected) == len({line.adjustment_id or line.event_id for line in found})
    assert [line.at for line in found] == sorted(line.at for line in found)
    assert streamed(raw, books.tenant()) == found == paged(raw, books.tenant(), 1000)


@SLOW
@given(WRITTEN)
def test_a_filter_and_its_complement_are_all_lines(database, written):
    """Invariant 13."""
    books, raw = Books(database, written), RawLedger(database, batch=3)
    everything = streamed(raw, books.tenant())
    statuses = ["completed", "client_abort", "server_abort", "error", "recovered"]
    halves: dict[str, tuple[list[str], list[str]]] = {
        "user_ids": (["u1"], ["u2", "U1", "ü"]),
        "models": (["m1"], ["m2"]),
        "api_key_ids": (["k1"], ["k2"]),
        "project_ids": ([""], ["c1"]),
        "statuses": (statuses, ["adjustment"]),
        "operations": (["chat", "rewrite"], ["embed_query", "embed_doc", "rerank", "judge"]),
    }
    for name, values in halves.items():
        found = [line for half in values for line in streamed(raw, books.tenant(), chosen(name, half))]
        assert sorted(found) == sorted(everything), name


def chosen(name: str, values: list[str]) -> LineFilter:
    only: dict[str, Any] = {name: values}
    return LineFilter(**only)


@pytest.fixture
def clock() -> Clock:
    return Clock(START + 1)


@pytest.fixture
def ledger(database, clock) -> Ledger:
    return Ledger(database, boot_id="b1", clock=clock)


def settle(ledger, event_id, **reserved):
    ledger.reserve(reservation(event_id, **reserved))
    ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=7, delivered_tokens=5))


def test_what_is_settled_between_two_pages_comes_after_them(database, ledger, clock):
    """Invariant 14: the order is stable under concurrent inserts."""
    for number in range(5):
        settle(ledger, f"req_{number}:1")
    late = iter(range(5, 7))

    def meanwhile():
        clock.now += 1
        for number in late:
            settle(ledger, f"req_{number}:1")

    found = paged(RawLedger(database), "t1", 2, between_pages=meanwhile)

    assert [line.event_id for line in found] == [f"req_{number}:1" for number in range(7)]


def test_a_line_has_what_the_ledger_row_has_and_open_calls_are_not_listed(database, ledger):
    settle(ledger, "req_1:1", components=Components(2, 3, 4, 5, 6), model="m2", user_id="u9", key_id="k9")
    ledger.reserve(reservation("req_2:1"))

    (line,) = streamed(RawLedger(database), "t1")

    assert (line.event_id, line.request_id, line.user_id, line.api_key_id) == ("req_1:1", "req_1", "u9", "k9")
    assert (line.model, line.operation, line.status, line.count_quality) == ("m2", "chat", "completed", "exact")
    written = {"output_tokens": 7, "output_delivered_tokens": 5}
    assert line.measures == Measures.read(20, Components(2, 3, 4, 5, 6))._replace(**written)
    assert line.max_output_tokens == 100
    assert (line.cost_pico, line.at, line.adjustment_id, line.reason) == (None, (START + 1) * 10**6, "", "")


def test_one_request_can_be_asked_for(database, ledger):
    for event_id in ("req_1:1", "req_1:2", "req_2:1"):
        settle(ledger, event_id)

    found = streamed(RawLedger(database), "t1", LineFilter(request_id="req_1"))

    assert [line.event_id for line in found] == ["req_1:1", "req_1:2"]


def test_a_call_is_found_with_its_documents_by_its_tenant_alone(database, ledger):
    shares = (DocumentShare("doc_1", 1, 2), DocumentShare("doc_2", 1, 4))
    settle(ledger, "req_1:1", documents=shares)
    ledger.reserve(reservation("req_2:1"))
    raw = RawLedger(database)

    assert raw.event("req_1:1", tenant_id="t1").documents == shares
    for event_id, tenant_id in (("req_1:1", "t2"), ("req_2:1", "t1"), ("req_9:1", "t1")):
        with pytest.raises(NotFound):
            raw.event(event_id, tenant_id=tenant_id)


@pytest.mark.parametrize("cursor", ["x", "WzFd", "WzEsIDEsIDFd", "é"])
def test_a_cursor_of_another_list_is_refused(database, cursor):
    with pytest.raises(InvalidRequest):
        RawLedger(database).page(tenant_id="t1", **range_of(), only=ALL, limit=5, cursor=cursor)


def test_lines_of_an_administrator_of_another_tenant_are_not_there(database, ledger):
    settle(ledger, "req_1:1")

    assert streamed(RawLedger(database), "t2") == []
