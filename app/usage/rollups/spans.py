"""A range of time as the fewest kept sums that make it up: months, days, quarter hours, and lines at its ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.usage.rollups.zones import QUARTER, day_start, month_start, next_day, next_month


class Span(NamedTuple):
    """`[start, end)` in Unix microseconds, part of the bucket of that number."""

    bucket: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans by what is to be read for them; together they are the buckets, each moment once."""

    lines: list[Span] = field(default_factory=list)
    quarters: list[Span] = field(default_factory=list)
    days: list[Span] = field(default_factory=list)
    months: list[Span] = field(default_factory=list)


def spans(edges: Sequence[int], zone: ZoneInfo) -> Spans:
    """Divide buckets `[edges[n], edges[n + 1])`; days and months are `zone`'s, whichever zone the buckets are of."""
    found = Spans()
    for bucket, (start, end) in enumerate(pairwise(edges)):
        inner = (start + QUARTER - 1) // QUARTER * QUARTER, end // QUARTER * QUARTER
        for quarters in _inside(found.lines, bucket, start, end, inner):
            days = _whole(quarters, lambda at: day_start(at, zone), lambda at: next_day(at, zone))
            for whole_days in _inside(found.quarters, bucket, *quarters, days):
                months = _whole(whole_days, lambda at: month_start(at, zone), lambda at: next_month(at, zone))
                for whole_months in _inside(found.days, bucket, *whole_days, months):
                    found.months.append(Span(bucket, *whole_months))
    return found


def ranges(its_spans: Sequence[Span]) -> list[tuple[int, int]]:
    """The stretches of time that spans make up, in order; those that touch are one."""
    found: list[tuple[int, int]] = []
    for _, start, end in sorted(its_spans, key=lambda span: span.start):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _inside(outer: list[Span], bucket: int, start: int, end: int, inner: tuple[int, int]) -> list[tuple[int, int]]:
    """`inner`, if it is anything; what it leaves of `[start, end)` is added to `outer`."""
    first, last = inner
    if first >= last:
        outer.append(Span(bucket, start, end))
        return []
    outer.extend(Span(bucket, *part) for part in ((start, first), (last, end)) if part[0] < part[1])
    return [inner]


def _whole(span: tuple[int, int], begin: Callable[[int], int], following: Callable[[int], int]) -> tuple[int, int]:
    """From the first to the last edge of a calendar inside `span`; empty where they are not on quarter hours."""
    start, end = span
    first = start if begin(start) == start else following(start)
    last = begin(end)
    return (first, last) if first % QUARTER == 0 and last % QUARTER == 0 else (start, start)
