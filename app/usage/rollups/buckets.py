"""The buckets of a report: their edges on the local clock, and the pages they are divided into."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal
from zoneinfo import ZoneInfo

from app.errors import InvalidRequest
from app.usage.rollups.zones import QUARTER, next_day, next_month

BucketWidth = Literal["15m", "1h", "1d", "1mo"]

LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"15m": (96, 672), "1h": (24, 168), "1d": (7, 31), "1mo": (12, 36)}
)
"""By width, the default and the maximum number of buckets on a page."""

LATEST = 253_370_764_800
"""The year 9999 in Unix seconds, the latest end of a range: its local time can be written in every zone."""


@dataclass(frozen=True, slots=True)
class BucketPage:
    """One page of buckets: bucket n is `[edges[n], edges[n + 1])`, Unix microseconds. `more`: another page follows."""

    edges: tuple[int, ...]
    more: bool

    def first(self, buckets: int) -> "BucketPage":
        """The page with at most its first `buckets`."""
        return self if buckets >= len(self.edges) - 1 else BucketPage(self.edges[: buckets + 1], more=True)


def bucket_page(
    *,
    start: int,
    end: int,
    width: str,
    zone: ZoneInfo,
    limit: int | None = None,
    page: str | None = None,
    limits: Mapping[str, tuple[int, int]] = LIMITS,
) -> BucketPage:
    """The buckets of `[start, end)`, Unix seconds, cut at both ends: at most `limit` of them from `page` on.

    Raises:
        InvalidRequest: The range, width, limit or page is not valid; `param` names it.
    """
    if width not in limits:
        raise InvalidRequest(f"bucket_width must be one of {', '.join(limits)}.", param="bucket_width")
    if not 0 <= start <= LATEST:
        raise InvalidRequest("start_time must be Unix seconds.", param="start_time")
    if not start < end <= LATEST:
        raise InvalidRequest("end_time must be after start_time.", param="end_time")
    default, most = limits[width]
    limit = default if limit is None else limit
    if not 1 <= limit <= most:
        raise InvalidRequest(f"limit must be between 1 and {most} for buckets of {width}.", param="limit")
    last = end * 1_000_000
    edges = [start * 1_000_000 if page is None else _page_start(page, start=start, end=end, width=width, zone=zone)]
    while edges[-1] < last and len(edges) <= limit:
        edges.append(min(following(edges[-1], width, zone), last))
    return BucketPage(tuple(edges), more=edges[-1] < last)


def following(at: int, width: str, zone: ZoneInfo) -> int:
    """When the bucket after that of `at` begins, both Unix microseconds.

    An hour begins when the local clock shows a new hour. Where clocks change by half an hour (Lord Howe) an hour has 30
    or 90 minutes, as days at other changes have 23 or 25 hours.
    """
    match width:
        case "1mo":
            return next_month(at, zone)
        case "1d":
            return next_day(at, zone)
        case "1h":
            at -= at % QUARTER
            hour = datetime.fromtimestamp(at // 1_000_000, zone).hour
            while True:
                at += QUARTER
                local = datetime.fromtimestamp(at // 1_000_000, zone)
                if local.hour != hour or local.minute < 15:
                    return at
        case _:
            return at + QUARTER - at % QUARTER


def page_token(edge: int) -> str:
    """The token of the page that begins at an edge."""
    return f"page_{edge // 1_000_000}"


def _page_start(page: str, *, start: int, end: int, width: str, zone: ZoneInfo) -> int:
    name, _, digits = page.partition("_")
    if name == "page" and digits.isascii() and digits.isdigit() and len(digits) <= 12:
        first = int(digits)
        if start < first < end and following(first * 1_000_000 - 1, width, zone) == first * 1_000_000:
            return first * 1_000_000
    raise InvalidRequest("page must be the next_page of this report.", param="page")
