"""Routes of the raw usage ledger: settled calls and adjustments, as pages or files."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from app.api.dependencies import Cursor, PrincipalDep, SettingsDep, UsageDep
from app.api.exports import EXPORTS, ExportStream, closed_second, ndjson, wanted
from app.api.query_parameters import listed, refuse_unknown
from app.api.schemas.bounds import Id, Listed
from app.api.schemas.shape import Page, problems
from app.api.schemas.usage_events import LineBody, WholeEventBody
from app.errors import InvalidRequest
from app.types import Operation, UsageStatus
from app.usage.ledger.entry import ADJUSTMENT
from app.usage.reports.line_rows import line_objects, lines_as_csv, whole_object
from app.usage.reports.raw_ledger import LineFilter
from app.usage.rollups.buckets import LATEST
from app.usage.rollups.zones import zone_named

router = APIRouter(tags=["usage"])

_SINGLE = ("start_time", "end_time", "tz", "request_id", "limit", "cursor")
_STATUSES = (*(status.value for status in UsageStatus if status != UsageStatus.RESERVED), ADJUSTMENT)
_OPERATIONS = tuple(operation.value for operation in Operation)


def line_filter(
    request: Request,
    project_ids: Annotated[Listed | None, Query(description="Only these collections.")] = None,
    user_ids: Annotated[Listed | None, Query(description="Only these users.")] = None,
    api_key_ids: Annotated[Listed | None, Query(description="Only these keys.")] = None,
    models: Annotated[Listed | None, Query(description="Only these models.")] = None,
    statuses: Annotated[Listed | None, Query(description="Only calls with these statuses, or `adjustment`.")] = None,
    operations: Annotated[Listed | None, Query(description="Only these operations, such as `chat`.")] = None,
    request_id: Annotated[Id | None, Query(description="Only this request's calls.")] = None,
) -> LineFilter:
    """The filter of ledger lines, from the query parameters.

    Raises:
        InvalidRequest: A parameter, status or operation is unknown.
    """
    given = {
        "project_ids": project_ids,
        "user_ids": user_ids,
        "api_key_ids": api_key_ids,
        "models": models,
        "statuses": statuses,
        "operations": operations,
    }
    refuse_unknown(request, lists=given, single=_SINGLE)
    lists = {name: listed(request, name, plain) or None for name, plain in given.items()}
    _check("statuses", lists["statuses"], _STATUSES)
    _check("operations", lists["operations"], _OPERATIONS)
    return LineFilter(request_id=request_id, **lists)


@router.get(
    "/v1/admin/usage/events",
    summary="List usage events",
    response_model=Page[LineBody],
    responses={**EXPORTS, **problems(422, 503)},
)
def list_events(
    request: Request,
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    only: Annotated[LineFilter, Depends(line_filter)],
    start_time: Annotated[int, Query(ge=0, le=LATEST, description="Unix seconds, inclusive.")],
    end_time: Annotated[
        int | None, Query(ge=0, le=LATEST, description="Unix seconds, exclusive; default: now.")
    ] = None,
    tz: Annotated[Id | None, Query(description="IANA zone of local times; default: the reporting zone.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of lines on a page.")] = 100,
    cursor: Cursor = None,
) -> Response:
    """Settled calls and adjustments, by time of settlement. A file has the whole range at one point in time."""
    zone = zone_named(settings.reporting_zone if tz is None else tz)
    if not 0 <= start_time <= LATEST:
        raise InvalidRequest("start_time must be Unix seconds.", param="start_time")
    if end_time is not None and not start_time < end_time <= LATEST:
        raise InvalidRequest("end_time must be after start_time.", param="end_time")
    form = wanted(request)
    if form is None:
        to_object = line_objects(zone)
        lines, next_cursor = usage.raw_ledger.page(
            tenant_id=principal.tenant_id,
            start=start_time * 1_000_000,
            # the default includes the second that runs: an answer is listed as soon as its client has it
            end=(int(usage.ledger.seconds()) + 1 if end_time is None else end_time) * 1_000_000,
            only=only,
            limit=limit,
            cursor=cursor,
        )
        data = [to_object(line) for line in lines]
        return JSONResponse(
            {"object": "list", "data": data, "has_more": next_cursor is not None, "next_cursor": next_cursor}
        )
    for param in ("limit", "cursor"):
        if param in request.query_params:
            raise InvalidRequest("A file has the whole range; leave out limit and cursor.", param=param)
    end = closed_second(usage.ledger, start_time, end_time)
    batches = usage.raw_ledger.batches(
        tenant_id=principal.tenant_id, start=start_time * 1_000_000, end=end * 1_000_000, only=only
    )
    if form == "csv":
        pieces = lines_as_csv(batches, zone)
    else:
        to_object = line_objects(zone)
        pieces = (ndjson(map(to_object, lines)) for lines in batches)
    return ExportStream(pieces, form, subject="events", start=start_time, end=end)


@router.get(
    "/v1/admin/usage/events/{event_id}",
    summary="Read a usage event",
    response_model=WholeEventBody,
    responses=problems(404, 422),
)
def read_event(
    event_id: Id,
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    tz: Annotated[Id | None, Query(description="IANA zone of local times; default: the reporting zone.")] = None,
) -> Response:
    """A settled call, with its documents, prices and later adjustments."""
    zone = zone_named(settings.reporting_zone if tz is None else tz)
    return JSONResponse(whole_object(usage.raw_ledger.event(event_id, tenant_id=principal.tenant_id), zone))


def _check(param: str, given: Sequence[str] | None, known: Sequence[str]) -> None:
    unknown = next((value for value in given or () if value not in known), None)
    if unknown is not None:
        raise InvalidRequest(f"There is no '{unknown[:64]}'; use {', '.join(known)}.", param=param)
