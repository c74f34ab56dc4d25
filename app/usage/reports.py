"""Who spent how much: the completions report for administrators, and everyone's own use.

Calls count in the moment they were settled, so a closed bucket never changes. The shape is
OpenAI's usage API, with fields added.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables_ledger import usage_event
from app.errors import InvalidRequest
from app.types import Operation
from app.usage.sums import SUMS, to_result

BucketWidth = Literal["1h", "1d"]
Dimension = Literal["user_id", "api_key_id", "model"]

_SECONDS: dict[str, int] = {"1h": 3600, "1d": 86_400}
_BUCKETS: dict[str, tuple[int, int]] = {"1h": (24, 168), "1d": (7, 31)}  # by default, at most
_COLUMNS = {"user_id": usage_event.c.user_id, "api_key_id": usage_event.c.api_key_id, "model": usage_event.c.model_id}
_DIMENSIONS = ("project_id", "user_id", "api_key_id", "model", "operation", "status")
_LATEST = 253_402_300_800  # the year 10000
_IN_FLIGHT = 60  # seconds within which a settlement that took its time has surely committed or failed
_COMPLETIONS = tuple(operation for operation in Operation if operation.generates)
_EMBEDDINGS = (Operation.EMBED_QUERY, Operation.EMBED_DOC)


class UsageReports:
    """Reads the ledger. Times are Unix seconds, zones UTC."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def completions(
        self,
        *,
        tenant_id: str,
        start: int,
        end: int | None = None,
        bucket_width: str = "1d",
        group_by: Sequence[str] = (),
        user_ids: Sequence[str] | None = None,
        api_key_ids: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        limit: int | None = None,
        page: str | None = None,
    ) -> dict[str, object]:
        """The generator's calls settled in `[start, end)` (`end` None: until now), by bucket and by `group_by`.

        Buckets begin on the UTC hour or day and are cut at the two ends of the range, so a report
        of two ranges that meet is the two reports. `limit` buckets a page (24 of at most 168 hours,
        7 of at most 31 days); `page` is the `next_page` of the page before. `final` says that no
        number here will change.

        Raises:
            InvalidRequest: A range, width, dimension, limit or page that cannot be; `param` names it.
        """
        as_of = int(self._clock())
        width = _SECONDS.get(bucket_width)
        if width is None:
            raise InvalidRequest("bucket_width must be 1h or 1d.", param="bucket_width")
        unknown = [name for name in group_by if name not in _COLUMNS]
        if unknown:
            raise InvalidRequest("group_by takes user_id, api_key_id and model.", param="group_by")
        end = max(as_of, start + 1) if end is None else end
        if not 0 <= start <= _LATEST:
            raise InvalidRequest("start_time must be Unix seconds.", param="start_time")
        if not start < end <= _LATEST:
            raise InvalidRequest("end_time must be after start_time.", param="end_time")
        default, most = _BUCKETS[bucket_width]
        limit = default if limit is None else limit
        if not 1 <= limit <= most:
            raise InvalidRequest(f"limit must be between 1 and {most} for buckets of {bucket_width}.", param="limit")

        first = start if page is None else _page_start(page, start=start, end=end, width=width)
        last = min((first // width + limit) * width, end)  # where this page ends
        groups = [name for name in _COLUMNS if name in group_by]
        chosen = {"user_id": user_ids, "api_key_id": api_key_ids, "model": models}
        conditions = [_COLUMNS[name].in_(values) for name, values in chosen.items() if values is not None]
        results: dict[int, list[dict[str, object]]] = {}
        for row in self._sums(
            groups, usage_event.c.tenant_id == tenant_id, *conditions, start=first, end=last, width=width
        ):
            dimensions = {name: row[name] if name in groups else None for name in _DIMENSIONS}
            result = {"object": "organization.usage.completions.result", **to_result(row), **dimensions}
            results.setdefault(int(row["bucket"]), []).append(result)
        more = last < end
        return {
            "object": "page",
            "data": [
                _bucket(max(number * width, first), min((number + 1) * width, last), results.get(number, []))
                for number in range(first // width, (last - 1) // width + 1)
            ],
            "has_more": more,
            "next_page": f"page_{last}" if more else None,
            "as_of": as_of,
            "final": end + _IN_FLIGHT <= as_of,
            "tz": "UTC",
        }

    def own(self, *, tenant_id: str, user_id: str) -> dict[str, object]:
        """What a user spent today, this month (both UTC) and in all: completions and embeddings."""
        as_of = int(self._clock())
        now = datetime.fromtimestamp(as_of, UTC)
        today = now.replace(hour=0, minute=0, second=0)
        begins = {"today": int(today.timestamp()), "month": int(today.replace(day=1).timestamp()), "all_time": 0}
        mine = usage_event.c.tenant_id == tenant_id, usage_event.c.user_id == user_id
        with self._database.read() as connection:
            periods: dict[str, object] = {}
            for name, start in begins.items():
                settled = usage_event.c.settled_at >= start * 1_000_000
                completions = sa.select(*SUMS).where(*mine, settled, usage_event.c.operation.in_(_COMPLETIONS))
                embeddings = sa.select(
                    sa.func.count().label("calls"), sa.func.sum(usage_event.c.input_tokens).label("tokens")
                ).where(*mine, settled, usage_event.c.operation.in_(_EMBEDDINGS))
                embedded = connection.execute(embeddings).one()
                periods[name] = {
                    "start_time": start,
                    "completions": to_result(connection.execute(completions).mappings().one()),
                    "embeddings": {
                        "num_model_requests": int(embedded.calls),
                        "input_tokens": int(embedded.tokens or 0),
                    },
                }
        return {"object": "usage", "user_id": user_id, **periods, "as_of": as_of, "tz": "UTC"}

    def _sums(
        self, groups: Sequence[str], *conditions: sa.ColumnElement[bool], start: int, end: int, width: int
    ) -> list[sa.RowMapping]:
        """Sums of the generator's calls settled in `[start, end)` by bucket number and group, in that order."""
        # whole-number division on both databases
        bucket = usage_event.c.settled_at // sa.literal_column(str(width * 1_000_000), sa.BigInteger)
        keys = [bucket.label("bucket"), *(_COLUMNS[name].label(name) for name in groups)]
        query = (
            sa.select(*keys, *SUMS)
            .where(
                usage_event.c.operation.in_(_COMPLETIONS),
                usage_event.c.settled_at >= start * 1_000_000,
                usage_event.c.settled_at < end * 1_000_000,
                *conditions,
            )
            .group_by(*(sa.literal_column(str(place)) for place in range(1, len(keys) + 1)))
        )
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        # sorted here: the two databases order text differently
        return sorted(rows, key=lambda row: (row["bucket"], *(row[name] for name in groups)))


def _bucket(start: int, end: int, results: list[dict[str, object]]) -> dict[str, object]:
    local = datetime.fromtimestamp(start, UTC).isoformat()
    return {"object": "bucket", "start_time": start, "end_time": end, "start_local": local, "results": results}


def _page_start(page: str, *, start: int, end: int, width: int) -> int:
    name, _, digits = page.partition("_")
    if name == "page" and digits.isascii() and digits.isdigit() and len(digits) <= 12:
        first = int(digits)
        if start < first < end and first % width == 0:
            return first
    raise InvalidRequest("page is not one this report gave out.", param="page")
