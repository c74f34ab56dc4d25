"""Local days and months of a time zone in Unix microseconds, without gaps, also where clocks change."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from app.errors import InvalidRequest

QUARTER = 900 * 1_000_000
"""A quarter of an hour, in microseconds."""


def zone_named(name: str) -> ZoneInfo:
    """The zone with a name of the IANA database.

    Raises:
        InvalidRequest: There is no such zone; `param` is `tz`.
    """
    if name not in _known():
        raise InvalidRequest("tz must be a time zone of the IANA database, such as Europe/Berlin.", param="tz")
    return ZoneInfo(name)


def day_start(at: int, zone: ZoneInfo) -> int:
    """When the local day of `at` began, both Unix microseconds.

    If clocks go back over midnight, the first midnight counts; if they skip midnight, the time of the change does.
    """
    return start_of(_day_of(at, zone), zone)


def next_day(at: int, zone: ZoneInfo) -> int:
    """When the local day after that of `at` begins. A day that the calendar skips is left out."""
    day = _day_of(at, zone)
    while (following := start_of(day := day + timedelta(days=1), zone)) <= at:
        pass
    return following


def month_start(at: int, zone: ZoneInfo) -> int:
    """When the local month of `at` began."""
    return start_of(_day_of(at, zone).replace(day=1), zone)


def next_month(at: int, zone: ZoneInfo) -> int:
    """When the local month after that of `at` begins."""
    first = _day_of(at, zone).replace(day=1)
    return start_of((first + timedelta(days=31)).replace(day=1), zone)


@lru_cache(maxsize=4096)
def start_of(day: date, zone: ZoneInfo) -> int:
    """The first moment of a local day, in Unix microseconds."""
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - local time
    first, second = (round(midnight.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    if second < first:  # no local clock shows midnight: the two use the offsets before and after the change (PEP 495)
        return _change(second, first, zone) * 1_000_000
    return first * 1_000_000


def _change(before: int, after: int, zone: ZoneInfo) -> int:
    """The second in `(before, after]` at which clocks go forward."""
    old = datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def _day_of(at: int, zone: ZoneInfo) -> date:
    """The local date of `at`; where clocks go back over midnight, that of the day which has begun."""
    day = datetime.fromtimestamp(at // 1_000_000, UTC).astimezone(zone).date()
    while start_of(day + timedelta(days=1), zone) <= at:
        day += timedelta(days=1)
    while start_of(day, zone) > at:
        day -= timedelta(days=1)
    return day


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    return frozenset(available_timezones())  # reads a thousand file names
