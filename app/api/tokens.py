"""The route of counting tokens."""

from fastapi import APIRouter

from app.api.dependencies import ModelsDep
from app.api.schemas.shape import problems
from app.api.schemas.tokens import TokenCountBody, TokenCountRequest

router = APIRouter(tags=["tokens"])


@router.post("/v1/tokens/count", summary="Count tokens", responses=problems(422))
def count_tokens(body: TokenCountRequest, models: ModelsDep) -> TokenCountBody:
    """How many tokens a text has, by the tokenizers that serve."""
    if body.tokenizer == "embedder":
        return TokenCountBody(model=models.embedder.info.model, tokens=models.embedder.count_tokens(body.text))
    return TokenCountBody(model=models.engine.info.model, tokens=models.tokenizer.count(body.text))
