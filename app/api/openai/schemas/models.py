"""Bodies of models, OpenAI-shaped."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import ResponseBody


class ModelBody(ResponseBody):
    """A model that can be asked, or the one that embeds."""

    id: str = Field(description="Pass as `model`.", examples=["footnote"])
    object: Literal["model"] = Field(default="model", description="Always `model`.")
    created: int = Field(description="Unix seconds.")
    owned_by: str = Field(default="footnote", description="Always `footnote`.")
    generator: str | None = Field(
        description="The language model behind it; null for the embedder.", examples=["SmolLM2-135M-Instruct"]
    )
    embedder: str = Field(description="The embedding model behind it.", examples=["all-MiniLM-L6-v2"])
    context_window: int = Field(description="Tokens of prompt and answer, or of one text to embed.", examples=[8192])
    dimensions: int | None = Field(default=None, description="Of the embedder's vectors; null for others.")


class ModelList(ResponseBody):
    """Models."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[ModelBody] = Field(description="`footnote`, one per collection, and the embedder.")
