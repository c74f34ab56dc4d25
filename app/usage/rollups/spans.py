"""Divides a range of time into the fewest rollups: months, days, quarter hours, and single lines at its ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.usage.rollups.zones import QUARTER, day_start, month_start, next_day, next_month


class BucketRange(NamedTuple):
    """A part of bucket number `bucket`: `[start, end)` in Unix microseconds."""

    bucket: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans to read from each table; together they cover every bucket once."""

    lines: list[BucketRange] = field(default_factory=list)
    quarters: list[BucketRange] = field(default_factory=list)
    days: list[BucketRange] = field(default_factory=list)
    months: list[BucketRange] = field(default_factory=list)


def spans(edges: Sequence[int], zone: ZoneInfo) -> Spans:
    """Divide the buckets `[edges[n], edges[n + 1])`; days and months are those of `zone`, whatever the buckets are."""
    found = Spans()
    for bucket, (start, end) in enumerate(pairwise(edges)):
        inner = (start + QUARTER - 1) // QUARTER * QUARTER, end // QUARTER * QUARTER
        for quarters in _inside(found.lines, bucket, start, end, inner):
            days = _whole(quarters, lambda at: day_start(at, zone), lambda at: next_day(at, zone))
            for whole_days in _inside(found.quarters, bucket, *quarters, days):
                months = _whole(whole_days, lambda at: month_start(at, zone), lambda at: next_month(at, zone))
                for whole_months in _inside(found.days, bucket, *whole_days, months):
                    found.months.append(BucketRange(bucket, *whole_months))
    return found


def ranges(its_spans: Sequence[BucketRange]) -> list[tuple[int, int]]:
    """The union of spans as disjoint ranges, in order."""
    found: list[tuple[int, int]] = []
    for _, start, end in sorted(its_spans, key=lambda span: span.start):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _inside(
    outer: list[BucketRange], bucket: int, start: int, end: int, inner: tuple[int, int]
) -> list[tuple[int, int]]:
    """`[inner]` unless it is empty; the rest of `[start, end)` is added to `outer`."""
    first, last = inner
    if first >= last:
        outer.append(BucketRange(bucket, start, end))
        return []
    outer.extend(BucketRange(bucket, *part) for part in ((start, first), (last, end)) if part[0] < part[1])
    return [inner]


def _whole(span: tuple[int, int], begin: Callable[[int], int], following: Callable[[int], int]) -> tuple[int, int]:
    """The part of `span` between its first and last calendar edge; empty if these are not on quarter hours."""
    start, end = span
    first = start if begin(start) == start else following(start)
    last = begin(end)
    return (first, last) if first % QUARTER == 0 and last % QUARTER == 0 else (start, start)
