"""app.usage.budgets.windows: consecutive windows leave no gap, in every time zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.usage.budgets.windows import Edges, edges_of
from tests.examples import examples

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


def first_moment(day: date, zone: ZoneInfo) -> int:
    """The first second at which a clock in `zone` shows `day` or a later date, found by looking at the clock."""

    def reached(second: int) -> bool:
        return datetime.fromtimestamp(second, UTC).astimezone(zone).date() >= day

    midnight = round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    minute = next(second for second in range(midnight - 27 * 3600, midnight + 27 * 3600, 60) if reached(second))
    return next(second for second in range(minute - 59, minute + 1) if reached(second))


def span_of(moment: int, zone: ZoneInfo, *, months: bool) -> Edges:
    """The local day or month of a moment, from the clock alone."""
    shown = datetime.fromtimestamp(moment // SECOND, UTC).astimezone(zone).date()
    dates = [shown + timedelta(days=offset) for offset in range(-2, 4)]
    if months:
        dates = [(shown.replace(day=1) + timedelta(days=offset)).replace(day=1) for offset in (-1, 0, 32, 63)]
    begins = sorted({first_moment(day, zone) for day in dates})
    start = max(second for second in begins if second * SECOND <= moment)
    return Edges(start * SECOND, begins[begins.index(start) + 1] * SECOND)


@settings(deadline=None, max_examples=examples(60))
@example(moment=at("2011-12-29T23:30:00-10:00"), zone=ZoneInfo("Pacific/Apia"))  # before the skipped day
@example(moment=at("2010-11-07T00:30:00-03:30"), zone=ZoneInfo("America/St_Johns"))  # shows yesterday's date again
@example(moment=at("2018-11-04T01:00:00-02:00"), zone=ZoneInfo("America/Sao_Paulo"))  # midnight is skipped
@example(moment=at("1972-01-06T23:59:59+00:00"), zone=ZoneInfo("Africa/Monrovia"))  # an offset with seconds
@given(moment=moments, zone=zones)
def test_days_and_months_are_those_the_clock_shows(moment: int, zone: ZoneInfo) -> None:
    assert edges_of("day", moment, zone) == span_of(moment, zone, months=False)
    assert edges_of("month", moment, zone) == span_of(moment, zone, months=True)


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


def test_the_window_of_a_total_budget_has_no_end() -> None:
    assert edges_of("total", at("2026-12-31T23:59:59+00:00"), ZoneInfo("Asia/Tokyo")) == Edges(0, None)
