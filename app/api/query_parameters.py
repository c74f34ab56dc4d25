"""Query parameters that are lists, in every way clients write them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from fastapi import Request

from app.api.schemas.shape import Page
from app.errors import InvalidRequest


def refuse_unknown(request: Request, *, lists: Iterable[str], single: Iterable[str]) -> None:
    """Refuse a parameter that is none of these: a filter with a typo would show everybody's.

    Raises:
        InvalidRequest: There is one; `param` names it.
    """
    lists = [*lists]
    known = {*single, *lists, *(f"{name}[]" for name in lists)}
    for key in request.query_params:
        if key not in known:
            raise InvalidRequest(f"There is no parameter '{key[:64]}'.", param=key[:64])


def listed(request: Request, name: str, plain: list[str] | None) -> list[str]:
    """Values of `name=…&name=…`, `name[]=…` and `name=a,b`."""
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
        InvalidRequest: The cursor is of no item in this list.
    """
    start = 0
    if cursor is not None:
        places = [place for place, item in enumerate(items) if key(item) == cursor]
        if not places:
            raise InvalidRequest("The cursor is not one this list gave out.", param="cursor")
        start = places[0] + 1
    page = items[start : start + limit]
    more = start + limit < len(items)
    return Page(data=[body(item) for item in page], has_more=more, next_cursor=key(page[-1]) if more else None)
