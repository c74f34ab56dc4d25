"""Lists as OpenAI's clients page through them: by the id of the item before or after, ids being in order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import sqlalchemy as sa

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
