"""Bodies of embeddings, OpenAI-shaped."""

from typing import Annotated, Literal

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody

MAX_INPUTS = 2048
_TokenIds = Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1)]


class EmbeddingOptions(RequestBody):
    """Footnote's own options."""

    input_type: Literal["document", "query"] = Field(
        default="document",
        description="What the texts are, for models that embed questions otherwise than documents; for others it is "
        "the same.",
    )


class EmbeddingRequest(RequestBody):
    """OpenAI's embedding request."""

    input: (
        str
        | Annotated[list[str], Field(min_length=1, max_length=MAX_INPUTS)]
        | _TokenIds
        | Annotated[list[_TokenIds], Field(min_length=1, max_length=MAX_INPUTS)]
    ) = Field(
        description="A text or up to 2048 of them, none empty, none longer than the model reads: 400 names which "
        "is. Lists of token ids are read as the model's own tokens; 400 where they are not how it reads any text.",
        examples=["Revenue rose 12 % in 2025."],
    )
    model: str = Field(description="The embedder's name, or `footnote`.", examples=["all-MiniLM-L6-v2"])
    encoding_format: Literal["float", "base64"] | None = Field(
        default=None, description="`float`, the default, or `base64`: little-endian float32."
    )
    dimensions: int | None = Field(default=None, ge=1, description="Only as many as the model's vectors have.")
    user: str | None = Field(default=None, description="Accepted; the ledger goes by the key.")
    footnote: EmbeddingOptions = Field(default_factory=EmbeddingOptions, description="Footnote's own options.")


class EmbeddingBody(ResponseBody):
    """One text's vector."""

    object: Literal["embedding"] = Field(default="embedding", description="Always `embedding`.")
    index: int = Field(description="Which input's.", examples=[0])
    embedding: list[float] | str = Field(description="A unit vector: numbers, or base64.")


class EmbeddingUsage(ResponseBody):
    """The bill; equal to the ledger's row of this request."""

    prompt_tokens: int = Field(description="Tokens the embedder read, special ones and its own prompt included.")
    total_tokens: int = Field(description="The same.")


class EmbeddingList(ResponseBody):
    """Vectors, in the order of the inputs."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[EmbeddingBody] = Field(description="One an input.")
    model: str = Field(description="The embedder's name.", examples=["all-MiniLM-L6-v2"])
    usage: EmbeddingUsage = Field(description="What it cost.")
