"""Bodies of embeddings in OpenAI's protocol."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.api.schemas.bounds import LARGEST_INTEGER, MOST_TEXT, Id
from app.api.schemas.shape import RequestBody, ResponseBody

MAX_INPUTS = 2048
MAX_IDS = 8192
_TokenIds = Annotated[
    list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1, max_length=MAX_IDS, fail_fast=True)
]
_Label = Annotated[str, StringConstraints(max_length=512)]
_Text = Annotated[str, StringConstraints(max_length=MOST_TEXT)]


class EmbeddingOptions(RequestBody):
    """Footnote's own options."""

    input_type: Literal["document", "query"] = Field(
        default="document",
        description="The kind of text, for models that embed queries and documents differently; no effect on others.",
    )


class EmbeddingRequest(RequestBody):
    """OpenAI's embedding request."""

    input: (
        _Text
        | Annotated[list[_Text], Field(min_length=1, max_length=MAX_INPUTS, fail_fast=True)]
        | _TokenIds
        | Annotated[list[_TokenIds], Field(min_length=1, max_length=MAX_INPUTS, fail_fast=True)]
    ) = Field(
        description="A text, or up to 2048 texts, none empty or longer than the model's input; a 400 names the one "
        "that is. Lists of token ids are tokens of the model; a 400 when no text has these tokens.",
        examples=["Revenue rose 12 % in 2025."],
    )
    model: Id = Field(description="The embedder's name, or `footnote`.", examples=["all-MiniLM-L6-v2"])
    encoding_format: Literal["float", "base64"] | None = Field(
        default=None, description="`float`, the default, or `base64`: little-endian float32."
    )
    dimensions: int | None = Field(
        default=None, ge=1, le=LARGEST_INTEGER, description="Only the model's own number of dimensions."
    )
    user: _Label | None = Field(default=None, description="Accepted; usage is recorded for the key.")
    footnote: EmbeddingOptions = Field(default_factory=EmbeddingOptions, description="Footnote's own options.")


class EmbeddingBody(ResponseBody):
    """The vector of one text."""

    object: Literal["embedding"] = Field(default="embedding", description="Always `embedding`.")
    index: int = Field(description="Index of the input.", examples=[0])
    embedding: list[float] | str = Field(description="A unit vector, as numbers or base64.")


class EmbeddingUsage(ResponseBody):
    """Token usage; equal to the ledger's row of this request."""

    prompt_tokens: int = Field(
        description="Tokens that the embedder read, including special tokens and its own prompt."
    )
    total_tokens: int = Field(description="The same.")


class EmbeddingList(ResponseBody):
    """Vectors, in the order of the inputs."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[EmbeddingBody] = Field(description="One vector per input.")
    model: Id = Field(description="The embedder's name.", examples=["all-MiniLM-L6-v2"])
    usage: EmbeddingUsage = Field(description="Token usage.")
