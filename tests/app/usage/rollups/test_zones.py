"""Local days and months follow each other without a gap, in every zone."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.usage.rollups.zones import day_start, month_start, next_day, next_month, start_of, zone_named
from tests.app.usage.reports.lines import DAY, ZONES, transitions
from tests.examples import examples

MICROSECONDS = st.integers(946_684_800 * 10**6, 2_200_000_000 * 10**6)


@settings(deadline=None, max_examples=examples(200))
@given(
    name=st.sampled_from(ZONES), at=MICROSECONDS, beside=st.integers(-2 * DAY, 2 * DAY), year=st.integers(2000, 2037)
)
def test_every_moment_is_in_one_day_and_one_month(name: str, at: int, beside: int, year: int) -> None:
    zone = ZoneInfo(name)
    moments = [at, *((change + beside) * 10**6 for change in transitions(zone, year))]

    for moment in moments:
        for begin, following in ((day_start, next_day), (month_start, next_month)):
            start, end = begin(moment, zone), following(moment, zone)
            assert start <= moment < end
            assert begin(start, zone) == begin(end - 1, zone) == start
            assert following(start, zone) == following(end - 1, zone) == end
            assert begin(end, zone) == end
        assert datetime.fromtimestamp(month_start(moment, zone) // 10**6, zone).day == 1


@pytest.mark.parametrize(
    ("name", "day", "hours"),
    [
        ("Europe/Berlin", date(2025, 3, 30), 23),
        ("Europe/Berlin", date(2025, 10, 26), 25),
        ("Australia/Lord_Howe", date(2025, 4, 6), 24.5),
        ("America/Sao_Paulo", date(2017, 10, 15), 23),  # midnight itself is skipped
        ("Asia/Kathmandu", date(2024, 2, 29), 24),
        ("Pacific/Apia", date(2011, 12, 30), 0),  # left out of the calendar
        ("America/St_Johns", date(2010, 11, 7), 25),  # clocks went back at a minute past midnight
    ],
)
def test_days_have_the_hours_their_clocks_say(name: str, day: date, hours: float) -> None:
    zone = ZoneInfo(name)

    length = start_of(day + timedelta(days=1), zone) - start_of(day, zone)

    assert length == hours * 3600 * 10**6


def test_a_day_whose_midnight_is_jumped_over_begins_at_the_jump() -> None:
    """Dublin 1916 apart, clocks that jump from 23:30 to 00:30 are rare: Toronto did in 1919."""
    zone = ZoneInfo("America/Toronto")

    start = start_of(date(1919, 3, 31), zone) // 10**6

    assert datetime.fromtimestamp(start, zone).isoformat() == "1919-03-31T00:30:00-04:00"
    assert datetime.fromtimestamp(start - 1, zone).isoformat() == "1919-03-30T23:29:59-05:00"


@pytest.mark.parametrize("name", ["", "UTC+1", "europe/berlin", "Europe", "../UTC", "/etc/localtime", "UTC\0"])
def test_only_zones_of_the_iana_database_have_a_name(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        zone_named(name)
    assert caught.value.param == "tz"


def test_a_zone_is_found_by_its_name() -> None:
    assert zone_named("Asia/Kathmandu") == ZoneInfo("Asia/Kathmandu")
