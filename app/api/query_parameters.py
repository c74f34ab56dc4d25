"""Query parameters: lists in every form that clients write, refusal of unknown names, and pages by cursor."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from fastapi import Request

from app.api.schemas.shape import Page
from app.errors import InvalidRequest


def refuse_unknown(request: Request, *, lists: Iterable[str], single: Iterable[str]) -> None:
    """Refuse unknown parameters: a misspelt filter would otherwise return unfiltered data.

    Raises:
        InvalidRequest: A parameter is unknown; `param` names it.
    """
    lists = [*lists]
    known = {*single, *lists, *(f"{name}[]" for name in lists)}
    for key in request.query_params:
        if key not in known:
            raise InvalidRequest(f"There is no parameter '{key[:64]}'.", param=key[:64])


def listed(request: Request, name: str, plain: list[str] | None) -> list[str]:
    """The values of a list parameter, written as `name=a&name=b`, `name[]=a` or `name=a,b`."""
    values = [*(plain or []), *request.query_params.getlist(f"{name}[]")]
    return [part for value in values for part in value.split(",") if part]


Item = TypeVar("Item")
Body = TypeVar("Body")


def page_of(
    items: Sequence[Item],
    *,
    key: Callable[[Item], str],
    body: Callable[[Item], Body],
    limit: int,
    cursor: str | None,
) -> Page[Body]:
    """The page that follows the item whose `key` is `cursor`.

    Raises:
        InvalidRequest: No item of the list has this cursor.
    """
    start = 0
    if cursor is not None:
        places = [place for place, item in enumerate(items) if key(item) == cursor]
        if not places:
            raise InvalidRequest("The cursor is not one of this list.", param="cursor")
        start = places[0] + 1
    page = items[start : start + limit]
    more = start + limit < len(items)
    return Page(data=[body(item) for item in page], has_more=more, next_cursor=key(page[-1]) if more else None)
