"""Bodies of token counts."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from app.api.dependencies import ModelsDep
from app.api.schemas.shape import RequestBody, ResponseBody, problems


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


router = APIRouter(tags=["tokens"])


@router.post("/v1/tokens/count", summary="Count tokens", responses=problems(422))
def count_tokens(body: TokenCountRequest, models: ModelsDep) -> TokenCountBody:
    """How many tokens a text has, by the tokenizers that serve."""
    if body.tokenizer == "embedder":
        return TokenCountBody(model=models.embedder.info.model, tokens=models.embedder.count_tokens(body.text))
    return TokenCountBody(model=models.engine.info.model, tokens=models.tokenizer.count(body.text))
