"""Which models are loaded, and where and in which precision they run."""

from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path
from pydantic import BaseModel, Field

DEFAULT_EMBEDDER = "all-MiniLM-L6-v2"
DEFAULT_GENERATOR = "SmolLM2-135M-Instruct"
EXTRACTIVE = "extractive"
"""The value of `generator` for which answers are quoted from the documents and no language model is loaded."""


class ModelSettings(BaseModel, frozen=True):
    """The embedder, the generator, the span reader, the judge, the reranker and the verifier.

    Example:
        >>> load_settings(generator="extractive").extractive
        True
    """

    models_dir: Path = Field(
        default_factory=lambda: user_cache_path("footnote") / "models",
        description="Folder `footnote models fetch` fills; may be shared by several installations.",
    )
    embedder: str = Field(
        default=DEFAULT_EMBEDDER,
        description="Embedding model: a default's name, a folder, or a Hugging Face id in the local cache.",
    )
    generator: str = Field(
        default=DEFAULT_GENERATOR,
        description="Generation model: a default's name, a folder, or a Hugging Face id in the local cache; extractive "
        "quotes the best sentences without a language model.",
    )
    adapter: str = Field(
        default="auto",
        description="LoRA adapter merged into the generator: auto (the one that comes with Footnote, where the "
        "generator is its base model and a reader points at answers), none, or a folder in peft's format.",
    )
    reader: str = Field(
        default="auto",
        description="Span reader that points at answers in the passages found: auto (the one that comes with Footnote, "
        "where the embedder is its base model), none, or a folder.",
    )
    judge: str = Field(
        default="auto",
        description="Judge that compares the likeliest quotes, a folder that `make judge` made; auto (the one that "
        "comes with Footnote, none so far) or none. It needs a reader, and the default generator on this machine.",
    )
    reranker: str = Field(
        default="",
        description="Cross-encoder that reorders the best hits: a folder or a Hugging Face id; empty is off.",
    )
    verifier: str = Field(
        default="",
        description="Cross-encoder that judges whether passages support an answer: a folder or a Hugging Face id; "
        "empty uses words and the embedder instead.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where the models run.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto",
        description="Precision of the models' weights; auto picks bfloat16 where the hardware has it; embedder, reader "
        "and cross-encoder only where it is also faster.",
    )
    embedder_dtype: Literal["auto", "float32", "bfloat16", "float16", "int8"] = Field(
        default="auto",
        description="Precision of the embedder alone; auto follows dtype, int8 needs a CPU with AVX512-VNNI "
        "and an index of its own.",
    )
    embedder_dimensions: int | None = Field(
        default=None,
        ge=8,
        description="Number of leading dimensions kept of each vector, for models trained for it (Matryoshka); "
        "needs an index of its own.",
    )
    weights: Literal["native", "int8", "int4"] = Field(
        default="native",
        description="Storage of the generator's weights: as dtype says, or quantised to integers, int8 on a CPU and "
        "int4 on a GPU.",
    )

    @property
    def extractive(self) -> bool:
        """Whether answers are quoted and no language model is loaded."""
        return self.generator == EXTRACTIVE
