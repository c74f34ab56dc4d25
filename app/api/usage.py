"""Routes of usage: everyone's own, and the administrator's report."""

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request

from app.api.dependencies import PrincipalDep, StateDep
from app.api.schemas.shape import problems
from app.api.schemas.usage import OwnUsage, UsagePage
from app.errors import InvalidRequest

router = APIRouter(tags=["usage"])

_DIMENSIONS = ("user_id", "api_key_id", "model")
_LISTS = ("group_by", "user_ids", "api_key_ids", "models")
_SINGLE = ("start_time", "end_time", "bucket_width", "limit", "page")


@router.get("/v1/usage", summary="Your own use", responses=problems())
def own_usage(state: StateDep, principal: PrincipalDep) -> OwnUsage:
    """Tokens of the calling key's user today, this month, and ever."""
    return OwnUsage.model_validate(state.reports.own(tenant_id=principal.tenant_id, user_id=principal.user_id))


@router.get("/v1/admin/usage/completions", summary="Completion tokens over time", responses=problems(422))
def completions(
    request: Request,
    state: StateDep,
    principal: PrincipalDep,
    start_time: Annotated[int, Query(description="Unix seconds, inclusive.")],
    end_time: Annotated[int | None, Query(description="Unix seconds, exclusive; default: now.")] = None,
    bucket_width: Annotated[Literal["1h", "1d"], Query(description="Width of a bucket.")] = "1d",
    group_by: Annotated[
        list[str] | None, Query(description="Any of `user_id`, `api_key_id`, `model`; also as `group_by[]`.")
    ] = None,
    user_ids: Annotated[list[str] | None, Query(description="Only these users.")] = None,
    api_key_ids: Annotated[list[str] | None, Query(description="Only these keys.")] = None,
    models: Annotated[list[str] | None, Query(description="Only these models.")] = None,
    limit: Annotated[int | None, Query(description="Most buckets on a page: at most 168 hours or 31 days.")] = None,
    page: Annotated[str | None, Query(description="`next_page` of the page before.")] = None,
) -> UsagePage:
    """Buckets by the time the books were closed: a closed bucket never changes."""
    given = {"group_by": group_by, "user_ids": user_ids, "api_key_ids": api_key_ids, "models": models}
    lists = {name: _list(request, name, given[name]) for name in _LISTS}
    for key in request.query_params:
        if key.removesuffix("[]") not in {*_LISTS, *_SINGLE}:
            raise InvalidRequest(f"There is no parameter '{key[:64]}'.", param=key[:64])
    for dimension in lists["group_by"]:
        if dimension not in _DIMENSIONS:
            raise InvalidRequest(f"Cannot group by '{dimension[:64]}'; use {', '.join(_DIMENSIONS)}.", param="group_by")
    report = state.reports.completions(
        tenant_id=principal.tenant_id,
        start=start_time,
        # The default includes the second that runs: an answer is on the report as soon as its client has it.
        end=end_time if end_time is not None else int(time.time()) + 1,
        bucket_width=bucket_width,
        group_by=tuple(dict.fromkeys(lists["group_by"])),
        user_ids=lists["user_ids"] or None,
        api_key_ids=lists["api_key_ids"] or None,
        models=lists["models"] or None,
        limit=limit,
        page=page,
    )
    return UsagePage.model_validate(report)


def _list(request: Request, name: str, plain: list[str] | None) -> list[str]:
    """Values of `name=…&name=…`, `name[]=…` and `name=a,b`."""
    values = [*(plain or []), *request.query_params.getlist(f"{name}[]")]
    return [part for value in values for part in value.split(",") if part]
