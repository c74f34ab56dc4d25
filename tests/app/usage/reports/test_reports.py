"""Reports add up: over ranges, zones, groups and pages, and to the lines themselves."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.session import Database
from app.errors import InvalidRequest
from app.types import Components, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.rollups import Rollups
from tests.app.usage.reports.lines import (
    DAY,
    DIMENSIONS,
    GENERATES,
    QUARTER,
    ZONES,
    Books,
    Line,
    between,
    grouped,
    lines,
    reference,
    results,
    total,
    transitions,
    walk,
)
from tests.app.usage.samples import Clock, reservation
from tests.examples import examples

MIDNIGHT = 1_763_596_800  # 2025-11-20T00:00:00Z
EXPLORE = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# those that one kind of sums answers, and those that only the sums by all dimensions do
GROUPS = st.sampled_from(
    [[], ["model"], ["user_id"], ["operation", "model"], ["operation", "user_id"], ["user_id", "model"]]
) | st.lists(st.sampled_from(DIMENSIONS), unique=True, max_size=3)


@dataclass(frozen=True)
class World:
    """Lines around a moment, the zone asked for, the one whose days are kept, and three moments in order."""

    written: list[Line]
    tz: str
    kept: str
    moments: list[int]
    width: str


@st.composite
def worlds(draw: st.DrawFn) -> World:
    tz = draw(st.sampled_from(ZONES))
    kept = draw(st.sampled_from(ZONES) | st.just(tz))
    changes = transitions(ZoneInfo(tz), draw(st.integers(2000, 2037)))
    base = draw(st.sampled_from(changes)) if changes else draw(st.integers(946_684_800, 2_100_000_000))
    width = draw(st.sampled_from(["15m", "1h", "1d", "1d", "1mo"]))
    reach = {"15m": DAY // 3, "1h": DAY, "1d": 4 * DAY, "1mo": 70 * DAY}[width]
    near = st.integers(-reach, reach).map(lambda seconds: base + seconds)
    # on and beside the edges of quarter hours as well as anywhere
    edge = st.tuples(near, st.integers(-1, 1)).map(lambda at: (at[0] - at[0] % QUARTER) * 10**6 + at[1])
    anywhere = st.tuples(near, st.integers(0, 999_999)).map(lambda at: at[0] * 10**6 + at[1])
    ends = near | near.map(lambda at: at - at % QUARTER)
    return World(
        written=draw(st.lists(lines(edge | anywhere), max_size=10)),
        tz=tz,
        kept=kept,
        moments=sorted(draw(st.lists(ends, min_size=3, max_size=3, unique=True))),
        width=width,
    )


@EXPLORE
@given(world=worlds(), group_by=GROUPS)
def test_a_report_is_the_sum_of_its_lines_in_every_zone(database: Database, world: World, group_by: list[str]) -> None:
    """Invariants 11 and 12 against brute force: whatever sums are kept, and whichever zone is asked for."""
    books, start, end = Books(database, world.written, zone=world.kept), world.moments[0], world.moments[2]
    names = [name for name in DIMENSIONS if name in group_by]

    buckets = books.buckets(start=start, end=end, bucket_width=world.width, tz=world.tz, group_by=group_by)

    edges = walk(start, end, world.width, ZoneInfo(world.tz))
    assert [bucket["start_time"] for bucket in buckets] == edges[:-1]
    assert [bucket["end_time"] for bucket in buckets] == edges[1:]
    for bucket in buckets:
        expected = grouped(between(books.of(*GENERATES), bucket["start_time"], bucket["end_time"]), names)
        assert [tuple(result[name] for name in names) for result in bucket["results"]] == list(expected)
        for result, mine in zip(bucket["results"], expected.values(), strict=True):
            assert total([result]) == reference(mine)
            assert (result["cost"]["value"] is None) == all(line.cost is None for line in mine)
            assert {name: result[name] for name in DIMENSIONS if name not in names} == dict.fromkeys(
                set(DIMENSIONS) - set(names)
            )


@EXPLORE
@given(world=worlds(), report=st.sampled_from(["completions", "embeddings", "rerank", "judge"]))
def test_two_ranges_that_meet_are_their_whole(database: Database, world: World, report: str) -> None:
    """Invariant 12: usage[a,c) = usage[a,b) + usage[b,c), also where b is inside a bucket."""
    books, (start, middle, end) = Books(database, world.written, zone=world.kept), world.moments
    asked: dict[str, Any] = {"bucket_width": world.width, "tz": world.tz}

    whole = total(results(books.buckets(report, start=start, end=end, **asked)))

    parts = [(start, middle), (middle, end)]
    halves = [total(results(books.buckets(report, start=a, end=b, **asked))) for a, b in parts]
    summed = halves[0].copy()
    summed.update(halves[1])
    assert Counter({name: count for name, count in summed.items() if count}) == whole


@EXPLORE
@given(world=worlds(), group_by=GROUPS, filtered=st.sampled_from(["user_id", "model", "status", "project_id"]))
def test_groups_add_up_and_a_filter_and_its_complement_are_all(
    database: Database, world: World, group_by: list[str], filtered: str
) -> None:
    """Invariant 13."""
    books = Books(database, world.written, zone=world.kept)
    asked: dict[str, Any] = {
        "start": world.moments[0],
        "end": world.moments[2],
        "bucket_width": world.width,
        "tz": world.tz,
    }
    values = sorted({getattr(line, filtered) for line in books.lines})
    parameter = {"user_id": "user_ids", "model": "models", "status": "statuses", "project_id": "project_ids"}[filtered]

    grouped_by, one = books.buckets(**asked, group_by=group_by), books.buckets(**asked)
    halves = [results(books.buckets(**{**asked, parameter: some})) for some in (values[:1], values[1:])]

    for some, all_of_it in zip(grouped_by, one, strict=True):
        assert len(all_of_it["results"]) <= 1
        assert total(some["results"]) == total(all_of_it["results"])
    assert total([*halves[0], *halves[1]]) == total(results(one))
    mine = [line for line in books.of(*GENERATES) if getattr(line, filtered) in values[:1]]
    assert total(halves[0]) == reference(between(mine, asked["start"], asked["end"]))


@EXPLORE
@given(world=worlds(), group_by=GROUPS, limit=st.integers(1, 31), most=st.integers(0, 4))
def test_pages_make_one_page(database: Database, world: World, group_by: list[str], limit: int, most: int) -> None:
    """Invariant 14: also where pages end early because of their many groups."""
    books = Books(database, world.written, zone=world.kept)
    # cut at both ends and by a change of clocks, 29 days touch 31 local ones, the most on a page
    start, end = world.moments[0], world.moments[0] + min(world.moments[2] - world.moments[0], 29 * DAY)
    width = "1d" if world.width == "1mo" else "1h"
    end = min(end, start + 160 * 3600) if width == "1h" else end
    asked: dict[str, Any] = {"start": start, "end": end, "bucket_width": width, "tz": world.tz, "group_by": group_by}

    one = books.page("completions", **asked, limit=168 if width == "1h" else 31)
    narrow = UsageReports(database, zone=books.zone, most_results=most, clock=Clock(0))
    books.reports = narrow

    assert one["next_page"] is None
    assert books.buckets(**asked, limit=limit) == one["data"]


@EXPLORE
@given(world=worlds())
def test_a_closed_range_reads_the_same_whatever_comes_later(database: Database, world: World) -> None:
    """Invariant 16."""
    books, end = Books(database, world.written, zone=world.kept), world.moments[1]
    asked: dict[str, Any] = {
        "start": world.moments[0],
        "end": end,
        "bucket_width": world.width,
        "tz": world.tz,
        "group_by": ["model"],
    }
    before = json.dumps(books.page("completions", **asked))

    with database.write() as connection:
        for at in (end * 10**6, end * 10**6 + 1):
            Rollups(books.zone).settle_in(connection, books.entry(Line(at, parts=(7, 7, 7, 7, 7), cost=5)))

    assert json.dumps(books.page("completions", **asked)) == before


def spend(ledger: Ledger, clock: Clock, event_id: str, **reserved: Any) -> None:
    ledger.reserve(reservation(event_id, **reserved))
    clock.now += 1
    ledger.settle(
        event_id, Settlement(status=UsageStatus.COMPLETED, cached_tokens=5, output_tokens=9, delivered_tokens=8)
    )


def test_a_completions_report_has_the_published_shape(database: Database) -> None:
    """Invariant 5: the row of the report is the row of the ledger."""
    clock = Clock(MIDNIGHT + 100)
    ledger = Ledger(database, "b", clock, observers=[Rollups(ZoneInfo("UTC"))])
    spend(ledger, clock, "req_1:1", components=Components(20, 40, 90, 30, 320))
    clock.now = MIDNIGHT + 3 * DAY + 0.5
    reports = UsageReports(database, clock=clock, currency="eur")

    report: dict[str, Any] = reports.completions(
        ReportQuery(tenant_id="t1", start=MIDNIGHT, end=MIDNIGHT + 2 * DAY, group_by=["user_id"], tz="Asia/Kathmandu")
    )

    (row,) = ledger.usage("req_1")
    third = MIDNIGHT + DAY - 20_700  # midnight at +05:45
    assert [(bucket["start_time"], bucket["end_time"]) for bucket in report["data"][1:]] == [
        (third, third + DAY),
        (third + DAY, MIDNIGHT + 2 * DAY),
    ]
    report["data"] = report["data"][:2]
    assert json.loads(json.dumps(report)) == {
        "object": "page",
        "data": [
            {
                "object": "bucket",
                "start_time": MIDNIGHT,
                "end_time": third,
                "start_local": "2025-11-20T05:45:00+05:45",
                "results": [
                    {
                        "object": "organization.usage.completions.result",
                        "input_tokens": row.input_tokens,
                        "input_cached_tokens": row.cached_tokens,
                        "input_uncached_tokens": 495,
                        "output_tokens": row.output_tokens,
                        "output_delivered_tokens": row.delivered_tokens,
                        "num_model_requests": 1,
                        "num_aborted": 0,
                        "num_recovered": 0,
                        "num_unpriced": 1,
                        "components": {"system": 40, "history": 90, "context": 320, "question": 30, "template": 20},
                        "cost": {"value": None, "currency": "eur"},
                        "tenant_id": None,
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
                "start_time": third,
                "end_time": third + DAY,
                "start_local": "2025-11-21T00:00:00+05:45",
                "results": [],
            },
        ],
        "has_more": False,
        "next_page": None,
        "as_of": MIDNIGHT + 3 * DAY,
        "final": True,
        "tz": "Asia/Kathmandu",
    }
    assert (row.input_tokens, row.cached_tokens, row.output_tokens, row.delivered_tokens) == (500, 5, 9, 8)


@pytest.mark.parametrize("report", ["completions", "costs"])
def test_a_report_by_tenant_is_of_the_one_who_asks(database: Database, report: str) -> None:
    clock = Clock(MIDNIGHT + 100)
    ledger = Ledger(database, "b", clock, observers=[Rollups(ZoneInfo("UTC"))])
    spend(ledger, clock, "req_1:1")
    asked = ReportQuery(tenant_id="t1", start=MIDNIGHT, end=MIDNIGHT + DAY, group_by=["tenant_id", "user_id"])

    found: dict[str, Any] = getattr(UsageReports(database, clock=clock), report)(asked)

    results = [result for bucket in found["data"] for result in bucket["results"]]
    assert [(result["tenant_id"], result["user_id"]) for result in results] == [("t1", "u1")]


@pytest.mark.parametrize("cost", [2**63 - 1, 10**9 - 1])
def test_money_has_twelve_decimals_and_no_rounding_beyond_64_bits(database: Database, cost: int) -> None:
    line = Line(MIDNIGHT * 10**6, cost=cost)
    books = Books(database, [line] * 3)

    for asked in ({"end": MIDNIGHT + 1}, {"end": MIDNIGHT + DAY}, {"end": MIDNIGHT + 40 * DAY, "bucket_width": "1mo"}):
        (result,) = results(books.buckets(start=MIDNIGHT, **asked))
        assert result["cost"]["value"] == f"{3 * cost // 10**12}.{3 * cost % 10**12:012d}"


def test_a_negative_cost_is_written_with_a_minus_sign(database: Database) -> None:
    books = Books(database, [Line(MIDNIGHT * 10**6, status="adjustment", cost=-1)])

    (result,) = results(books.buckets(start=MIDNIGHT, end=MIDNIGHT + 1))

    assert (result["cost"]["value"], result["num_model_requests"]) == ("-0.000000000001", 0)


def test_a_range_up_to_now_is_not_final(database: Database) -> None:
    reports = UsageReports(database, clock=Clock(MIDNIGHT + 500))

    def final(end: int | None) -> object:
        return reports.completions(ReportQuery(tenant_id="t1", start=MIDNIGHT, end=end))["final"]

    assert [final(end) for end in (None, MIDNIGHT + 500, MIDNIGHT + 441, MIDNIGHT + 440)] == [False, False, False, True]


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
        ({"start": 0, "group_by": ["line_item"]}, "group_by"),
        ({"start": 0, "tz": "Europe/Atlantis"}, "tz"),
        ({"start": 0, "tz": "../../etc/passwd"}, "tz"),
        ({"start": 0, "limit": 0}, "limit"),
        ({"start": 0, "limit": 32}, "limit"),
        ({"start": 0, "bucket_width": "15m", "limit": 673}, "limit"),
        ({"start": 0, "bucket_width": "1h", "limit": 169}, "limit"),
        ({"start": 0, "bucket_width": "1mo", "limit": 37}, "limit"),
        ({"start": 0, "page": "page_"}, "page"),
        ({"start": 0, "page": "page_1"}, "page"),
        ({"start": 0, "page": "page_0"}, "page"),
        ({"start": 0, "page": "page_²"}, "page"),
        ({"start": 0, "page": f"page_{10**40}"}, "page"),
        ({"start": 0, "end": DAY, "page": f"page_{DAY}"}, "page"),
        ({"start": 0, "end": 3 * DAY, "page": f"page_{DAY}", "tz": "Europe/Berlin"}, "page"),
    ],
)
def test_an_invalid_report_query_is_refused_by_its_parameter_name(
    sqlite_database: Database, asked: dict[str, Any], param: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        UsageReports(sqlite_database).completions(ReportQuery(tenant_id="t1", **asked))
    assert caught.value.param == param
