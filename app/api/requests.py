"""Routes of requests as the ledger knows them: how each ended, its sums, and its calls."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from app.api.dependencies import Cursor, PrincipalDep, SettingsDep, UsageDep
from app.api.query_parameters import listed, refuse_unknown
from app.api.schemas.bounds import Id, Listed
from app.api.schemas.requests import LedgerRequestBody, WholeRequestBody
from app.api.schemas.shape import Page, problems
from app.db.answer_citations import AnswerResult
from app.errors import InvalidRequest
from app.usage.reports.line_rows import line_objects
from app.usage.reports.raw_ledger import LineFilter
from app.usage.reports.requests_report import RequestFilter
from app.usage.rollups.buckets import LATEST
from app.usage.rollups.zones import zone_named

router = APIRouter(prefix="/v1/admin/requests", tags=["usage"])

_DEFAULT_SECONDS = 30 * 86400
_MOST_CALLS = 10_000
_MICRO = 1_000_000
_RESULTS = tuple(one.value for one in AnswerResult)


@router.get("", summary="List requests", response_model=Page[LedgerRequestBody], responses=problems(422, 503))
def list_requests(
    request: Request,
    usage: UsageDep,
    principal: PrincipalDep,
    start_time: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Unix seconds, inclusive; default: 30 days before the end.")
    ] = None,
    end_time: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Unix seconds, exclusive; default: now.")
    ] = None,
    project_ids: Annotated[Listed | None, Query(description="Only these collections.")] = None,
    user_ids: Annotated[Listed | None, Query(description="Only these users.")] = None,
    api_key_ids: Annotated[Listed | None, Query(description="Only these keys.")] = None,
    endpoints: Annotated[Listed | None, Query(description="Only these kinds of requests, such as `ask`.")] = None,
    results: Annotated[Listed | None, Query(description="Only questions that ended so.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of requests on a page.")] = 100,
    cursor: Cursor = None,
) -> Response:
    """Requests that called a model, the newest first, by the time at which they were accepted."""
    given = {
        "project_ids": project_ids,
        "user_ids": user_ids,
        "api_key_ids": api_key_ids,
        "endpoints": endpoints,
        "results": results,
    }
    refuse_unknown(request, lists=given, single=("start_time", "end_time", "limit", "cursor"))
    lists = {name: listed(request, name, plain) or None for name, plain in given.items()}
    if unknown := next((one for one in lists["results"] or () if one not in _RESULTS), None):
        raise InvalidRequest(f"There is no '{unknown[:64]}'; use {', '.join(_RESULTS)}.", param="results")
    # the default includes the second that runs: a request is listed as soon as its client has the answer
    end = int(usage.ledger.seconds()) + 1 if end_time is None else end_time
    start = max(0, end - _DEFAULT_SECONDS) if start_time is None else start_time
    if start >= end:
        raise InvalidRequest("end_time must be after start_time.", param="end_time")
    data, following = usage.reports.requests(
        RequestFilter(tenant_id=principal.tenant_id, start=start, end=end, **lists), limit=limit, cursor=cursor
    )
    return JSONResponse({"object": "list", "data": data, "has_more": following is not None, "next_cursor": following})


@router.get("/{id}", summary="Read a request", response_model=WholeRequestBody, responses=problems(404, 422))
def read_request(
    id: Id,  # noqa: A002 - the name in the contract
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    tz: Annotated[Id | None, Query(description="IANA zone of local times; default: the reporting zone.")] = None,
) -> Response:
    """A request with each of its calls and adjustments."""
    to_object = line_objects(zone_named(settings.reporting_zone if tz is None else tz))
    tenant_id = principal.tenant_id
    found = usage.reports.request(id, tenant_id=tenant_id)
    lines, _ = usage.raw_ledger.page(
        tenant_id=tenant_id, start=0, end=LATEST * _MICRO, only=LineFilter(request_id=id), limit=_MOST_CALLS
    )
    return JSONResponse({**found, "calls": [to_object(line) for line in lines]})
