"""Token counts: their bodies and route."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from app.api.dependencies import ModelsDep
from app.api.schemas.bounds import MOST_TEXT
from app.api.schemas.shape import RequestBody, ResponseBody, problems


class TokenCountRequest(RequestBody):
    """A text to count the tokens of."""

    text: str = Field(max_length=MOST_TEXT, description="The text.", examples=["How did revenue develop?"])
    tokenizer: Literal["generator", "embedder"] = Field(
        default="generator", description="The tokenizer: the generator's, or the embedder's (with its special tokens)."
    )


class TokenCountBody(ResponseBody):
    """A token count."""

    object: Literal["token_count"] = Field(default="token_count", description="Always `token_count`.")
    model: str = Field(description="The model of the tokenizer.", examples=["SmolLM2-135M-Instruct"])
    tokens: int = Field(description="Number of tokens.", examples=[6])


router = APIRouter(tags=["tokens"])


@router.post("/v1/tokens/count", summary="Count tokens", responses=problems(422))
def count_tokens(body: TokenCountRequest, models: ModelsDep) -> TokenCountBody:
    """Count the tokens of a text with the tokenizer of the generator or the embedder."""
    if body.tokenizer == "embedder":
        return TokenCountBody(model=models.embedder.info.model, tokens=models.embedder.count_tokens(body.text))
    return TokenCountBody(model=models.engine.info.model, tokens=models.tokenizer.count(body.text))
