"""Pages of lists that are short enough to be read whole."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.api.schemas.shape import Page
from app.errors import InvalidRequest

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
