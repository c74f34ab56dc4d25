"""How answers are made: evidence needed, sizes of prompt and answer, and what happens to doubtful answers."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field


class AnswerSettings(BaseModel, frozen=True):
    """Defaults of every answer; a request may change some of them."""

    rerank_candidates: int = Field(default=20, ge=2, le=1000, description="Hits the reranker reads per question.")
    min_evidence: float = Field(
        default=0.3,
        ge=-1.0,
        le=1.0,
        description="Score in [0, 1], of cosine similarity and shared words, that a passage must reach to count as "
        "evidence; below it no answer is generated.",
    )
    abstention_threshold: Literal["model"] | Annotated[float, Field(gt=0, le=1)] = Field(
        default="model",
        description="Probability of refusing, by the model's own reckoning before its first word, from which on it "
        "refuses and below which it answers; model leaves it to the model.",
    )
    strict: bool = Field(
        default=False, description="Leave out of answers what no passage is found to support, unless a request says no."
    )
    unconfirmed: Literal["auto", "keep", "quote"] = Field(
        default="auto",
        description="Answers of which nothing could be verified: keep them as they are, or quote what the documents "
        "say behind them; auto quotes where the generator is the default one.",
    )
    prompt_file: str = Field(
        default="", description="TOML file with your own wording of the prompt; what it leaves out stays."
    )
    max_context_tokens: int = Field(
        default=3000, ge=64, description="Default token budget of the sources in a prompt (generator tokens)."
    )
    highlight_tokens: int = Field(
        default=120,
        ge=0,
        description="Tokens of the context that repeat its most fitting sentences behind the question; 0 is off.",
    )
    overflow: Literal["drop", "summarise"] = Field(
        default="drop",
        description="What becomes of passages the token budget has no room for: left out, or summarised by the "
        "generator, which takes its time and is on the bill.",
    )
    history_tokens: int = Field(
        default=500,
        ge=0,
        le=1_000_000,
        description="Most tokens of earlier turns that a question in a conversation brings along (generator tokens).",
    )
    followup: Literal["rules", "model"] = Field(
        default="rules",
        description="What rewrites follow-up questions to stand alone: rules, or the generator where the rules find "
        "something to rewrite, which takes its time and is on the bill.",
    )
    max_output_tokens: int = Field(default=512, ge=1, description="Default limit of generated tokens per answer.")
