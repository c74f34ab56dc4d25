"""Bodies of token counts."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody


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
