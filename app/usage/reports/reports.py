"""Usage and cost reports for administrators, in the format of OpenAI's usage API with added fields.

Calls count at the time they were settled and adjustments at the time they were made, so past buckets never change.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.usage_columns import DIMENSIONS
from app.errors import InvalidRequest
from app.types import Operation
from app.usage.reports.costs_report import COST_DIMENSIONS, cost_results
from app.usage.reports.documents_report import DocumentsQuery, document_results
from app.usage.reports.own_usage import month_by_key, own_usage
from app.usage.reports.requests_report import RequestFilter, listed_requests, read_request
from app.usage.rollups.buckets import LIMITS, BucketPage, bucket_page, page_token
from app.usage.rollups.questions import RUNNING_SECONDS, question_counts
from app.usage.rollups.sums import NOTHING, Only, Totals, decimal, in_order, totals
from app.usage.rollups.zones import zone_named

COMPLETIONS = tuple(operation for operation in Operation if operation.generates)
EMBEDDINGS = (Operation.EMBED_QUERY, Operation.EMBED_DOC)
RERANK = (Operation.RERANK,)
JUDGE = (Operation.JUDGE,)

_IN_FLIGHT = 60  # seconds after which a slow settlement has surely committed or failed
_COST_LIMITS = {**LIMITS, "1d": (7, 180)}  # as OpenAI's
_MOST_RESULTS = 10_000  # a page ends with the bucket that exceeds it

_OWN_PARTS = {"embeddings": EMBEDDINGS, "rerank": RERANK, "judge": JUDGE}  # beside completions

_TENANT = "tenant_id"
_UNGROUPED = dict.fromkeys(DIMENSIONS)

_Result = dict[str, object]
_Find = Callable[[sa.Connection, BucketPage], Mapping[int, list[_Result]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    """A request for one page of a report over `[start, end)`, Unix seconds; `end` None is now.

    `tz` None is the reporting zone. `group_by` and the filters (None: no filter) use the names of the API; `statuses`
    may contain `adjustment`. `limit` is the buckets on a page, `page` the `next_page` of the previous page.
    """

    tenant_id: str
    start: int
    end: int | None = None
    bucket_width: str = "1d"
    tz: str | None = None
    group_by: Sequence[str] = ()
    project_ids: Sequence[str] | None = None
    user_ids: Sequence[str] | None = None
    api_key_ids: Sequence[str] | None = None
    models: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    limit: int | None = None
    page: str | None = None

    def only(self, operations: Sequence[str] | None = None) -> Only:
        """The filters by dimension, with those operations alone (None: all)."""
        chosen = {
            "project_id": self.project_ids,
            "user_id": self.user_ids,
            "api_key_id": self.api_key_ids,
            "model": self.models,
            "status": self.statuses,
            "operation": operations,
        }
        return {name: values for name, values in chosen.items() if values is not None}


@dataclass(frozen=True, slots=True)
class KeyMonth:
    """The usage by key id since the month began at `since`, Unix seconds; keys without usage are not in it."""

    since: int
    totals: Mapping[str, Totals]
    currency: str

    def of(self, key_id: str) -> Totals:
        """The usage of a key."""
        return self.totals.get(key_id, NOTHING)

    def cost(self, key_id: str) -> str | None:
        """The cost of a key's usage as a decimal; None where no model had a price."""
        found = self.of(key_id)
        return decimal(found.cost_pico) if found.priced else None


class UsageReports:
    """Makes reports of one installation from its rollups and ledger.

    Example:
        >>> reports = UsageReports(database, zone=ZoneInfo("Europe/Berlin"))
        >>> reports.completions(ReportQuery(tenant_id="t1", start=start, group_by=("model",)))["data"]
    """

    def __init__(
        self,
        database: Database,
        *,
        zone: ZoneInfo | None = None,
        currency: str = "usd",
        clock: Callable[[], float] = time.time,
        most_results: int = _MOST_RESULTS,
    ) -> None:
        """`zone` is the reporting zone (None: UTC); `clock` gives Unix seconds."""
        self._database = database
        self._zone = zone or ZoneInfo("UTC")
        self._currency = currency
        self._clock = clock
        self._most_results = most_results

    def calls(self, query: ReportQuery) -> dict[str, object]:
        """Every model call by bucket and group, and the number of answers.

        An answer calls several models, so answers are counted only in reports that are grouped and filtered by nothing
        but project, user and key; in others `num_answers` is None. A group that only had replies without a model has
        answers and no calls.

        Buckets begin with the hours, days and months of the given zone and are cut at both ends of the range, so the
        reports of two adjacent ranges add up to the report of both. A page ends after `limit` buckets, or earlier if
        they hold very many groups. `final` means that no number of the page will change.

        Raises:
            InvalidRequest: The range, zone, width, dimension, limit or page is not valid; `param` names it.
        """
        groups = self._groups(query.group_by, DIMENSIONS)

        def find(connection: sa.Connection, page: BucketPage) -> Mapping[int, list[_Result]]:
            tenant_id, only = query.tenant_id, query.only()
            sums = totals(connection, page.edges, tenant_id=tenant_id, zone=self._zone, groups=groups, only=only)
            counts = question_counts(
                connection, page.edges, tenant_id=tenant_id, groups=groups, only=only, as_of=int(self._clock())
            )
            found: dict[int, list[_Result]] = {}
            for key in in_order({**sums, **(counts or {})}):
                dimensions = dict(zip(groups, key[1:], strict=True))
                answers = None if counts is None else counts.get(key, 0)
                found.setdefault(int(key[0]), []).append(self._every(sums.get(key, NOTHING), answers, dimensions))
            return found

        return self._page(query, find, limits=LIMITS, settled_after=RUNNING_SECONDS)

    def completions(self, query: ReportQuery) -> dict[str, object]:
        """The calls of the generator, as in `calls`."""
        return self._usage(query, "completions", COMPLETIONS, self._completion)

    def embeddings(self, query: ReportQuery) -> dict[str, object]:
        """The calls of the embedder for queries and documents, as in `calls`."""
        return self._usage(query, "embeddings", EMBEDDINGS, self._counted)

    def rerank(self, query: ReportQuery) -> dict[str, object]:
        """The calls of the reranker, as in `calls`."""
        return self._usage(query, "rerank", RERANK, self._counted)

    def judge(self, query: ReportQuery) -> dict[str, object]:
        """The calls of the models that read passages to find or check an answer, as in `calls`."""
        return self._usage(query, "judge", JUDGE, self._counted)

    def costs(self, query: ReportQuery) -> dict[str, object]:
        """The cost of calls and adjustments, as in `calls`; `group_by` also takes `line_item` or `document_id`.

        A line item is a model and a meter (`m, input`, `m, cached input`, `m, output`, `m, embedding`), or
        `adjustment`. The cost of a document is that of embedding it and its share, by tokens, of each prompt it was
        read in; the cost without a document is under `""`. These two groupings read single lines, slower than rollups.
        """
        groups = self._groups(query.group_by, COST_DIMENSIONS)
        if {"line_item", "document_id"} <= {*groups}:
            raise InvalidRequest("group_by takes line_item or document_id, not both.", param="group_by")

        def find(connection: sa.Connection, page: BucketPage) -> Mapping[int, list[_Result]]:
            return cost_results(
                connection,
                page.edges,
                tenant_id=query.tenant_id,
                zone=self._zone,
                groups=groups,
                only=query.only(),
                currency=self._currency,
            )

        return self._page(query, find, limits=_COST_LIMITS)

    def documents(self, query: DocumentsQuery) -> dict[str, object]:
        """The tokens and cost of each document for embedding and reading, one page of documents.

        Raises:
            InvalidRequest: The range, order, limit or page is not valid; `param` names it.
        """
        as_of = int(self._clock())
        with self._database.read() as connection:
            page = document_results(connection, query, as_of=as_of, currency=self._currency)
        return page | {"as_of": as_of, "final": int(str(page["end_time"])) + _IN_FLIGHT <= as_of}

    def requests(
        self, only: RequestFilter, *, limit: int, cursor: str | None
    ) -> tuple[list[dict[str, object]], str | None]:
        """Requests that called a model, the newest first, each with its sums; and the cursor of the next page.

        Raises:
            InvalidRequest: A cursor that this list did not give out.
        """
        with self._database.read() as connection:
            return listed_requests(connection, only, limit=limit, cursor=cursor, currency=self._currency)

    def request(self, request_id: str, *, tenant_id: str) -> dict[str, object]:
        """A request with its sums.

        Raises:
            NotFound: The tenant's ledger has no such request.
        """
        with self._database.read() as connection:
            return read_request(connection, request_id, tenant_id=tenant_id, currency=self._currency)

    def own(self, *, tenant_id: str, user_id: str) -> dict[str, object]:
        """A user's usage today, this month (both in the reporting zone) and in total; each call is in one part."""
        as_of = int(self._clock())
        with self._database.read() as connection:
            periods = own_usage(connection, tenant_id=tenant_id, user_id=user_id, zone=self._zone, as_of=as_of)
        shown: dict[str, object] = {}
        for name, period in periods.items():
            shown[name] = {
                "start_time": period.start,
                "num_answers": period.questions,
                "completions": self._completion("completions", period.of(COMPLETIONS), {}),
                **{part: self._calls(period.of(operations)) for part, operations in _OWN_PARTS.items()},
                "num_unpriced": period.of(tuple(Operation)).unpriced,
                "cost": self._cost(period.of(tuple(Operation))),
            }
        return {"object": "usage", "user_id": user_id, **shown, "as_of": as_of, "tz": self._zone.key}

    def month_by_key(self, *, tenant_id: str) -> KeyMonth:
        """The usage of each key of a tenant since this month began, in the reporting zone."""
        as_of = int(self._clock())
        with self._database.read() as connection:
            since, totals_by_key = month_by_key(connection, tenant_id=tenant_id, zone=self._zone, as_of=as_of)
        return KeyMonth(since=since, totals=totals_by_key, currency=self._currency)

    def _usage(
        self,
        query: ReportQuery,
        name: str,
        operations: Sequence[str],
        to_result: Callable[[str, Totals, Mapping[str, object]], _Result],
    ) -> dict[str, object]:
        groups = self._groups(query.group_by, DIMENSIONS)

        def find(connection: sa.Connection, page: BucketPage) -> Mapping[int, list[_Result]]:
            sums = totals(
                connection,
                page.edges,
                tenant_id=query.tenant_id,
                zone=self._zone,
                groups=groups,
                only=query.only(operations),
            )
            found: dict[int, list[_Result]] = {}
            for key in in_order(sums):
                result = to_result(name, sums[key], dict(zip(groups, key[1:], strict=True)))
                found.setdefault(int(key[0]), []).append(result)
            return found

        return self._page(query, find, limits=LIMITS)

    def _page(
        self,
        query: ReportQuery,
        find: _Find,
        *,
        limits: Mapping[str, tuple[int, int]],
        settled_after: int = _IN_FLIGHT,
    ) -> dict[str, object]:
        """One page; its numbers are final when its range ended `settled_after` seconds ago."""
        as_of = int(self._clock())
        zone = self._zone if query.tz is None else zone_named(query.tz)
        # The current second is included: a call is on the report as soon as its client has the answer.
        end = max(as_of, query.start) + 1 if query.end is None else query.end
        page = bucket_page(
            start=query.start,
            end=end,
            width=query.bucket_width,
            zone=zone,
            limit=query.limit,
            page=query.page,
            limits=limits,
        )
        with self._database.read() as connection:
            results = find(connection, page)
        tenant_id = query.tenant_id if _TENANT in query.group_by else None
        shown = 0
        for bucket in range(len(page.edges) - 1):
            for result in results.get(bucket, ()):
                result[_TENANT] = tenant_id
                shown += 1
            if shown > self._most_results:
                page = page.first(bucket + 1)
                break
        edges = page.edges
        return {
            "object": "page",
            "data": [
                {
                    "object": "bucket",
                    "start_time": edges[bucket] // 1_000_000,
                    "end_time": edges[bucket + 1] // 1_000_000,
                    "start_local": datetime.fromtimestamp(edges[bucket] // 1_000_000, zone).isoformat(),
                    "results": results.get(bucket, []),
                }
                for bucket in range(len(edges) - 1)
            ],
            "has_more": page.more,
            "next_page": page_token(edges[-1]) if page.more else None,
            "as_of": as_of,
            "final": end + settled_after <= as_of,
            "tz": zone.key,
        }

    def _groups(self, group_by: Sequence[str], known: Sequence[str]) -> list[str]:
        """The dimensions to group by, in the order of `known`, without the tenant: a report has only one."""
        for name in group_by:
            if name not in (_TENANT, *known):
                allowed = ", ".join((_TENANT, *known))
                raise InvalidRequest(f"Cannot group by '{name[:64]}'; use {allowed}.", param="group_by")
        return [name for name in known if name in group_by]

    def _every(self, some: Totals, answers: int | None, dimensions: Mapping[str, object]) -> _Result:
        return {
            "object": "footnote.usage.result",
            "num_answers": answers,
            **some.measures.counted,
            "total_tokens": some.measures.total_tokens,
            **self._numbers(some),
            "cost": self._cost(some),
            **_UNGROUPED,
            **dimensions,
        }

    def _completion(self, name: str, some: Totals, dimensions: Mapping[str, object]) -> _Result:
        return {
            "object": f"organization.usage.{name}.result",
            **some.measures.counted,
            **self._numbers(some),
            "components": some.measures.parts,
            "cost": self._cost(some),
            **_UNGROUPED,
            **dimensions,
        }

    def _counted(self, name: str, some: Totals, dimensions: Mapping[str, object]) -> _Result:
        return {
            "object": f"organization.usage.{name}.result",
            "input_tokens": some.measures.input_tokens,
            **self._numbers(some),
            "cost": self._cost(some),
            **_UNGROUPED,
            **dimensions,
        }

    def _calls(self, some: Totals) -> dict[str, object]:
        return {"num_model_requests": some.calls, "input_tokens": some.measures.input_tokens}

    def _numbers(self, some: Totals) -> dict[str, object]:
        return {
            "num_model_requests": some.calls,
            "num_aborted": some.aborted,
            "num_recovered": some.recovered,
            "num_unpriced": some.unpriced,
        }

    def _cost(self, some: Totals) -> dict[str, object]:
        return {"value": decimal(some.cost_pico) if some.priced else None, "currency": self._currency}
