"""The overview equals a slow recount of single rows, in every bucket and for both periods."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db.session import Database
from app.errors import InvalidRequest
from app.usage.overview.overview import OverviewQuery
from app.usage.overview.reports import OverviewReports
from tests.app.usage.overview.asked import Asked, Installation
from tests.app.usage.samples import Clock
from tests.examples import examples

BASE = 1_763_596_800  # 2025-11-20T00:00:00Z
HOUR, DAY = 3600, 86_400
LATER = BASE + 400 * DAY
BERLIN = ZoneInfo("Europe/Berlin")
EXPLORE = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)

moments = st.integers(-3 * DAY, 3 * DAY).map(lambda late: late - late % HOUR) | st.integers(-3 * DAY, 3 * DAY)
asked = st.builds(
    Asked,
    at=moments.map(lambda late: float(BASE + late)),
    result=st.sampled_from(["answered", "answered", "unsure", "refused", "failed", "cancelled", None]),
    confirmed=st.sampled_from([True, False, None]),
    total_us=st.none() | st.integers(0, 90_000_000),
    user_id=st.sampled_from(["u1", "u2", "u3"]),
    ours=st.sampled_from([True, True, True, False]),
    score=st.sampled_from([None, 1.0, -1.0, 0.0, 0.5]),
    tokens=st.tuples(st.integers(1, 5000), st.integers(0, 90)),
)


def figures_of(result: dict[str, Any]) -> dict[str, Any]:
    left_out = {"object", "cost", "asking_cost", "cost_per_question", "num_unpriced"}
    return {name: value for name, value in result.items() if name not in left_out}


def reports(database: Database, now: float = LATER) -> OverviewReports:
    return OverviewReports(database, zone=BERLIN, clock=Clock(now))


@EXPLORE
@given(
    questions=st.lists(asked, max_size=12),
    first=moments,
    last=moments,
    width=st.sampled_from(["1h", "1d", "1mo"]),
    tz=st.sampled_from([None, "Asia/Kathmandu"]),
)
def test_the_overview_equals_a_recount(
    database: Database, questions: list[Asked], first: int, last: int, width: str, tz: str | None
) -> None:
    start, end = BASE + min(first, last), BASE + max(first, last) + 1
    world = Installation(database, Clock(), sorted(questions, key=lambda one: one.at), zone=BERLIN)

    found: dict[str, Any] = reports(database).overview(
        OverviewQuery(tenant_id=world.tenant, start=start, end=end, bucket_width=width, tz=tz)
    )

    assert figures_of(found["total"]) == world.recount(start, end)
    before = found["before"]
    assert (before["start_time"], before["end_time"]) == (start - (end - start), start)
    assert figures_of(before["result"]) == world.recount(start - (end - start), start)
    for bucket in found["data"]:
        assert figures_of(bucket["result"]) == world.recount(bucket["start_time"], bucket["end_time"])
    edges = [bucket["start_time"] for bucket in found["data"]] + [found["data"][-1]["end_time"]]
    assert (edges[0], edges[-1]) == (start, end)
    assert edges == sorted(set(edges))
    for name in ("num_questions", "num_answered", "num_confirmed", "input_tokens", "output_tokens", "num_thumbs_up"):
        assert sum(bucket["result"][name] for bucket in found["data"]) == found["total"][name]


def test_a_running_question_is_not_counted_and_one_that_was_cut_off_is_unknown(sqlite_database: Database) -> None:
    world = Installation(sqlite_database, Clock(), [Asked(at=BASE, result=None)], zone=BERLIN)
    query = OverviewQuery(tenant_id=world.tenant, start=BASE, end=BASE + DAY)

    soon: dict[str, Any] = reports(sqlite_database, BASE + 60).overview(query)
    late: dict[str, Any] = reports(sqlite_database, BASE + HOUR).overview(query)

    assert soon["total"]["num_questions"] == 0
    assert (late["total"]["num_questions"], late["total"]["num_unknown"]) == (1, 1)
    assert not soon["final"]


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"start": BASE, "end": BASE}, "end_time"),
        ({"start": BASE, "end": BASE + 2000 * DAY}, "bucket_width"),
        ({"start": BASE, "end": BASE + DAY, "bucket_width": "7d"}, "bucket_width"),
        ({"start": BASE, "end": BASE + DAY, "tz": "Mars"}, "tz"),
    ],
)
def test_ranges_that_make_no_overview_are_refused(sqlite_database: Database, asked: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        reports(sqlite_database).overview(OverviewQuery(tenant_id="t1", **asked))

    assert caught.value.param == param
