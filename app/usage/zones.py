"""Days of a time zone as intervals of Unix microseconds: one begins where the one before ends, also across DST."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

QUARTER = 900 * 1_000_000
"""A quarter of an hour, in microseconds."""


def day_start(at: int, zone: ZoneInfo) -> int:
    """When the local day began that `at` lies in, both Unix microseconds.

    Where clocks go back over midnight, the first midnight counts; where they skip it, the moment they do.
    """
    day = datetime.fromtimestamp(at // 1_000_000, UTC).astimezone(zone).date()
    while (following := start_of(day + timedelta(days=1), zone)) <= at:
        day += timedelta(days=1)
    assert following > at
    start = start_of(day, zone)
    while start > at:
        day -= timedelta(days=1)
        start = start_of(day, zone)
    return start


def start_of(day: date, zone: ZoneInfo) -> int:
    """The first moment of a local day, in Unix microseconds."""
    return round(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()) * 1_000_000
