"""Bodies of chat completions in OpenAI's protocol."""

from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.api.schemas.bounds import LARGEST_INTEGER, MOST_FIELDS, MOST_TEXT, Described, DocumentIds, Id, Ids
from app.api.schemas.sampling import SamplingFields
from app.api.schemas.search import FILTER
from app.api.schemas.shape import RequestBody
from app.api.schemas.unsupported import refuse_content, refuse_message, refuse_parameters
from generation.types import SamplingParams

_Label = Annotated[str, StringConstraints(max_length=512)]
_Text = Annotated[str, StringConstraints(max_length=MOST_TEXT)]
_Stop = Annotated[str, StringConstraints(max_length=1024)]
_Unused = Annotated[dict[str, Any], Field(max_length=MOST_FIELDS)]


class TextPart(RequestBody):
    """A text part of a message."""

    type: Literal["text"] = Field(description="Only `text` is supported.")
    text: _Text = Field(description="The text.")


class RefusalPart(RequestBody):
    """A refusal part of an assistant's message."""

    type: Literal["refusal"] = Field(description="Always `refusal`.")
    refusal: _Text = Field(description="The text of the refusal.")


class ChatMessage(RequestBody):
    """A message of the conversation; a completion's message can be sent back."""

    role: Literal["system", "developer", "user", "assistant"] = Field(description="Role of the author.")
    content: _Text | Annotated[list[TextPart | RefusalPart], Field(max_length=1000, fail_fast=True)] | None = Field(
        default=None, description="The text; null only with a `refusal`.", examples=["How did revenue develop?"]
    )
    name: _Label | None = Field(default=None, description="Accepted; not used.")
    refusal: _Text | None = Field(default=None, description="Text of an assistant's refusal, when `content` is null.")
    annotations: Annotated[list[_Unused], Field(max_length=1000, fail_fast=True)] | None = Field(
        default=None,
        description="Accepted, so that a completion's message can be sent back; not used.",
    )

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        if isinstance(data, dict):
            refuse_content(data)
            return refuse_message(data)
        return data

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.content is None and self.refusal is None:
            raise ValueError("a message needs content")
        return self

    @property
    def text(self) -> str:
        """The content as one string."""
        if self.content is None:
            return self.refusal or ""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text if isinstance(part, TextPart) else part.refusal for part in self.content)


class StreamOptions(RequestBody):
    """Streaming options."""

    include_usage: bool = Field(default=False, description="Send the usage in a last chunk.")
    include_obfuscation: bool = Field(
        default=False,
        description="Add an `obfuscation` field of random characters to chunks with text, so that the sizes of "
        "encrypted packets reveal less of it.",
    )


class FootnoteOptions(RequestBody):
    """Footnote's own options."""

    collection_ids: Ids | None = Field(default=None, description="Only these collections.")
    document_ids: DocumentIds | None = Field(default=None, description="Only these documents.")
    filter: Described | None = Field(default=None, description=FILTER)
    top_k: int = Field(default=8, ge=1, le=200, description="Number of chunks to retrieve.")
    max_context_tokens: int | None = Field(
        default=None, ge=1, le=LARGEST_INTEGER, description="Maximum number of source tokens in the prompt."
    )


class TextFormat(RequestBody):
    """Prose with footnotes."""

    type: Literal["text"] = Field(description="Always `text`.")


class JsonObjectFormat(RequestBody):
    """Any JSON object."""

    type: Literal["json_object"] = Field(description="Always `json_object`.")


class NamedSchema(RequestBody):
    """A JSON Schema with a name."""

    name: str = Field(
        max_length=64, pattern=r"^[a-zA-Z0-9_-]{1,64}$", description="Accepted; not used.", examples=["revenue"]
    )
    description: str | None = Field(default=None, max_length=10_000, description="Accepted; not used.")
    json_schema: Described = Field(
        alias="schema",
        description="JSON Schema of the answer. A keyword that cannot be enforced is a 422 that names it.",
        examples=[{"type": "object", "properties": {"revenue": {"type": "number"}}, "required": ["revenue"]}],
    )
    strict: bool | None = Field(default=None, description="Accepted; the schema is always enforced.")


class JsonSchemaFormat(RequestBody):
    """JSON that conforms to a schema."""

    type: Literal["json_schema"] = Field(description="Always `json_schema`.")
    json_schema: NamedSchema = Field(description="The schema and its name.")


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]
_TokenId = Annotated[int, Field(ge=0, lt=2**31)]
_Bias = Annotated[float, Field(ge=-100, le=100)]


class ChatCompletionRequest(SamplingFields):
    """OpenAI's chat completion request. An unsupported parameter is a 400 that names it, never ignored."""

    model: Id = Field(description="`footnote`, or `footnote:NAME` to ask one collection.", examples=["footnote"])
    messages: list[ChatMessage] = Field(
        min_length=1,
        max_length=1000,
        fail_fast=True,
        description="The last one is the question.",
        examples=[[{"role": "user", "content": "How did revenue develop?"}]],
    )
    stream: bool | None = Field(default=None, description="Stream the answer as server-sent events.")
    stream_options: StreamOptions | None = Field(default=None, description="Streaming options.")
    max_tokens: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Maximum number of tokens to generate."
    )
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000, description="The same as `max_tokens`.")
    presence_penalty: float | None = Field(
        default=None, ge=-2, le=2, description="Subtracted from the logits of tokens that are already in the answer."
    )
    frequency_penalty: float | None = Field(
        default=None,
        ge=-2,
        le=2,
        description="Subtracted from the logits of tokens, for each of their occurrences in the answer.",
    )
    logit_bias: dict[_TokenId, _Bias] | None = Field(
        default=None,
        max_length=1024,
        description="Added to the logits of tokens, by the generator's token id.",
        json_schema_extra={"propertyNames": {"pattern": "^[0-9]{1,9}$"}},
    )
    stop: _Stop | Annotated[list[Annotated[_Stop, Field(min_length=1)]], Field(max_length=4)] | None = Field(
        default=None, description="Up to four strings that end the answer."
    )
    logprobs: bool | None = Field(
        default=None,
        description="Return the log probability of every generated token, before footnotes are added; null when "
        "nothing was generated. A 400 in strict mode, and without a language model.",
    )
    top_logprobs: int | None = Field(
        default=None,
        ge=0,
        le=20,
        description="Also return this many of the most likely tokens at each position; needs `logprobs`.",
    )
    n: int | None = Field(
        default=None,
        ge=1,
        le=8,
        description="Number of answers to generate from the same sources, choice i with `seed` + i; `usage` is their "
        "sum, the prompt counted for each.",
    )
    response_format: ResponseFormat | None = Field(
        default=None,
        description="`text`, `json_object` or `json_schema`. A JSON answer has no footnotes; when the documents do not "
        "contain an answer, `content` is null and `refusal` is set.",
    )
    modalities: list[Literal["text"]] | None = Field(default=None, max_length=1, description="Only `text`.")
    tools: Annotated[list[_Unused], Field(max_length=1000, fail_fast=True)] | None = Field(
        default=None, description='Accepted and not used with `tool_choice: "none"`; 400 otherwise.'
    )
    tool_choice: Literal["none"] | None = Field(default=None, description="Only `none`.")
    functions: Annotated[list[_Unused], Field(max_length=1000, fail_fast=True)] | None = Field(
        default=None, description='Accepted and not used with `function_call: "none"`; 400 otherwise.'
    )
    function_call: Literal["none"] | None = Field(default=None, description="Only `none`.")
    parallel_tool_calls: bool | None = Field(default=None, description="Accepted; no tools are called.")
    store: Literal[False] | None = Field(default=None, description="Only false: completions are not stored.")
    service_tier: Literal["auto", "default"] | None = Field(default=None, description="There is one tier.")
    metadata: Annotated[dict[_Label, _Label], Field(max_length=16)] | None = Field(
        default=None, description="Accepted; not stored."
    )
    user: _Label | None = Field(default=None, description="Accepted; usage is recorded for the key.")
    safety_identifier: _Label | None = Field(default=None, description="Accepted; usage is recorded for the key.")
    prompt_cache_key: _Label | None = Field(
        default=None, description="Accepted; common prefixes of a tenant's prompts are always cached."
    )
    prompt_cache_retention: Literal["in_memory"] | None = Field(default=None, description="Only `in_memory`.")
    footnote: FootnoteOptions = Field(default_factory=FootnoteOptions, description="Footnote's own options.")

    @model_validator(mode="before")
    @classmethod
    def _unsupported(cls, data: object) -> object:
        return refuse_parameters(data) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if sum(len(message.text) for message in self.messages) > MOST_TEXT:
            raise ValueError(f"the messages have more than {MOST_TEXT} characters together")
        return self

    @model_validator(mode="after")
    def _asks_for_logprobs(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("top_logprobs needs logprobs to be true")
        return self

    def sampling_params(self) -> SamplingParams:
        """The engine's parameters, those of OpenAI's protocol included."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return replace(
            super().sampling_params(),
            presence_penalty=self.presence_penalty or 0.0,
            frequency_penalty=self.frequency_penalty or 0.0,
            logit_bias=tuple((self.logit_bias or {}).items()),
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
            stop=tuple(text for text in stop if text),
        )


class ChatCompletionBody(BaseModel):
    """OpenAI's chat completion, with `annotations` on the message."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="The request's id.", examples=["req_01k9"])
    object: Literal["chat.completion"] = Field(default="chat.completion", description="Always `chat.completion`.")
    created: int = Field(description="Unix seconds.")
    model: str = Field(description="The requested model.")
    system_fingerprint: str = Field(
        description="Changes with everything that can change a seeded answer: models, device, data type, release.",
        examples=["fp_0f3a51c2d4e6"],
    )
    choices: list[dict[str, Any]] = Field(
        description="`message.content`, `message.annotations` (file_citation objects with the citation's fields), "
        "`logprobs`, `finish_reason`; `n` of them."
    )
    usage: dict[str, Any] = Field(description="As in /v1/ask: exact counts of all choices, with components.")
