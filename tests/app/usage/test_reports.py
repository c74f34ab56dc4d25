"""Reports add up: over ranges, groups and pages, and to the rows themselves."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.session import Database
from app.db.tables_ledger import api_request, usage_event
from app.errors import InvalidRequest
from app.types import Components, Operation, Settlement, UsageStatus
from app.usage.ledger import Ledger
from app.usage.reports import UsageReports
from tests.app.usage.samples import Clock, reservation

DAY = 86_400
MIDNIGHT = 1_763_596_800  # 2025-11-20T00:00:00Z
COUNTED = ("input_tokens", "input_cached_tokens", "input_uncached_tokens", "output_tokens", "output_delivered_tokens")
NUMBERS = ("num_model_requests", "num_aborted", "num_recovered", "num_unpriced")


@dataclass(frozen=True)
class Event:
    """A settled call as the reference counts it; `at` in Unix microseconds."""

    at: int
    user_id: str
    api_key_id: str
    model: str
    status: str
    parts: tuple[int, int, int, int, int]
    cached: int
    output: int
    delivered: int
    cost: int | None
    operation: str = "chat"
    tenant_id: str = "t1"


@st.composite
def events(draw: st.DrawFn) -> Event:
    parts = draw(st.tuples(*[st.integers(0, 50)] * 5))
    output = draw(st.integers(0, 90))
    return Event(
        # on and beside the edges of hours and days as well as anywhere
        at=draw(
            st.one_of(
                st.integers(MIDNIGHT * 10**6, (MIDNIGHT + 3 * DAY) * 10**6),
                st.builds(
                    lambda hour, off: (MIDNIGHT + hour * 3600) * 10**6 + off, st.integers(0, 72), st.integers(-1, 1)
                ),
            )
        ),
        user_id=draw(st.sampled_from(["u1", "u2", "U1", "ü"])),
        api_key_id=draw(st.sampled_from(["k1", "k2"])),
        model=draw(st.sampled_from(["m1", "m2"])),
        status=draw(st.sampled_from(["completed", "client_abort", "server_abort", "error", "recovered"])),
        parts=parts,
        cached=draw(st.integers(0, sum(parts))),
        output=output,
        delivered=draw(st.integers(0, output)),
        cost=draw(st.one_of(st.none(), st.integers(0, 2**62))),
        operation=draw(st.sampled_from(["chat", "chat", "rewrite", "embed_query"])),
        tenant_id=draw(st.sampled_from(["t1", "t1", "t1", "t2"])),
    )


LEDGERS = st.lists(events(), max_size=12)
MOMENTS = st.one_of(
    st.integers(MIDNIGHT - DAY, MIDNIGHT + 4 * DAY), st.integers(-24, 96).map(lambda hour: MIDNIGHT + hour * 3600)
)
GROUPS = st.lists(st.sampled_from(["user_id", "api_key_id", "model"]), unique=True, max_size=3)
WIDTHS = st.sampled_from(["1h", "1d"])
EXPLORE = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Books:
    """A fresh ledger holding `rows`, and the reports over it."""

    def __init__(self, database: Database, rows: list[Event]) -> None:
        self.rows = [row for row in rows if row.operation in {"chat", "rewrite"} and row.tenant_id == "t1"]
        self.reports = UsageReports(database, clock=Clock(MIDNIGHT + 10 * DAY))
        with database.write() as connection:
            # reports of one example must not see another's: each has tenants of its own
            self._tenant = f"run{connection.execute(sa.select(sa.func.count()).select_from(api_request)).scalar()}-"
            connection.execute(
                sa.insert(api_request).values(
                    request_id=self._tenant, tenant_id="", endpoint="/v1/ask", accepted_at=0, boot_id="b"
                )
            )
            for number, row in enumerate(rows):
                context, system, history, question, template = row.parts
                connection.execute(
                    sa.insert(usage_event).values(
                        event_id=f"{self._tenant}:{number}",
                        request_id=self._tenant,
                        operation=row.operation,
                        tenant_id=self._tenant + row.tenant_id,
                        user_id=row.user_id,
                        api_key_id=row.api_key_id,
                        boot_id="b",
                        model_id=row.model,
                        tokenizer_rev="r1",
                        status=row.status,
                        tok_context=context,
                        tok_system=system,
                        tok_history=history,
                        tok_question=question,
                        tok_template=template,
                        input_tokens=sum(row.parts),
                        input_cached_tokens=row.cached,
                        output_tokens=row.output,
                        output_delivered_tokens=row.delivered,
                        max_output_tokens=100,
                        cost_pico=row.cost,
                        accepted_at=0,
                        settled_at=row.at,
                    )
                )

    def report(self, **asked: Any) -> dict[str, Any]:
        return self.reports.completions(tenant_id=f"{self._tenant}t1", **asked)

    def buckets(self, **asked: Any) -> list[dict[str, Any]]:
        """All buckets, page after page."""
        found: list[dict[str, Any]] = []
        page = None
        while True:
            report = self.report(page=page, **asked)
            assert len(report["data"]) <= asked.get("limit", 168)
            found += report["data"]
            page = report["next_page"]
            assert report["has_more"] == (page is not None)
            if page is None:
                return found


def results(buckets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [result for bucket in buckets for result in bucket["results"]]


def total(found: list[dict[str, Any]]) -> Counter[str]:
    """Every number of some results, summed; money in pico-units."""
    summed: Counter[str] = Counter()
    for result in found:
        summed.update({name: result[name] for name in (*COUNTED, *NUMBERS)})
        summed.update(result["components"])
        summed["cost"] += int((result["cost"]["value"] or "0").replace(".", ""))
    return +summed


def reference(rows: list[Event]) -> Counter[str]:
    """The same numbers straight from the rows."""
    summed: Counter[str] = Counter()
    for row in rows:
        summed.update(dict(zip(("context", "system", "history", "question", "template"), row.parts, strict=True)))
        summed.update(
            {
                "input_tokens": sum(row.parts),
                "input_cached_tokens": row.cached,
                "input_uncached_tokens": sum(row.parts) - row.cached,
                "output_tokens": row.output,
                "output_delivered_tokens": row.delivered,
                "num_model_requests": 1,
                "num_aborted": row.status in ("client_abort", "server_abort"),
                "num_recovered": row.status == "recovered",
                "num_unpriced": row.cost is None,
                "cost": row.cost or 0,
            }
        )
    return +summed


@EXPLORE
@given(rows=LEDGERS, start=MOMENTS, seconds=st.integers(1, 4 * DAY), width=WIDTHS, group_by=GROUPS)
def test_a_report_is_the_sum_of_its_rows(
    database: Database, rows: list[Event], start: int, seconds: int, width: str, group_by: list[str]
) -> None:
    books, end, size = Books(database, rows), start + seconds, {"1h": 3600, "1d": DAY}[width]

    buckets = books.buckets(start=start, end=end, bucket_width=width, group_by=group_by)

    assert [buckets[0]["start_time"], buckets[-1]["end_time"]] == [start, end]
    for bucket, after in zip(buckets, [*buckets[1:], None], strict=True):
        assert bucket["start_time"] // size == (bucket["end_time"] - 1) // size
        assert after is None or after["start_time"] == bucket["end_time"]
        inside = [row for row in books.rows if bucket["start_time"] * 10**6 <= row.at < bucket["end_time"] * 10**6]
        names = [name for name in ("user_id", "api_key_id", "model") if name in group_by]
        keys = sorted({tuple(getattr(row, name) for name in names) for row in inside})
        assert [tuple(result[name] for name in names) for result in bucket["results"]] == keys
        for result, key in zip(bucket["results"], keys, strict=True):
            mine = [row for row in inside if tuple(getattr(row, name) for name in names) == key]
            assert total([result]) == reference(mine)
            priced = [row for row in mine if row.cost is not None]
            assert (result["cost"]["value"] is None) == (not priced)


@EXPLORE
@given(rows=LEDGERS, moments=st.lists(MOMENTS, min_size=3, max_size=3, unique=True).map(sorted), width=WIDTHS)
def test_two_ranges_that_meet_are_their_whole(
    database: Database, rows: list[Event], moments: list[int], width: str
) -> None:
    books, (start, middle, end) = Books(database, rows), moments

    whole = total(results(books.buckets(start=start, end=end, bucket_width=width)))

    parts = [
        total(results(books.buckets(start=start, end=middle, bucket_width=width))),
        total(results(books.buckets(start=middle, end=end, bucket_width=width))),
    ]
    assert parts[0] + parts[1] == whole


@EXPLORE
@given(rows=LEDGERS, group_by=GROUPS, width=WIDTHS)
def test_groups_add_up_to_the_ungrouped(database: Database, rows: list[Event], group_by: list[str], width: str) -> None:
    books = Books(database, rows)
    asked = {"start": MIDNIGHT - DAY, "end": MIDNIGHT + 4 * DAY, "bucket_width": width}

    grouped, ungrouped = books.buckets(**asked, group_by=group_by), books.buckets(**asked)

    for some, one in zip(grouped, ungrouped, strict=True):
        assert len(one["results"]) <= 1
        assert total(some["results"]) == total(one["results"])


@EXPLORE
@given(rows=LEDGERS, group_by=GROUPS, limit=st.integers(1, 31), start=MOMENTS, seconds=st.integers(1, 4 * DAY))
def test_pages_make_one_page(
    database: Database, rows: list[Event], group_by: list[str], limit: int, start: int, seconds: int
) -> None:
    books = Books(database, rows)
    asked = {"start": start, "end": start + seconds, "bucket_width": "1h", "group_by": group_by}

    one = books.report(**asked, limit=168)

    assert one["next_page"] is None
    assert books.buckets(**asked, limit=limit) == one["data"]


@EXPLORE
@given(rows=LEDGERS, chosen=st.lists(st.sampled_from(["u1", "u2"]), unique=True))
def test_a_filter_and_its_complement_are_all(database: Database, rows: list[Event], chosen: list[str]) -> None:
    books = Books(database, rows)
    asked = {"start": MIDNIGHT - DAY, "end": MIDNIGHT + 4 * DAY}
    others = [user for user in ("u1", "u2", "U1", "ü") if user not in chosen]

    halves = [results(books.buckets(**asked, user_ids=users)) for users in (chosen, others)]

    assert total(halves[0]) + total(halves[1]) == total(results(books.buckets(**asked)))
    assert total(halves[0]) == reference([row for row in books.rows if row.user_id in chosen])


def spend(ledger: Ledger, clock: Clock, event_id: str, **reserved: Any) -> None:
    ledger.reserve(reservation(event_id, **reserved))
    clock.now += 1
    ledger.settle(
        event_id, Settlement(status=UsageStatus.COMPLETED, cached_tokens=5, output_tokens=9, delivered_tokens=8)
    )


def test_the_shape_is_the_published_one(database: Database) -> None:
    clock = Clock(MIDNIGHT + 100)
    spend(Ledger(database, "b", clock), clock, "req_1:1", components=Components(20, 40, 90, 30, 320))
    clock.now = MIDNIGHT + 3 * DAY + 0.5
    reports = UsageReports(database, clock=clock)

    report = reports.completions(tenant_id="t1", start=MIDNIGHT, end=MIDNIGHT + 2 * DAY, group_by=["user_id"])

    assert json.loads(json.dumps(report)) == {
        "object": "page",
        "data": [
            {
                "object": "bucket",
                "start_time": MIDNIGHT,
                "end_time": MIDNIGHT + DAY,
                "start_local": "2025-11-20T00:00:00+00:00",
                "results": [
                    {
                        "object": "organization.usage.completions.result",
                        "input_tokens": 500,
                        "input_cached_tokens": 5,
                        "input_uncached_tokens": 495,
                        "output_tokens": 9,
                        "output_delivered_tokens": 8,
                        "num_model_requests": 1,
                        "num_aborted": 0,
                        "num_recovered": 0,
                        "num_unpriced": 1,
                        "components": {"system": 40, "history": 90, "context": 320, "question": 30, "template": 20},
                        "cost": {"value": None, "currency": "usd"},
                        "project_id": None,
                        "user_id": "u1",
                        "api_key_id": None,
                        "model": None,
                        "operation": None,
                        "status": None,
                    }
                ],
            },
            {
                "object": "bucket",
                "start_time": MIDNIGHT + DAY,
                "end_time": MIDNIGHT + 2 * DAY,
                "start_local": "2025-11-21T00:00:00+00:00",
                "results": [],
            },
        ],
        "has_more": False,
        "next_page": None,
        "as_of": MIDNIGHT + 3 * DAY,
        "final": True,
        "tz": "UTC",
    }


@pytest.mark.parametrize("width", ["1h", "1d"])
def test_the_start_is_inside_and_the_end_is_not(database: Database, width: str) -> None:
    edges = (MIDNIGHT + 7200, MIDNIGHT + 9000)
    books = Books(
        database, [Event(at * 10**6, "u", "k", "m", "completed", (1, 0, 0, 0, 0), 0, 0, 0, None) for at in edges]
    )

    (result,) = results(books.buckets(start=edges[0], end=edges[1], bucket_width=width))

    assert result["num_model_requests"] == 1


def test_money_has_twelve_decimals_and_no_rounding(database: Database) -> None:
    row = Event(MIDNIGHT * 10**6, "u", "k", "m", "completed", (1, 0, 0, 0, 0), 0, 0, 0, 2**63 - 1)
    books = Books(database, [row, row])

    (result,) = results(books.buckets(start=MIDNIGHT, end=MIDNIGHT + 1))

    assert result["cost"]["value"] == "18446744.073709551614"


def test_a_range_up_to_now_is_not_final(database: Database) -> None:
    clock = Clock(MIDNIGHT + 500)
    reports = UsageReports(database, clock=clock)

    assert reports.completions(tenant_id="t1", start=MIDNIGHT)["final"] is False
    assert reports.completions(tenant_id="t1", start=MIDNIGHT, end=MIDNIGHT + 500)["final"] is False
    assert reports.completions(tenant_id="t1", start=MIDNIGHT, end=MIDNIGHT + 440)["final"] is True


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"start": 10, "end": 10}, "end_time"),
        ({"start": 10, "end": 9}, "end_time"),
        ({"start": -1, "end": 9}, "start_time"),
        ({"start": 10**18}, "start_time"),
        ({"start": 0, "end": 10**18}, "end_time"),
        ({"start": 0, "bucket_width": "1m"}, "bucket_width"),
        ({"start": 0, "group_by": ["user_id", "colour"]}, "group_by"),
        ({"start": 0, "limit": 0}, "limit"),
        ({"start": 0, "limit": 32}, "limit"),
        ({"start": 0, "bucket_width": "1h", "limit": 169}, "limit"),
        ({"start": 0, "page": "page_"}, "page"),
        ({"start": 0, "page": "page_1"}, "page"),
        ({"start": 0, "page": "page_0"}, "page"),
        ({"start": 0, "page": "page_²"}, "page"),
        ({"start": 0, "page": f"page_{10**40}"}, "page"),
        ({"start": 0, "end": DAY, "page": f"page_{DAY}"}, "page"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(database: Database, asked: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        UsageReports(database).completions(tenant_id="t1", **asked)
    assert caught.value.param == param


def test_everyone_sees_their_own_use_today_this_month_and_in_all(database: Database) -> None:
    clock = Clock(MIDNIGHT - 30 * DAY)
    ledger = Ledger(database, "b", clock)
    spend(ledger, clock, "req_1:1")
    clock.now = MIDNIGHT - DAY
    spend(ledger, clock, "req_2:1")
    clock.now = MIDNIGHT + 7
    spend(ledger, clock, "req_3:1")
    spend(ledger, clock, "req_4:1", user_id="u2")
    spend(ledger, clock, "req_5:1", tenant_id="t2")
    ledger.reserve(reservation("req_6:1"))
    ledger.reserve(reservation("req_7:1", operation=Operation.EMBED_QUERY, input_tokens=12, max_output_tokens=0))
    ledger.settle("req_7:1", Settlement(status=UsageStatus.COMPLETED))

    own: dict[str, Any] = UsageReports(database, clock=clock).own(tenant_id="t1", user_id="u1")

    periods = ("today", "month", "all_time")
    assert [own[name]["start_time"] for name in periods] == [MIDNIGHT, MIDNIGHT - 19 * DAY, 0]
    assert [own[name]["completions"]["num_model_requests"] for name in periods] == [1, 2, 3]
    assert [own[name]["completions"]["input_tokens"] for name in periods] == [20, 40, 60]
    assert [own[name]["embeddings"] for name in periods] == [{"num_model_requests": 1, "input_tokens": 12}] * 3
    assert (own["object"], own["user_id"], own["as_of"]) == ("usage", "u1", int(clock.now))


def test_someone_who_spent_nothing_has_zeros(database: Database) -> None:
    own: dict[str, Any] = UsageReports(database).own(tenant_id="t1", user_id="nobody")

    assert own["all_time"]["completions"]["input_tokens"] == 0
    assert own["all_time"]["completions"]["cost"]["value"] is None
    assert own["all_time"]["embeddings"] == {"num_model_requests": 0, "input_tokens": 0}
