"""Base classes of request and response bodies, pages of lists, problem documents and common field types."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from app.api.schemas.bounds import MOST_FIELDS, MOST_METADATA
from app.api.schemas.json_kinds import refuse_other_kinds
from app.api.schemas.unknown_fields import refuse_many_unknown
from app.db.paging import Listed

Item = TypeVar("Item")


class RequestBody(BaseModel):
    """A request body. Unknown fields are refused, so that a misspelt one is never ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def of_their_kinds(cls, values: Any) -> Any:
        """The values, after a check that each has the JSON type that the schema documents, and few are unknown."""
        refuse_many_unknown(values, cls)
        refuse_other_kinds(values, cls)
        return values


class ResponseBody(BaseModel):
    """A response body."""

    model_config = ConfigDict(extra="forbid")


class Page(ResponseBody, Generic[Item]):
    """One page of a list."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[Item] = Field(description="The items of this page.")
    has_more: bool = Field(description="Whether another page follows.", examples=[False])
    next_cursor: str | None = Field(
        default=None, description="Pass as `cursor` to get the next page; null on the last.", examples=[None]
    )


class NamedBody(ResponseBody):
    """An item of a list, identified by its id."""

    id: str = Field(description="Its id.")


Body = TypeVar("Body", bound=NamedBody)


class ListBody(ResponseBody, Generic[Body]):
    """One page of a list; pass `last_id` as `after` to get the next page."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[Body] = Field(description="The items of this page.")
    first_id: str | None = Field(description="The first item's id; null on an empty page.")
    last_id: str | None = Field(description="The last item's id; null on an empty page.")
    has_more: bool = Field(description="Whether more items follow in the requested direction.")

    @classmethod
    def of(cls, listed: Listed[Item], body: Callable[[Item], Body]) -> Self:
        """The page with a body for each item."""
        data = [body(item) for item in listed.items]
        return cls(
            data=data,
            first_id=data[0].id if data else None,
            last_id=data[-1].id if data else None,
            has_more=listed.has_more,
        )


class Problem(ResponseBody):
    """A failure, as RFC 9457 `application/problem+json`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="Stable identifier of the kind of problem.", examples=["urn:footnote:problem:not-found"]
    )
    title: str = Field(description="The HTTP status in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(description="The cause, in one sentence.", examples=["There is no such document."])
    instance: str = Field(description="The request's id, also in `X-Request-Id`.", examples=["req_01j8x4"])


_SCALAR = {"type": ["string", "number", "boolean", "null"]}
Metadata = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}}
    ),
]
"""Custom fields of a document or collection: scalars and lists of scalars, usable in filters."""


def bounded_metadata(*, fields: int, chars: int) -> dict[str, Any]:
    """The JSON schema of metadata in a request: the most fields, items of a list, and characters of a string."""
    scalar = {**_SCALAR, "maxLength": chars}
    values = {"anyOf": [scalar, {"type": "array", "items": scalar, "maxItems": fields}]}
    return {"type": "object", "maxProperties": fields, "additionalProperties": values}


NewMetadata = Annotated[
    dict[str, Any],
    Field(max_length=MOST_FIELDS),
    WithJsonSchema(bounded_metadata(fields=MOST_FIELDS, chars=MOST_METADATA)),
]
"""Custom fields in a request; `checked_metadata` checks the values and the size of all together."""


def rfc3339(seconds: float) -> str:
    """Unix seconds as RFC 3339 UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


SCHEMA_REFERENCE = "#/components/schemas/{model}"
"""The reference to a body's schema in the OpenAPI document."""

PROBLEM_SCHEMA = SCHEMA_REFERENCE.format(model="Problem")
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/problem+json": {"schema": {"$ref": PROBLEM_SCHEMA}}}}
    for status, text in {
        400: "The request is malformed, or uses an unsupported parameter, which `param` names.",
        401: "The API key or session is missing or not valid; `openid`: users sign in through an OpenID provider.",
        403: "The key's role or collections do not allow this.",
        404: "It does not exist, or not for this key.",
        406: "None of the formats that `Accept` allows is served.",
        408: "The body came too slowly.",
        409: "The request conflicts with the current state.",
        413: "The body is larger than the limit.",
        415: "Unsupported file type, detected from the bytes.",
        422: "A field is invalid or the request cannot be fulfilled.",
        429: "A rate limit or budget is exhausted; see `Retry-After`, and `reset_at` for budgets.",
        503: "The server is overloaded or not ready; see Retry-After.",
        504: "The request did not finish before its deadline.",
    }.items()
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that can fail with these statuses, besides 401 and 403."""
    return {status: PROBLEMS[status] for status in (401, 403, *statuses)}
