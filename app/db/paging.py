"""Where a list goes on: the sort key of its last row, opaque to callers."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import sqlalchemy as sa

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


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which part of a list: at most `limit` items after the id `after`, or those right before the id `before`.

    Neither has to be there any more: what is deleted while somebody pages through it leaves no gap.
    """

    limit: int
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None
    before: str | None = None

    @property
    def _ascending(self) -> bool:
        """Whether rows are read by rising ids: a page before something is read from that something on, backwards."""
        return (self.order == "asc") != self._backwards

    @property
    def _backwards(self) -> bool:
        return self.before is not None and self.after is None

    def applied(self, query: sa.Select[Any], id_: sa.ColumnElement[str]) -> sa.Select[Any]:
        """The query's rows of this page, and one more where there is one."""
        if self.after is not None:
            query = query.where(id_ > self.after if self.order == "asc" else id_ < self.after)
        if self.before is not None:
            query = query.where(id_ < self.before if self.order == "asc" else id_ > self.before)
        return query.order_by(id_.asc() if self._ascending else id_.desc()).limit(self.limit + 1)

    def listed(self, rows: Sequence[Item]) -> "Listed[Item]":
        """The page from such rows."""
        page = list(rows[: self.limit])
        return Listed(tuple(reversed(page) if self._backwards else page), has_more=len(rows) > self.limit)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """Items in the order that was asked for, and whether there are more in the direction of reading."""

    items: tuple[Item, ...]
    has_more: bool
