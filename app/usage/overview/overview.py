"""The overview over time: its figures by bucket, in all, and for the period of the same length before."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.answer_citations import AnswerResult
from app.errors import InvalidRequest
from app.usage.overview.figures import Figures, figures
from app.usage.rollups.buckets import LATEST, bucket_page
from app.usage.rollups.questions import RUNNING_SECONDS
from app.usage.rollups.sums import decimal, totals
from app.usage.rollups.zones import month_start, next_month

MOST_BUCKETS = {"15m": (672, 672), "1h": (168, 168), "1d": (400, 400), "1mo": (120, 120)}
"""By width, the most buckets of an overview, which has no pages; twice, as `bucket_page` takes them."""

_WEEK = 7 * 86_400
_MICRO = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewQuery:
    """A request for the overview of `[start, end)`, Unix seconds; `end` None is now, `tz` None the reporting zone."""

    tenant_id: str
    start: int
    end: int | None = None
    bucket_width: str = "1d"
    tz: str | None = None


def overview(
    connection: sa.Connection, query: OverviewQuery, *, zone: ZoneInfo, kept: ZoneInfo, as_of: int, currency: str
) -> dict[str, object]:
    """The overview as a body of the API. `zone` has the buckets, `kept` is the reporting zone of the rollups.

    Call it inside one read transaction.

    Raises:
        InvalidRequest: The range or width is not valid, or gives too many buckets; `param` names it.
    """
    end = end_of(query, as_of)
    page = bucket_page(start=query.start, end=end, width=query.bucket_width, zone=zone, limits=MOST_BUCKETS)
    if page.more:
        most = MOST_BUCKETS[query.bucket_width][0]
        raise InvalidRequest(f"The range has more than {most} buckets; use wider ones.", param="bucket_width")
    edges = page.edges
    before = max(0, 2 * query.start - end)
    context = {"tenant_id": query.tenant_id, "zone": kept, "as_of": as_of}
    buckets = figures(connection, edges, **context)  # type: ignore[arg-type]
    compared = [before * _MICRO, query.start * _MICRO, end * _MICRO] if before < query.start else [0, end * _MICRO]
    *earlier, total = figures(connection, compared, **context)  # type: ignore[arg-type]
    return {
        "object": "overview",
        "start_time": query.start,
        "end_time": end,
        "bucket_width": query.bucket_width,
        "data": [
            {
                "object": "bucket",
                "start_time": edges[bucket] // _MICRO,
                "end_time": edges[bucket + 1] // _MICRO,
                "start_local": datetime.fromtimestamp(edges[bucket] // _MICRO, zone).isoformat(),
                "result": result(some, currency),
            }
            for bucket, some in enumerate(buckets)
        ],
        "total": result(total, currency),
        "before": {
            "start_time": before,
            "end_time": query.start,
            "result": result(earlier[0], currency) if earlier else None,
        },
        "month": _month(connection, query.tenant_id, zone=zone, kept=kept, as_of=as_of, currency=currency),
        "as_of": as_of,
        "final": end + RUNNING_SECONDS <= as_of,
        "tz": zone.key,
    }


def end_of(query: OverviewQuery, as_of: int) -> int:
    """The end of a query's range; the current second is included.

    Raises:
        InvalidRequest: The range is not valid.
    """
    end = max(as_of, query.start) + 1 if query.end is None else query.end
    if not 0 <= query.start <= LATEST:
        raise InvalidRequest("start_time must be Unix seconds.", param="start_time")
    if not query.start < end <= LATEST:
        raise InvalidRequest("end_time must be after start_time.", param="end_time")
    return end


def result(some: Figures, currency: str) -> dict[str, object]:
    """Figures under the names of the API."""
    counts = {f"num_{kind.value}": some.results[kind] for kind in AnswerResult}
    return {
        "object": "overview.result",
        "num_questions": some.questions,
        **counts,
        "num_unknown": some.unknown,
        "num_confirmable": some.confirmable,
        "num_confirmed": some.confirmed,
        "confirmed_share": round(some.confirmed / some.confirmable, 4) if some.confirmable else None,
        "num_thumbs_up": some.good,
        "num_thumbs_down": some.bad,
        "median_seconds": _seconds(some.median_us),
        "p95_seconds": _seconds(some.p95_us),
        "num_active_users": some.people,
        "num_model_requests": some.totals.calls,
        "input_tokens": some.totals.measures.input_tokens,
        "output_tokens": some.totals.measures.output_tokens,
        "num_unpriced": some.totals.unpriced,
        "cost": _money(some.totals.cost_pico if some.totals.priced else None, currency),
        "asking_cost": _money(some.asking.cost_pico if some.asking.priced else None, currency),
        "cost_per_question": _money(
            some.asking.cost_pico // some.questions if some.asking.priced and some.questions else None, currency
        ),
    }


def _money(pico: int | None, currency: str) -> dict[str, object]:
    return {"value": None if pico is None else decimal(pico), "currency": currency}


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else round(microseconds / _MICRO, 3)


def _month(
    connection: sa.Connection, tenant_id: str, *, zone: ZoneInfo, kept: ZoneInfo, as_of: int, currency: str
) -> dict[str, object]:
    """The cost of the running month so far, and with the rest of it at the rate of the last seven days."""
    now = (as_of + 1) * _MICRO
    start, end = month_start(as_of * _MICRO, zone), next_month(as_of * _MICRO, zone)
    spent = totals(connection, [start, max(now, start + 1)], tenant_id=tenant_id, zone=kept).get((0,))
    week = totals(connection, [now - _WEEK * _MICRO, now], tenant_id=tenant_id, zone=kept).get((0,))
    known = [some for some in (spent, week) if some is not None and some.priced]
    so_far = spent.cost_pico if spent is not None else 0
    rate = week.cost_pico if week is not None else 0
    expected = so_far + max(0, rate) * max(0, end - now) // (_WEEK * _MICRO)
    return {
        "start_time": start // _MICRO,
        "end_time": end // _MICRO,
        "cost": _money(so_far if known else None, currency),
        "expected_cost": _money(expected if known else None, currency),
    }
