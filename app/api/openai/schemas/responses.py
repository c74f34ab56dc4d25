"""Bodies of the Responses API of OpenAI's protocol."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.api.openai.schemas.chat import JsonObjectFormat, NamedSchema, TextFormat
from app.api.openai.schemas.response_input import FileSearchTool, InputItem, InputMessage, supported_items
from app.api.schemas.bounds import MOST_TEXT, Id
from app.api.schemas.sampling import SamplingFields
from app.api.schemas.shape import RequestBody
from app.api.schemas.unsupported import unsupported, without_unsupported
from generation.types import SamplingParams

_Label = Annotated[str, StringConstraints(max_length=512)]
_LabelName = Annotated[str, StringConstraints(max_length=64)]
_Text = Annotated[str, StringConstraints(max_length=MOST_TEXT)]
Included = Literal["file_search_call.results", "message.output_text.logprobs"]

_NEVER = (
    "access_programs",
    "context_management",
    "image",
    "moderation",
    "prompt",
    "prompt_cache_options",
    "reasoning",
)
_ONLY: Mapping[str, tuple[object, ...]] = {
    "background": (False,),
    "prompt_cache_retention": ("in_memory",),
    "service_tier": ("auto", "default"),
    "truncation": ("disabled",),
}
_CONTINUING = ("previous_response_id", "conversation")
_INCLUDED: tuple[Included, ...] = ("file_search_call.results", "message.output_text.logprobs")


class SchemaFormat(NamedSchema):
    """JSON that conforms to a schema."""

    type: Literal["json_schema"] = Field(description="Always `json_schema`.")


class ResponseText(RequestBody):
    """The form of the answer's text."""

    format: Annotated[TextFormat | JsonObjectFormat | SchemaFormat, Field(discriminator="type")] | None = Field(
        default=None,
        description="`text`, `json_object` or `json_schema`. A JSON answer has no footnotes; when the documents do not "
        "contain an answer, the content is a `refusal`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        return without_unsupported(data, never=("verbosity",), only={}) if isinstance(data, dict) else data


class ResponseStreamOptions(RequestBody):
    """Streaming options."""

    include_obfuscation: bool = Field(
        default=False,
        description="Add an `obfuscation` field of random characters to events with text, so that the sizes of "
        "encrypted packets reveal less of it.",
    )


class FileSearchChoice(RequestBody):
    """The file search as the tool to use."""

    type: Literal["file_search"] = Field(description="Always `file_search`.")


class ConversationChoice(RequestBody):
    """A conversation by its id."""

    id: Id = Field(description="The conversation's id.", examples=["conv_01k9"])


class ResponseRequest(SamplingFields):
    """OpenAI's request of a response. An unsupported parameter is a 400 that names it, never ignored."""

    model: Id = Field(description="`footnote`, or `footnote:NAME` to ask one collection.", examples=["footnote"])
    input: _Text | Annotated[list[InputItem], Field(min_length=1, max_length=1000, fail_fast=True)] = Field(
        description="The question, or messages of which the last one is the question.",
        examples=["How did revenue develop?"],
    )
    instructions: _Text | None = Field(default=None, description="Instructions, before those of system messages.")
    stream: bool | None = Field(default=None, description="Stream the response as server-sent events.")
    stream_options: ResponseStreamOptions | None = Field(default=None, description="Streaming options.")
    max_output_tokens: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Maximum number of tokens to generate."
    )
    text: ResponseText | None = Field(default=None, description="The form of the answer's text.")
    tools: list[FileSearchTool] | None = Field(
        default=None,
        max_length=1,
        description="`file_search` names the collections to search. Without it those of `model` are searched.",
    )
    tool_choice: Literal["none", "auto", "required"] | FileSearchChoice | None = Field(
        default=None, description="Every answer is searched for, so `none` is refused beside a `file_search`."
    )
    max_tool_calls: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Accepted: a response calls the file search once."
    )
    parallel_tool_calls: bool | None = Field(default=None, description="Accepted; there is one tool.")
    include: Annotated[list[Included], Field(max_length=100, fail_fast=True)] | None = Field(
        default=None,
        description="`file_search_call.results`: the passages that were found; `message.output_text.logprobs`: the log "
        "probability of every generated token, before footnotes are added.",
    )
    top_logprobs: int | None = Field(
        default=None,
        ge=0,
        le=20,
        description="Also return this many of the most likely tokens at each position, with log probabilities.",
    )
    metadata: Annotated[dict[_LabelName, _Label], Field(max_length=16)] | None = Field(
        default=None, description="Your own fields, returned with the response."
    )
    store: bool | None = Field(
        default=None,
        description="Store the response, so that it can be read and continued; default: only where it continues a "
        "response or a conversation.",
    )
    previous_response_id: Id | None = Field(
        default=None, description="A stored response that this one continues, the newest of its conversation."
    )
    conversation: Id | ConversationChoice | None = Field(
        default=None, description="A conversation of `/v1/conversations` that this response continues."
    )
    background: Literal[False] | None = Field(default=None, description="Only false.")
    truncation: Literal["disabled"] | None = Field(default=None, description="Only `disabled`.")
    service_tier: Literal["auto", "default"] | None = Field(default=None, description="There is one tier.")
    user: _Label | None = Field(default=None, description="Accepted; usage is recorded for the key.")
    safety_identifier: _Label | None = Field(default=None, description="Accepted; usage is recorded for the key.")
    prompt_cache_key: _Label | None = Field(
        default=None, description="Accepted; common prefixes of a tenant's prompts are always cached."
    )
    prompt_cache_retention: Literal["in_memory"] | None = Field(default=None, description="Only `in_memory`.")

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        supported = without_unsupported(data, never=_NEVER, only=_ONLY)
        included = supported.get("include")
        for place, name in enumerate(included if isinstance(included, list) else ()):
            if isinstance(name, str) and name not in _INCLUDED:
                raise unsupported(f"include.{place}", f"'{name[:60]}' cannot be included.")
        choice = supported.get("tool_choice")
        if isinstance(choice, dict) and choice.get("type") != "file_search":
            raise unsupported("tool_choice", "The parameter 'tool_choice' is not supported with this value.")
        if choice == "none" and supported.get("tools"):
            raise unsupported("tool_choice", "'tool_choice' none is not supported: every answer is searched for.")
        continues = [name for name in _CONTINUING if supported.get(name) is not None]
        if supported.get("store") is False and continues:
            raise unsupported("store", f"'store' false is not supported with '{continues[0]}': the turn is stored.")
        if isinstance(items := supported.get("input"), list):
            supported["input"] = supported_items(items)
        return supported

    @model_validator(mode="after")
    def _fits(self) -> Self:
        texts = [self.instructions or "", *(message.text for message in self.messages)]
        if sum(map(len, texts)) > MOST_TEXT:
            raise ValueError(f"the messages and instructions have more than {MOST_TEXT} characters together")
        if self.previous_response_id is not None and self.conversation is not None:
            raise ValueError("previous_response_id and conversation exclude each other")
        if self.continues and sum(message.role in {"user", "assistant"} for message in self.messages) != 1:
            raise ValueError("the input that continues a response or conversation has one message of the user's")
        if self.tool_choice not in (None, "none", "auto") and not self.tools:
            raise ValueError("tool_choice needs the file_search tool in tools")
        return self

    @property
    def messages(self) -> list[InputMessage]:
        """The messages of the input; one of the user's where it is a text."""
        if isinstance(self.input, str):
            return [InputMessage(role="user", content=self.input)]
        return [item for item in self.input if isinstance(item, InputMessage)]

    @property
    def conversation_id(self) -> str | None:
        """The id of `conversation`."""
        return self.conversation.id if isinstance(self.conversation, ConversationChoice) else self.conversation

    @property
    def continues(self) -> bool:
        """Whether it continues a response or a conversation."""
        return self.previous_response_id is not None or self.conversation is not None

    @property
    def keeps(self) -> bool:
        """Whether the response is to be stored."""
        return bool(self.store) or self.continues

    @property
    def file_search(self) -> FileSearchTool | None:
        """The file search of `tools`."""
        return self.tools[0] if self.tools else None

    def includes(self, name: Included) -> bool:
        """Whether `include` names it."""
        return name in (self.include or ())

    def sampling_params(self) -> SamplingParams:
        """The engine's parameters, with the log probabilities that are asked for."""
        told = self.top_logprobs is not None or self.includes("message.output_text.logprobs")
        return replace(super().sampling_params(), logprobs=(self.top_logprobs or 0) if told else None)


class ResponseObjectBody(BaseModel):
    """OpenAI's response, with the exact range of each footnote beside its annotation."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(description="The request's id.", examples=["req_01k9"])
    object: Literal["response"] = Field(default="response", description="Always `response`.")
    created_at: int = Field(description="Unix seconds.")
    completed_at: int | None = Field(default=None, description="Unix seconds; null unless completed.")
    status: Literal["in_progress", "completed", "incomplete", "failed", "cancelled"] = Field(
        description="`incomplete` where `max_output_tokens` ended it."
    )
    error: dict[str, Any] | None = Field(default=None, description="`code` and `message` of a failure.")
    incomplete_details: dict[str, Any] | None = Field(default=None, description="`reason`: `max_output_tokens`.")
    model: str = Field(description="The requested model.")
    output: list[dict[str, Any]] = Field(
        description="A `file_search_call` where the tool was requested, then the assistant's `message`. Annotations "
        "are `file_citation` objects; `footnote` of one is the citation as in /v1/ask."
    )
    usage: dict[str, Any] | None = Field(
        default=None, description="OpenAI's counts, and those of /v1/ask: components, calls, documents and cost."
    )
