"""Where a list goes on: the sort key of its last row, opaque to callers."""

import base64
import json
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from app.errors import InvalidRequest

_Row = TypeVar("_Row")
Cut: TypeAlias = tuple[tuple[_Row, ...], str | None]


def encode_cursor(*position: float | int | str) -> str:
    """The cursor of a row by its sort key."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def cut(found: Sequence[_Row], limit: int, key: Callable[[_Row], tuple[float | int | str, ...]]) -> Cut[_Row]:
    """The first `limit` of the rows found, and the cursor of the next page (None: no more).

    One row more than the page holds has to be looked for. `key` is a row's sort key.
    """
    assert limit > 0, "a page holds at least one row"
    page = tuple(found[:limit])
    return page, encode_cursor(*key(page[-1])) if len(found) > limit else None


def decode_cursor(cursor: str, *kinds: type) -> tuple[float | int | str, ...]:
    """The sort key inside `cursor`, one value per kind (`float` also takes whole numbers).

    Raises:
        InvalidRequest: This is no cursor of this list.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("The cursor is not one this list gave out.", param="cursor") from error
    if not isinstance(position, list) or len(position) != len(kinds) or not all(map(_is_a, position, kinds)):
        raise InvalidRequest("The cursor is not one this list gave out.", param="cursor")
    return tuple(position)


def _is_a(value: object, kind: type) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)
