"""Routes of the administrator's overview: figures over time, and lists of what deserves a look."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response

from app.api.dependencies import PrincipalDep, UsageDep
from app.api.exports import EXPORTS, closed_second, exported_pages, wanted
from app.api.query_parameters import refuse_unknown
from app.api.schemas.bounds import Id
from app.api.schemas.overview import ExpensiveBody, OverviewBody, PeopleBody, UnansweredBody, UnusedBody
from app.api.schemas.shape import problems
from app.db.answer_citations import AnswerResult
from app.usage.overview.expensive import MOST_QUESTIONS
from app.usage.overview.overview import OverviewQuery
from app.usage.overview.people import MOST_PEOPLE
from app.usage.overview.tables import EXPENSIVE, NUMBERS, OVERVIEW, PEOPLE, UNANSWERED, UNUSED
from app.usage.overview.unanswered import MOST_TOPICS, UnansweredQuery
from app.usage.overview.unused import MOST_DOCUMENTS, UnusedQuery
from app.usage.reports.tables import Page, ReportTable
from app.usage.rollups.buckets import LATEST, BucketWidth

router = APIRouter(prefix="/v1/admin/overview", tags=["overview"])

_Query = TypeVar("_Query", bound=OverviewQuery)

StartTime = Annotated[int, Query(ge=0, le=LATEST, description="Unix seconds, inclusive.")]
EndTime = Annotated[int | None, Query(ge=0, le=LATEST, description="Unix seconds, exclusive; default: now.")]


def range_query(
    principal: PrincipalDep,
    start_time: StartTime,
    end_time: EndTime = None,
) -> OverviewQuery:
    """The range of a list, from the query parameters."""
    return OverviewQuery(tenant_id=principal.tenant_id, start=start_time, end=end_time)


RangeDep = Annotated[OverviewQuery, Depends(range_query)]


@router.get("", summary="Figures over time", response_model=OverviewBody, responses={**EXPORTS, **problems(422, 503)})
def read_overview(
    request: Request,
    usage: UsageDep,
    asked: RangeDep,
    bucket_width: Annotated[
        BucketWidth, Query(description="Width of a bucket; days and months are those of `tz`.")
    ] = "1d",
    tz: Annotated[Id | None, Query(description="IANA time zone; default: the reporting zone.")] = None,
) -> Response:
    """Questions and how they ended, feedback, seconds, people, tokens and cost, beside the period before.

    Questions count at the time they ended. A range has at most 672 quarter hours, 168 hours, 400 days or 120 months.
    """
    refuse_unknown(request, lists=(), single=("start_time", "end_time", "bucket_width", "tz"))
    query = replace(asked, bucket_width=bucket_width, tz=tz)
    return _exported(request, usage, OVERVIEW, usage.overview.overview, query)


@router.get(
    "/unanswered",
    summary="Topics that were not answered",
    response_model=UnansweredBody,
    responses={**EXPORTS, **problems(422, 503)},
)
def list_unanswered(
    request: Request,
    usage: UsageDep,
    asked: RangeDep,
    result: Annotated[
        Literal["unsure", "refused"] | None, Query(description="Only questions with this outcome; default: both.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_TOPICS, description="Maximum number of topics.")] = 20,
) -> Response:
    """Unsure and refused questions, grouped by the words they share, with the documents that come nearest.

    The text of a question is kept only in a conversation; questions without one are counted.
    """
    refuse_unknown(request, lists=(), single=("start_time", "end_time", "result", "limit"))
    query = UnansweredQuery(tenant_id=asked.tenant_id, start=asked.start, end=asked.end, limit=limit)
    if result is not None:
        query = replace(query, results=(AnswerResult(result),))
    if wanted(request) is not None:
        query = replace(query, limit=MOST_TOPICS)
    return _exported(request, usage, UNANSWERED, usage.overview.unanswered, query)


@router.get(
    "/expensive",
    summary="The most expensive questions",
    response_model=ExpensiveBody,
    responses={**EXPORTS, **problems(422, 503)},
)
def list_expensive(
    request: Request,
    usage: UsageDep,
    asked: RangeDep,
    limit: Annotated[int, Query(ge=1, le=MOST_QUESTIONS, description="Maximum number of questions.")] = 20,
) -> Response:
    """Questions by cost, each with the reason in words and figures, and with what lowers it."""
    refuse_unknown(request, lists=(), single=("start_time", "end_time", "limit"))
    most = limit if wanted(request) is None else MOST_QUESTIONS

    def read(query: OverviewQuery) -> Page:
        return usage.overview.expensive(query, limit=most)

    return _exported(request, usage, EXPENSIVE, read, asked)


@router.get(
    "/people", summary="Each person's use", response_model=PeopleBody, responses={**EXPORTS, **problems(422, 503)}
)
def list_people(
    request: Request,
    usage: UsageDep,
    asked: RangeDep,
    limit: Annotated[int, Query(ge=1, le=MOST_PEOPLE, description="Maximum number of people.")] = 20,
) -> Response:
    """The use of each person: share of the tenant's cost, and models."""
    refuse_unknown(request, lists=(), single=("start_time", "end_time", "limit"))
    most = limit if wanted(request) is None else MOST_PEOPLE

    def read(query: OverviewQuery) -> Page:
        return usage.overview.people(query, limit=most)

    return _exported(request, usage, PEOPLE, read, asked)


@router.get(
    "/unused-documents",
    summary="Documents that are never cited",
    response_model=UnusedBody,
    responses={**EXPORTS, **problems(422, 503)},
)
def list_unused(
    request: Request,
    usage: UsageDep,
    principal: PrincipalDep,
    since: Annotated[
        int | None,
        Query(ge=0, le=LATEST, description="Also documents that were last cited before this; Unix seconds."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_DOCUMENTS, description="Documents on a page, at most 1000.")] = 100,
    page: Annotated[str | None, Query(max_length=4096, description="`next_page` of the previous page.")] = None,
) -> Response:
    """Searchable documents that no answer cites, or none since a date, with size, age and embedded tokens."""
    refuse_unknown(request, lists=(), single=("since", "limit", "page"))
    query = UnusedQuery(tenant_id=principal.tenant_id, since=since, limit=limit, page=page)

    def every() -> Iterator[Page]:
        token: str | None = None
        while True:
            found: dict[str, Any] = usage.overview.unused_documents(replace(query, limit=MOST_DOCUMENTS, page=token))
            yield found
            token = found["next_page"]
            if token is None:
                return

    return exported_pages(
        request,
        UNUSED,
        lambda: usage.overview.unused_documents(query),
        every,
        start=since or 0,
        end=int(usage.ledger.seconds()),
        numbers=NUMBERS,
    )


def _exported(
    request: Request, usage: UsageDep, table: ReportTable, report: Callable[[_Query], Page], query: _Query
) -> Response:
    """The report in JSON or as a file, whose range ends with the second of the request, or earlier."""
    if wanted(request) is None:
        return exported_pages(request, table, lambda: report(query), lambda: iter(()), start=0, end=0, numbers=NUMBERS)
    end = closed_second(usage.ledger, query.start, query.end)
    return exported_pages(
        request,
        table,
        lambda: report(query),
        lambda: iter((report(replace(query, end=end)),)),
        start=query.start,
        end=end,
        numbers=NUMBERS,
    )
