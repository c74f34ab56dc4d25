"""Bodies of what a response is made from in OpenAI's protocol: messages, earlier output items, the file search."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from app.api.openai.schemas.vector_stores import RankingOptions
from app.api.schemas.bounds import MOST_FIELDS, MOST_TEXT, Described, Id
from app.api.schemas.shape import RequestBody
from app.api.schemas.unsupported import unsupported, without_unsupported

_Text = Annotated[str, StringConstraints(max_length=MOST_TEXT)]
_Unused = Annotated[dict[str, Any], Field(max_length=MOST_FIELDS)]
_UnusedList = Annotated[list[_Unused], Field(max_length=1000, fail_fast=True)]
_Status = Literal["in_progress", "searching", "completed", "incomplete", "failed"]
_MESSAGE, _SEARCH = "message", "file_search_call"
_PARTS = ("input_text", "output_text", "refusal")


class InputTextPart(RequestBody):
    """A text part of a message, or of an earlier answer, which can be sent back."""

    type: Literal["input_text", "output_text"] = Field(description="`output_text` in an answer, else `input_text`.")
    text: _Text = Field(description="The text.")
    annotations: _UnusedList | None = Field(default=None, description="Accepted of an earlier answer; not used.")
    logprobs: _UnusedList | None = Field(default=None, description="Accepted of an earlier answer; not used.")


class InputRefusalPart(RequestBody):
    """A refusal part of an earlier answer."""

    type: Literal["refusal"] = Field(description="Always `refusal`.")
    refusal: _Text = Field(description="The text of the refusal.")


_Part = Annotated[InputTextPart | InputRefusalPart, Field(discriminator="type")]


class InputMessage(RequestBody):
    """A message, or the message of an earlier response."""

    type: Literal["message"] = Field(default="message", description="Always `message`.")
    id: Id | None = Field(default=None, description="Accepted of an earlier response; not used.")
    role: Literal["system", "developer", "user", "assistant"] = Field(description="Role of the author.")
    content: _Text | Annotated[list[_Part], Field(max_length=1000, fail_fast=True)] = Field(
        description="The text.", examples=["How did revenue develop?"]
    )
    status: _Status | None = Field(default=None, description="Accepted; not used.")
    phase: Literal["commentary", "final_answer"] | None = Field(default=None, description="Accepted; not used.")

    @property
    def text(self) -> str:
        """The content as one string."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.refusal if isinstance(part, InputRefusalPart) else part.text for part in self.content)


class InputFileSearch(RequestBody):
    """The file search of an earlier response; accepted, and not used."""

    type: Literal["file_search_call"] = Field(description="Always `file_search_call`.")
    id: Id | None = Field(default=None, description="Its id.")
    queries: Annotated[list[_Text], Field(max_length=1000, fail_fast=True)] | None = Field(
        default=None, description="What was searched for."
    )
    status: _Status | None = Field(default=None, description="Its status.")
    results: _UnusedList | None = Field(default=None, description="What was found.")


InputItem = Annotated[InputMessage | InputFileSearch, Field(discriminator="type")]


class ResponseRanking(RankingOptions):
    """Ranking options of the file search."""

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        return without_unsupported(data, never=("hybrid_search",), only={}) if isinstance(data, dict) else data


class FileSearchTool(RequestBody):
    """The file search: the vector stores to search, and how."""

    type: Literal["file_search"] = Field(description="Only `file_search` is supported.")
    vector_store_ids: list[Id] = Field(
        min_length=1, max_length=1000, fail_fast=True, description="Ids of the collections to search."
    )
    filters: Described | None = Field(
        default=None,
        description="Conditions on attributes: `{type, key, value}` with `eq ne gt gte lt lte in nin`, or "
        "`{type, filters}` with `and or`. Applied during the search.",
        examples=[{"type": "eq", "key": "year", "value": 2025}],
    )
    max_num_results: int | None = Field(default=None, ge=1, le=50, description="Maximum number of results; default 8.")
    ranking_options: ResponseRanking | None = Field(default=None, description="Ranking options.")

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        if isinstance(data, dict) and isinstance(data.get("type"), str) and data["type"] != "file_search":
            kind = data["type"][:40]
            raise unsupported("type", f"Tools of the type '{kind}' are not supported: only file_search is.")
        return data


def supported_items(items: list[Any]) -> list[Any]:
    """The items of a request's input, each with its type, and without fields that are null.

    Raises:
        PydanticCustomError: An item is neither a message of text nor a file search; the error names its place.
    """
    return [_supported(item, f"input.{place}") if isinstance(item, dict) else item for place, item in enumerate(items)]


def _supported(item: dict[str, Any], place: str) -> dict[str, Any]:
    kind = item.get("type", _MESSAGE if "role" in item else None)
    if isinstance(kind, str) and kind not in {_MESSAGE, _SEARCH}:
        raise unsupported(f"{place}.type", f"Input of the type '{kind[:40]}' is not supported: messages of text are.")
    content = item.get("content")
    for at, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict):
            continue  # the validation of the part reports it better
        if isinstance(part.get("type"), str) and part["type"] not in _PARTS:
            kind_of_part = part["type"][:40]
            sentence = f"Content of the type '{kind_of_part}' is not supported: only text is."
            raise unsupported(f"{place}.content.{at}.type", sentence)
        if part.get("prompt_cache_breakpoint") is not None:
            raise unsupported(f"{place}.content.{at}.prompt_cache_breakpoint")
    given = {name: value for name, value in item.items() if value is not None}
    return {"type": kind, **given} if kind is not None else given
