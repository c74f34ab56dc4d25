"""Report buckets begin at local time, and pages of buckets continue without a gap."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.usage.rollups.buckets import bucket_page, following


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def lengths(start: str, end: str, width: str, tz: str) -> list[float]:
    """Hours of each bucket."""
    page = bucket_page(start=seconds(start), end=seconds(end), width=width, zone=ZoneInfo(tz))
    return [(after - before) / 3.6e9 for before, after in pairwise(page.edges)]


@pytest.mark.parametrize(
    ("start", "end", "width", "tz", "hours"),
    [
        ("2025-10-25T22:00", "2025-10-27T23:00", "1d", "Europe/Berlin", [25, 24]),
        ("2025-03-28T23:00", "2025-03-31T22:00", "1d", "Europe/Berlin", [24, 23, 24]),
        ("2025-10-25T23:30", "2025-10-26T02:10", "1h", "Europe/Berlin", [0.5, 1, 1, 10 / 60]),
        ("2025-04-05T14:00", "2025-04-05T16:30", "1h", "Australia/Lord_Howe", [1.5, 1]),
        ("2025-10-04T14:30", "2025-10-04T17:00", "1h", "Australia/Lord_Howe", [1, 0.5, 1]),
        ("2025-01-01T00:15", "2025-01-01T02:15", "1h", "Asia/Kathmandu", [1, 1]),
        ("2025-01-01T00:05", "2025-01-01T00:40", "15m", "Asia/Kathmandu", [10 / 60, 0.25, 10 / 60]),
        ("2024-01-31T00:00", "2024-04-01T00:00", "1mo", "UTC", [24, 29 * 24, 31 * 24]),
        ("2011-12-28T10:00", "2012-01-01T10:00", "1d", "Pacific/Apia", [24, 24, 24, 24]),
    ],
)
def test_buckets_are_local_and_cut_at_both_ends(start: str, end: str, width: str, tz: str, hours: list[float]) -> None:
    assert lengths(start, end, width, tz) == pytest.approx(hours)


def test_a_page_goes_on_where_the_one_before_ended() -> None:
    asked: dict[str, Any] = {"start": 100, "end": 10 * 86_400, "width": "1d", "zone": ZoneInfo("UTC"), "limit": 4}

    first = bucket_page(**asked)
    second = bucket_page(**asked, page=f"page_{first.edges[-1] // 10**6}")

    assert [first.edges[0], first.edges[-1], first.more] == [100 * 10**6, 4 * 86_400 * 10**6, True]
    assert [second.edges[0], second.edges[-1]] == [4 * 86_400 * 10**6, 8 * 86_400 * 10**6]
    assert first.first(1) == bucket_page(**{**asked, "limit": 1})
    assert first.first(4) is first


def test_the_last_page_ends_with_the_range() -> None:
    page = bucket_page(start=0, end=86_401, width="1d", zone=ZoneInfo("UTC"))

    assert (page.edges, page.more) == ((0, 86_400 * 10**6, 86_401 * 10**6), False)


def test_the_bucket_after_an_edge_is_the_next_one() -> None:
    assert following(following(0, "1mo", ZoneInfo("UTC")), "1mo", ZoneInfo("UTC")) == 59 * 86_400 * 10**6
