"""A time range is divided into rollups and rows that cover each moment once."""

from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from app.usage.rollups.buckets import bucket_page
from app.usage.rollups.spans import BucketRange, ranges, spans
from app.usage.rollups.zones import QUARTER, day_start, month_start
from tests.app.usage.reports.lines import DAY, ZONES
from tests.examples import examples

JANUARY = 1_767_225_600  # 2026-01-01T00:00:00Z


@settings(deadline=None, max_examples=examples(100))
@given(
    tz=st.sampled_from(ZONES),
    kept=st.sampled_from(ZONES),
    start=st.integers(0, 2_100_000_000),
    seconds=st.integers(1, 100 * DAY),
    width=st.sampled_from(["15m", "1h", "1d", "1mo"]),
)
def test_spans_cover_each_moment_of_their_bucket_once(tz: str, kept: str, start: int, seconds: int, width: str) -> None:
    """Invariant 12's ground; from 1970 on, also in the one zone whose days were then not on quarter hours."""
    zone = ZoneInfo(kept)
    edges = bucket_page(start=start, end=start + seconds, width=width, zone=ZoneInfo(tz)).edges

    parts = spans(edges, zone)

    every = sorted([*parts.lines, *parts.quarters, *parts.days, *parts.months], key=lambda span: span.start)
    assert [every[0].start, every[-1].end] == [edges[0], edges[-1]]
    assert all(before.end == after.start for before, after in pairwise(every))
    assert all(edges[span.bucket] <= span.start < span.end <= edges[span.bucket + 1] for span in every)
    assert all(span.start % QUARTER == span.end % QUARTER == 0 for span in parts.quarters)
    assert all(day_start(at, zone) == at for span in parts.days for at in span[1:])
    assert all(month_start(at, zone) == at for span in parts.months for at in span[1:])
    assert all(span.end - span.start < 2 * QUARTER for span in parts.lines)


def test_a_range_is_covered_by_the_coarsest_rollups_that_fit() -> None:
    """A year and a bit: lines at the two ends, quarter hours to the next day, days to the next month, months."""
    second, hour, day = 10**6, 3600 * 10**6, DAY * 10**6
    start, end = (JANUARY - 366 * DAY) * second - hour + second, JANUARY * second + day + hour + second

    parts = spans((start, end), ZoneInfo("UTC"))

    midnight = start - second + hour
    assert parts.lines == [BucketRange(0, start, start - second + QUARTER), BucketRange(0, end - second, end)]
    assert parts.quarters == [
        BucketRange(0, start - second + QUARTER, midnight),
        BucketRange(0, end - second - hour, end - second),
    ]
    assert parts.days == [
        BucketRange(0, midnight, midnight + day),
        BucketRange(0, JANUARY * second, JANUARY * second + day),
    ]
    assert parts.months == [BucketRange(0, midnight + day, JANUARY * second)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=12))
def test_ranges_are_the_moments_of_the_spans_and_do_not_touch(drawn: list[tuple[int, int]]) -> None:
    found = ranges([BucketRange(0, start, start + length) for start, length in drawn])

    assert {at for start, end in found for at in range(start, end)} == {
        at for start, length in drawn for at in range(start, start + length)
    }
    assert all(before[1] < after[0] for before, after in pairwise(found))
