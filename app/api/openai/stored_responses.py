"""OpenAI's protocol: stored responses are read, cancelled while they run, and deleted."""

import json
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from app.api.dependencies import HistoryDep, PrincipalDep, ServingDep
from app.api.openai.response_keeping import INPUT, RESPONSE
from app.api.openai.schemas.responses import ResponseObjectBody
from app.api.openai.vector_stores import PlaceDep
from app.api.schemas.bounds import Id
from app.api.schemas.shape import ResponseBody, problems
from app.errors import NotFound, UnsupportedParameter

router = APIRouter(tags=["openai"])


class ResponseDeleted(ResponseBody):
    """A deleted response."""

    id: str = Field(description="Its id.", examples=["req_01k9"])
    object: Literal["response"] = Field(default="response", description="Always `response`.")
    deleted: Literal[True] = Field(default=True, description="Always true.")


class InputItemPage(ResponseBody):
    """A page of the input items of a response."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[dict[str, Any]] = Field(description="The items of this page.")
    first_id: str | None = Field(description="The first item's id; null on an empty page.")
    last_id: str | None = Field(description="The last item's id; null on an empty page.")
    has_more: bool = Field(description="Whether more items follow in the requested direction.")


@router.get(
    "/v1/responses/{response_id}",
    response_model=ResponseObjectBody,
    summary="Read a stored response",
    responses=problems(400, 404, 503),
)
def read_response(
    response_id: Id,
    history: HistoryDep,
    principal: PrincipalDep,
    stream: Annotated[bool, Query(description="Only false: a stream cannot be read again.")] = False,
) -> Response:
    """The response as it was returned, with the file search's results if it included them."""
    if stream:
        raise UnsupportedParameter("The parameter 'stream' is not supported: send no stream, or false.", param="stream")
    return JSONResponse(json.loads(history.responses.get(response_id, principal=principal))[RESPONSE])


@router.delete(
    "/v1/responses/{response_id}",
    summary="Delete a stored response",
    responses=problems(404, 503),
)
def delete_response(response_id: Id, history: HistoryDep, principal: PrincipalDep) -> ResponseDeleted:
    """Delete it with its question and answer for good. In a conversation of `conversation` the turn stays."""
    history.responses.delete(response_id, principal=principal)
    return ResponseDeleted(id=response_id)


@router.post(
    "/v1/responses/{response_id}/cancel",
    response_model=ResponseObjectBody,
    summary="Cancel a running response",
    responses=problems(404, 503),
)
def cancel_response(response_id: Id, history: HistoryDep, serving: ServingDep, principal: PrincipalDep) -> Response:
    """Cancel a response that is being prepared or generated. A stored one that has ended is returned as it is."""
    if serving.models is None:
        return read_response(response_id, history, principal)
    try:
        serving.models.answerer.running.cancel(response_id, principal=principal)
    except NotFound:
        return read_response(response_id, history, principal)
    cancelled = ResponseObjectBody(
        id=response_id, created_at=int(time.time()), status="cancelled", model="footnote", output=[]
    )
    return JSONResponse(cancelled.model_dump())


@router.get(
    "/v1/responses/{response_id}/input_items",
    summary="List the input items of a response",
    responses=problems(404, 422, 503),
)
def list_input_items(response_id: Id, history: HistoryDep, principal: PrincipalDep, place: PlaceDep) -> InputItemPage:
    """The items of the request's own input. Those of the responses before it are listed by their ids."""
    stored = json.loads(history.responses.get(response_id, principal=principal))[INPUT]
    items = stored if place.order == "asc" else stored[::-1]
    ids = [item["id"] for item in items]
    if place.before is not None:
        end = ids.index(place.before) if place.before in ids else 0
        page, more = items[max(0, end - place.limit) : end], end > place.limit
    else:
        start = ids.index(place.after) + 1 if place.after in ids else 0
        page, more = items[start : start + place.limit], start + place.limit < len(items)
    return InputItemPage(
        data=page, first_id=page[0]["id"] if page else None, last_id=page[-1]["id"] if page else None, has_more=more
    )
