"""Bodies of Anthropic's Messages API."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.api.anthropic.content import MessageParam, Text, TextBlocks, text_of
from app.api.openai.schemas.chat import FootnoteOptions
from app.api.schemas.answers import CitationBody
from app.api.schemas.bounds import MOST_FIELDS, MOST_TEXT, Id
from app.api.schemas.sampling import SamplingFields
from app.api.schemas.shape import RequestBody
from app.api.schemas.token_usage import UsageBody
from app.api.schemas.unsupported import unsupported

_Label = Annotated[str, StringConstraints(max_length=512)]
_Stop = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
_Unused = Annotated[dict[str, Any], Field(max_length=MOST_FIELDS)]

_NEVER = (
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "mcp_servers",
    "output_config",
    "output_format",
    "speed",
    "user_profile_id",
    "workspace_id",
)
"""Parameters of the protocol that would change the answer, and cannot be served."""


class MessageMetadata(RequestBody):
    """Data about the request."""

    user_id: _Label | None = Field(default=None, description="Accepted; usage is recorded for the key.")


class Thinking(RequestBody):
    """Whether the model thinks aloud."""

    type: Literal["disabled"] = Field(description="Only `disabled`.")


class MessageRequest(SamplingFields):
    """Anthropic's request for a message. An unsupported parameter is a 400 that names it, never ignored."""

    model: Id = Field(description="`footnote`, or `footnote:NAME` to ask one collection.", examples=["footnote"])
    max_tokens: int = Field(ge=1, le=1_000_000, description="Maximum number of tokens to generate.", examples=[1024])
    messages: list[MessageParam] = Field(
        min_length=1,
        max_length=1000,
        fail_fast=True,
        description="The last one is the question.",
        examples=[[{"role": "user", "content": "How did revenue develop?"}]],
    )
    system: Text | TextBlocks | None = Field(default=None, description="Instructions for the answer.")
    stop_sequences: Annotated[list[_Stop], Field(max_length=4)] | None = Field(
        default=None, description="Up to four strings that end the answer."
    )
    stream: bool | None = Field(default=None, description="Stream the answer as server-sent events.")
    temperature: float | None = Field(
        default=None, ge=0, le=1, description="Sampling temperature; default 0: greedy and reproducible."
    )
    top_k: int | None = Field(default=None, ge=1, le=1_000_000, description="Draw from this many likeliest tokens.")
    metadata: MessageMetadata | None = Field(default=None, description="Data about the request.")
    cache_control: _Unused | None = Field(
        default=None, description="Accepted; common prefixes of a tenant's prompts are always cached."
    )
    service_tier: Literal["auto", "standard_only"] | None = Field(default=None, description="There is one tier.")
    thinking: Thinking | None = Field(default=None, description="Only `disabled`.")
    tools: Annotated[list[_Unused], Field(max_length=1000, fail_fast=True)] | None = Field(
        default=None, description='Accepted and not used with `tool_choice: {"type": "none"}`; 400 otherwise.'
    )
    tool_choice: _Unused | None = Field(default=None, description='Only `{"type": "none"}`.')
    footnote: FootnoteOptions = Field(default_factory=FootnoteOptions, description="Footnote's own options.")

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        for name in _NEVER:
            if data.get(name) is not None:
                raise unsupported(name)
        choice = data.get("tool_choice")
        none = isinstance(choice, dict) and choice.get("type") == "none"
        if choice is not None and not none:
            raise unsupported("tool_choice", "The parameter 'tool_choice' is not supported with this value.")
        if data.get("tools") and not none:
            raise unsupported(
                "tools", "The parameter 'tools' is not supported: Footnote calls no tools; send tool_choice 'none'."
            )
        thinking = data.get("thinking")
        if isinstance(thinking, dict) and thinking.get("type") != "disabled":
            raise unsupported("thinking", "The parameter 'thinking' is not supported with this value.")
        return {name: value for name, value in data.items() if name not in _NEVER}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if sum(len(message.text) for message in self.messages) + len(self.instructions) > MOST_TEXT:
            raise ValueError(f"the messages have more than {MOST_TEXT} characters together")
        return self

    @property
    def instructions(self) -> str:
        """The instructions as one string, empty where there are none."""
        return text_of(self.system or "")


class _Location(BaseModel):
    """A cited passage, as every kind of location names it."""

    model_config = ConfigDict(extra="forbid")

    cited_text: str = Field(description="Exactly the document's text of the passage.")
    document_index: int = Field(description="Number of the document among those presented, from 0.", examples=[0])
    document_title: str | None = Field(
        description="The document's name; null for one that was sent without a title.", examples=["report.pdf"]
    )
    file_id: str | None = Field(
        description="The cited document; null for one that was sent with the request.", examples=["doc_01k9"]
    )


class CharLocation(_Location):
    """A citation by characters of a document's canonical text, or of the text that was sent."""

    type: Literal["char_location"] = Field(default="char_location", description="Always `char_location`.")
    start_char_index: int = Field(description="Its first character.", examples=[10233])
    end_char_index: int = Field(description="One past its last character.", examples=[10291])


class PageLocation(_Location):
    """The pages of a passage; of a stored document it is behind the passage's `char_location`."""

    type: Literal["page_location"] = Field(default="page_location", description="Always `page_location`.")
    start_page_number: int = Field(description="First page, from 1.", examples=[4])
    end_page_number: int = Field(description="One past the last page.", examples=[5])


class BlockLocation(_Location):
    """A citation by blocks of a document that was sent as `content`: `cited_text` is all of their texts."""

    type: Literal["content_block_location"] = Field(
        default="content_block_location", description="Always `content_block_location`."
    )
    start_block_index: int = Field(description="First block, from 0.", examples=[2])
    end_block_index: int = Field(description="One past the last block.", examples=[3])


Location = CharLocation | PageLocation | BlockLocation


class AnswerBlock(BaseModel):
    """A text of the answer, with the passages that it rests on."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"] = Field(default="text", description="Always `text`.")
    text: str = Field(description="The text, without markers.", examples=["Revenue rose by 12 %"])
    citations: list[Location] | None = Field(description="Its citations; null without any.")


class MessageUsage(BaseModel):
    """Tokens of all model calls for the answer: their sum is `footnote.total_tokens`."""

    model_config = ConfigDict(extra="forbid")

    input_tokens: int = Field(description="Tokens read that were not cached.", examples=[702])
    cache_creation_input_tokens: int = Field(default=0, description="Always 0: storing in the cache has no price.")
    cache_read_input_tokens: int = Field(description="Tokens read from the cache.", examples=[128])
    output_tokens: int = Field(description="Tokens that all model calls wrote; 0 for quotes.", examples=[41])
    footnote: UsageBody = Field(description="As in /v1/ask: exact counts, with components.")

    @classmethod
    def of(cls, usage: UsageBody) -> "MessageUsage":
        """The body for the usage of an answer."""
        cached = usage.prompt_tokens_details.cached_tokens
        return cls(
            input_tokens=usage.prompt_tokens - cached,
            cache_read_input_tokens=cached,
            output_tokens=usage.completion_tokens,
            footnote=usage,
        )


class MessageFacts(BaseModel):
    """What Footnote knows of the answer beyond the protocol."""

    model_config = ConfigDict(extra="forbid")

    answered: bool = Field(description="Whether the documents answer the question.")
    reason: str | None = Field(description="The reason why not, as in /v1/ask; null where they do.", examples=[None])
    sources: Literal["stored", "sent"] = Field(
        description="`stored`: documents of Footnote; `sent`: those in the messages, which are kept nowhere, so that "
        "the ids of `citations` name nothing."
    )
    answer: str = Field(description="The answer with its markers.", examples=["Revenue rose by 12 % [1]."])
    citations: list[CitationBody] = Field(description="The footnotes as in /v1/ask, with support and verification.")


class MessageBody(BaseModel):
    """Anthropic's message."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="The request's id.", examples=["req_01k9"])
    type: Literal["message"] = Field(default="message", description="Always `message`.")
    role: Literal["assistant"] = Field(default="assistant", description="Always `assistant`.")
    model: str = Field(description="The requested model.", examples=["footnote"])
    content: list[AnswerBlock] = Field(description="The answer in blocks.")
    stop_reason: Literal["end_turn", "max_tokens"] = Field(description="`max_tokens` where the answer was cut.")
    stop_sequence: str | None = Field(default=None, description="Always null: which sequence ended it is not told.")
    usage: MessageUsage = Field(description="Tokens of all model calls.")
    footnote: MessageFacts = Field(description="What Footnote knows beyond the protocol.")
