"""Lists as OpenAI's clients read them."""

from collections.abc import Callable
from typing import Generic, Literal, Self, TypeVar

from pydantic import Field

from app.api.schemas.shape import ResponseBody
from app.db.paging import Listed


class NamedBody(ResponseBody):
    """An item of a list, which its id finds again."""

    id: str = Field(description="Its id.")


Item = TypeVar("Item")
Body = TypeVar("Body", bound=NamedBody)


class ListBody(ResponseBody, Generic[Body]):
    """One page of a list; pass `last_id` as `after` to get the next one."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[Body] = Field(description="The items of this page.")
    first_id: str | None = Field(description="The first item's id; null on an empty page.")
    last_id: str | None = Field(description="The last item's id; null on an empty page.")
    has_more: bool = Field(description="Whether there is more in the direction that was asked for.")

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
