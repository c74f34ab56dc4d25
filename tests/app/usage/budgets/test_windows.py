"""app.usage.budgets.windows: periods follow each other without a gap, in every zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.usage.budgets.windows import Edges, edges_of
from app.usage.rollups.zones import day_start

ZONES = sorted(available_timezones() - {"localtime"})
SECOND = 1_000_000
HOUR = 3600 * SECOND
moments = st.integers(0, 4_102_444_800).map(lambda seconds: seconds * SECOND)  # 1970 to 2100
zones = st.sampled_from(ZONES).map(ZoneInfo)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * SECOND


@given(moment=moments, zone=zones, period=st.sampled_from(["minute", "day", "month"]), after=st.integers(0, SECOND - 1))
def test_every_moment_lies_in_one_period_and_the_next_begins_where_it_ends(
    moment: int, zone: ZoneInfo, period: str, after: int
) -> None:
    edges = edges_of(period, moment + after, zone)

    assert edges.end is not None
    assert edges.start <= moment + after < edges.end
    assert edges_of(period, edges.start, zone) == edges
    assert edges_of(period, edges.end - 1, zone) == edges
    assert edges_of(period, edges.end, zone).start == edges.end


@given(moment=moments, zone=zones)
def test_a_day_is_the_day_of_the_reports(moment: int, zone: ZoneInfo) -> None:
    assert edges_of("day", moment, zone).start == day_start(moment, zone)


@given(moment=moments, zone=zones)
def test_a_month_is_made_of_whole_days(moment: int, zone: ZoneInfo) -> None:
    month = edges_of("month", moment, zone)

    assert month.end is not None
    assert edges_of("day", month.start, zone).start == month.start
    assert edges_of("day", month.end - 1, zone).end == month.end


@pytest.mark.parametrize(
    ("zone", "noon", "hours"),
    [
        ("Europe/Berlin", "2026-03-29T12:00:00+02:00", 23),
        ("Europe/Berlin", "2026-10-25T12:00:00+01:00", 25),
        ("America/Sao_Paulo", "2018-11-04T12:00:00-02:00", 23),  # clocks skip midnight
        ("Australia/Lord_Howe", "2026-04-05T12:00:00+10:30", 24.5),
        ("Asia/Kathmandu", "2026-01-01T12:00:00+05:45", 24),
        ("Pacific/Apia", "2011-12-31T12:00:00+14:00", 24),  # the day after the one the calendar skipped
    ],
)
def test_a_day_has_the_hours_its_clocks_give_it(zone: str, noon: str, hours: float) -> None:
    edges = edges_of("day", at(noon), ZoneInfo(zone))

    assert edges.end is not None
    assert edges.end - edges.start == hours * HOUR


def test_a_leap_month_and_the_end_of_a_year() -> None:
    utc = ZoneInfo("UTC")

    assert edges_of("month", at("2028-02-29T23:59:59+00:00"), utc) == Edges(
        at("2028-02-01T00:00:00+00:00"), at("2028-03-01T00:00:00+00:00")
    )
    assert edges_of("month", at("2026-12-31T23:59:59+00:00"), utc).end == at("2027-01-01T00:00:00+00:00")


def test_a_total_never_ends() -> None:
    assert edges_of("total", at("2026-12-31T23:59:59+00:00"), ZoneInfo("Asia/Tokyo")) == Edges(0, None)
