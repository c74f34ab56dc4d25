"""Pagination: opaque cursors for Footnote's lists, and OpenAI's `after` and `before` ids.

A cursor is the sort key of the last row of a page, in JSON and base64.
"""

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
    """Encode a row's sort key as a cursor."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def cut(found: Sequence[_Row], limit: int, key: Callable[[_Row], tuple[float | int | str, ...]]) -> Cut[_Row]:
    """The first `limit` of the rows found, and the cursor of the next page (None: no more).

    The query must read `limit + 1` rows. `key` returns a row's sort key.
    """
    assert limit > 0, "a page holds at least one row"
    page = tuple(found[:limit])
    return page, encode_cursor(*key(page[-1])) if len(found) > limit else None


def decode_cursor(cursor: str, *kinds: type) -> tuple[float | int | str, ...]:
    """Decode a cursor to its sort key, one value per type in `kinds` (`float` also accepts integers).

    Raises:
        InvalidRequest: It is not a cursor of this list.
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
class PageRequest:
    """A page request: at most `limit` items after the id `after`, or directly before the id `before`.

    The ids need not exist any more, so deletions between two pages leave no gap.

    Example:
        >>> place = PageRequest(limit=20, order="asc", after="doc_1")
        >>> place.listed(connection.execute(place.applied(query, document.c.id)).all()).has_more
        False
    """

    limit: int
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None
    before: str | None = None

    @property
    def _ascending(self) -> bool:
        """Whether rows are read by ascending id; a page before an id is read backwards from it."""
        return (self.order == "asc") != self._backwards

    @property
    def _backwards(self) -> bool:
        return self.before is not None and self.after is None

    def applied(self, query: sa.Select[Any], id_: sa.ColumnElement[str]) -> sa.Select[Any]:
        """Restrict the query to this page and one more row."""
        if self.after is not None:
            query = query.where(id_ > self.after if self.order == "asc" else id_ < self.after)
        if self.before is not None:
            query = query.where(id_ < self.before if self.order == "asc" else id_ > self.before)
        return query.order_by(id_.asc() if self._ascending else id_.desc()).limit(self.limit + 1)

    def listed(self, rows: Sequence[Item]) -> "Listed[Item]":
        """The page from the rows of the query of `applied`."""
        page = list(rows[: self.limit])
        return Listed(tuple(reversed(page) if self._backwards else page), has_more=len(rows) > self.limit)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """A page of items in the requested order; `has_more` in the direction of reading."""

    items: tuple[Item, ...]
    has_more: bool
