"""Bodies of the OpenAI-shaped routes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.api.schemas.search import FILTER
from app.api.schemas.shape import RequestBody, ResponseBody


class TextPart(RequestBody):
    """A part of a message."""

    type: Literal["text"] = Field(description="Only text is read.")
    text: str = Field(description="The text.")


class ChatMessage(RequestBody):
    """A turn of the conversation."""

    role: Literal["system", "developer", "user", "assistant"] = Field(description="Who speaks.")
    content: str | list[TextPart] = Field(description="What is said.", examples=["How did revenue develop?"])
    name: str | None = Field(default=None, description="Accepted; not used.")

    @property
    def text(self) -> str:
        """The content as one string."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class StreamOptions(RequestBody):
    """How to stream."""

    include_usage: bool = Field(default=False, description="Send a last chunk with the usage.")
    include_obfuscation: bool = Field(default=False, description="Accepted; nothing is padded.")


class FootnoteOptions(RequestBody):
    """Footnote's own options."""

    collection_ids: list[str] | None = Field(default=None, max_length=1000, description="Only these collections.")
    document_ids: list[str] | None = Field(default=None, max_length=10_000, description="Only these documents.")
    filter: dict[str, object] | None = Field(default=None, description=FILTER)
    top_k: int = Field(default=8, ge=1, le=200, description="Chunks to retrieve.")
    max_context_tokens: int | None = Field(default=None, ge=1, description="Most tokens of sources.")


class TextFormat(RequestBody):
    """Prose with footnotes."""

    type: Literal["text"] = Field(description="Always `text`.")


class JsonObjectFormat(RequestBody):
    """Any JSON object."""

    type: Literal["json_object"] = Field(description="Always `json_object`.")


class NamedSchema(RequestBody):
    """A JSON Schema with a name."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$", description="Accepted; not used.", examples=["revenue"])
    description: str | None = Field(default=None, max_length=10_000, description="Accepted; not used.")
    json_schema: dict[str, object] = Field(
        alias="schema",
        description="What the answer satisfies. A keyword that cannot be enforced is a 422 that names it.",
        examples=[{"type": "object", "properties": {"revenue": {"type": "number"}}, "required": ["revenue"]}],
    )
    strict: bool | None = Field(default=None, description="Accepted; the schema is always enforced.")


class JsonSchemaFormat(RequestBody):
    """JSON that satisfies a schema."""

    type: Literal["json_schema"] = Field(description="Always `json_schema`.")
    json_schema: NamedSchema = Field(description="The schema and its name.")


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]


class ChatCompletionRequest(RequestBody):
    """OpenAI's chat completion request. A parameter that is not listed here is a 400 that names it."""

    model: str = Field(description="`footnote`, or `footnote:NAME` to ask one collection.", examples=["footnote"])
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000, description="The last one is the question.")
    stream: bool = Field(default=False, description="Answer as server-sent events.")
    stream_options: StreamOptions | None = Field(default=None, description="How to stream.")
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000, description="Most tokens to generate.")
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000, description="The same, newer name.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Default 0: greedy and reproducible.")
    top_p: float | None = Field(default=None, gt=0, le=1, description="Nucleus sampling.")
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63, description="Makes a sampled answer reproducible.")
    stop: str | Annotated[list[Annotated[str, StringConstraints(min_length=1)]], Field(max_length=4)] | None = Field(
        default=None, description="Up to four strings that end the answer."
    )
    response_format: ResponseFormat | None = Field(
        default=None,
        description="`text`, `json_object` or `json_schema`. A JSON answer has no footnotes; where the documents hold "
        "none, `content` is null and `refusal` says so.",
    )
    n: Literal[1] | None = Field(default=None, description="One choice is made; other values are refused.")
    user: str | None = Field(default=None, description="Accepted; the ledger goes by the key.")
    footnote: FootnoteOptions = Field(default_factory=FootnoteOptions, description="Footnote's own options.")


class ModelBody(ResponseBody):
    """A model that can be asked."""

    id: str = Field(description="Pass as `model`.", examples=["footnote"])
    object: Literal["model"] = Field(default="model", description="Always `model`.")
    created: int = Field(description="Unix seconds.")
    owned_by: str = Field(default="footnote", description="Always `footnote`.")
    generator: str = Field(description="The language model behind it.", examples=["SmolLM2-135M-Instruct"])
    embedder: str = Field(description="The embedding model behind it.", examples=["all-MiniLM-L6-v2"])
    context_window: int = Field(description="Tokens of prompt and answer together.", examples=[8192])


class ModelList(ResponseBody):
    """Models that can be asked."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[ModelBody] = Field(description="`footnote`, and one per collection.")


class ChatCompletionBody(BaseModel):
    """OpenAI's chat completion, with `annotations` on the message."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="The request's id.", examples=["req_01k9"])
    object: Literal["chat.completion"] = Field(default="chat.completion", description="Always `chat.completion`.")
    created: int = Field(description="Unix seconds.")
    model: str = Field(description="The model that was asked.")
    choices: list[dict[str, Any]] = Field(
        description="One choice: `message.content`, `message.annotations` (file_citation objects with the "
        "citation's fields), `finish_reason`."
    )
    usage: dict[str, Any] = Field(description="As in /v1/ask: true counts, components included.")


class TokenCountRequest(RequestBody):
    """What to count."""

    text: str = Field(description="The text.", examples=["How did revenue develop?"])
    tokenizer: Literal["generator", "embedder"] = Field(
        default="generator", description="By the generator's tokenizer, or the embedder's (special tokens included)."
    )


class TokenCountBody(ResponseBody):
    """A count."""

    object: Literal["token_count"] = Field(default="token_count", description="Always `token_count`.")
    model: str = Field(description="Whose tokens.", examples=["SmolLM2-135M-Instruct"])
    tokens: int = Field(description="How many.", examples=[6])
