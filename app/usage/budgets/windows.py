"""The windows of a budget: the beginning, the end and the use of each period."""

from dataclasses import dataclass
from typing import Any, Literal
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.usage.rollups.zones import day_start, month_start, next_day, next_month

Period = Literal["minute", "day", "month", "total"]

MINUTE = 60 * 1_000_000
"""A minute, in microseconds."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A period: `start` inclusive, `end` exclusive, Unix microseconds; `end` None is never."""

    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class BudgetWindow:
    """The amounts reserved and settled in one period of a budget. Times are Unix microseconds; `end` None is never.

    `series` counts the resets of the budget: a reset begins a new series of windows at nothing used.
    """

    series: int
    start: int
    end: int | None
    reserved: int
    settled: int


def edges_of(period: str, at: int, zone: ZoneInfo) -> Edges:
    """The period that contains `at` (Unix microseconds); days and months are local to `zone`.

    Minutes are those of UTC, since every offset in use is a whole number of minutes. Days have 23 or 25 hours where
    clocks change, as in `app.usage.rollups.zones`.
    """
    match period:
        case "minute":
            start = at - at % MINUTE
            return Edges(start, start + MINUTE)
        case "day":
            return Edges(day_start(at, zone), next_day(at, zone))
        case "month":
            return Edges(month_start(at, zone), next_month(at, zone))
        case "total":
            return Edges(0, None)
    raise AssertionError(f"{period!r} is not a period")


def to_window(row: sa.Row[Any]) -> BudgetWindow:
    """A window from its row of `budget_window`."""
    return BudgetWindow(row.series, row.window_start, row.window_end, row.reserved, row.settled)
