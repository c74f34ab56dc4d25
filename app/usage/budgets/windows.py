"""When the periods of a budget begin and end: minutes, days and months that follow each other without a gap."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from app.usage.rollups.zones import start_of

Period = Literal["minute", "day", "month", "total"]

MINUTE = 60 * 1_000_000
"""A minute, in microseconds."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A period: `start` inclusive, `end` exclusive, Unix microseconds; `end` None is never."""

    start: int
    end: int | None


def edges_of(period: str, at: int, zone: ZoneInfo) -> Edges:
    """The period that `at` (Unix microseconds) lies in; days and months are those of `zone`.

    A minute is one of UTC: every offset in use is a whole number of them. A day begins at its first moment, as in
    `app.usage.rollups.zones`: it has 23 or 25 hours where clocks change, and a day the calendar skipped has none.
    """
    match period:
        case "minute":
            start = at - at % MINUTE
            return Edges(start, start + MINUTE)
        case "day":
            return _span(_local_date(at, zone), _next_day, _day_before, at=at, zone=zone)
        case "month":
            return _span(_local_date(at, zone).replace(day=1), _next_month, _month_before, at=at, zone=zone)
        case "total":
            return Edges(0, None)
    raise AssertionError(f"{period!r} is not a period")


def _span(
    first: date, following: Callable[[date], date], before: Callable[[date], date], *, at: int, zone: ZoneInfo
) -> Edges:
    """From `first`, a guess, to the span that holds `at`: where clocks go back over midnight, the date misleads."""
    while start_of(following(first), zone) <= at:
        first = following(first)
    while start_of(first, zone) > at:
        first = before(first)
    return Edges(start_of(first, zone), start_of(following(first), zone))


def _local_date(at: int, zone: ZoneInfo) -> date:
    return datetime.fromtimestamp(at // 1_000_000, UTC).astimezone(zone).date()


def _next_day(day: date) -> date:
    return day + timedelta(days=1)


def _day_before(day: date) -> date:
    return day - timedelta(days=1)


def _next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)


def _month_before(first: date) -> date:
    return (first - timedelta(days=1)).replace(day=1)
