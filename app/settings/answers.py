"""Answers: required evidence, sizes of prompt and answer, and the treatment of doubtful answers."""

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
        description="Probability of a refusal, estimated by the model before its first token: at or above the "
        "threshold it refuses, below it answers; model leaves the decision to the model.",
    )
    strict: bool = Field(
        default=False,
        description="Remove sentences from answers that no passage supports, unless the request sets strict to false.",
    )
    answers: Literal["auto", "quotes", "generated"] = Field(
        default="auto",
        description="What answers are: quotes from the documents, with the words that answer marked and leading, or "
        "text generated from the passages found; auto is quotes where the class of the generator is, and for a writer "
        "where they are sure of a question that a few words answer.",
    )
    model_class: Literal["auto", "quotes", "writer", "strong"] = Field(
        default="auto",
        description="How well the generator reads, which decides how it is asked: quotes (too badly: quotes answer), "
        "writer (one or two sentences from the likeliest passages, about 1.5 to 4 billion parameters) or strong "
        "(lists, tables and answers from several passages, about 7 billion parameters or more); auto is quotes for the "
        "default generator; any other is asked forty questions once, and quotes answer until it is known.",
    )
    unconfirmed: Literal["auto", "keep", "quote"] = Field(
        default="auto",
        description="What happens to answers of which nothing could be verified: keep leaves them as they are, quote, "
        "which is auto, appends quotes from the documents. With quote, the nearest quotes also replace a refusal by a "
        "writer or strong model.",
    )
    prompt_file: str = Field(
        default="", description="TOML file with your own wording of the prompt; missing keys keep the default."
    )
    max_context_tokens: int = Field(
        default=3000, ge=64, description="Default token budget of the sources in a prompt (generator tokens)."
    )
    highlight_tokens: int = Field(
        default=120,
        ge=0,
        description="Tokens of the prompt that repeat the most relevant sentences after the question; 0 is off.",
    )
    overflow: Literal["drop", "summarise"] = Field(
        default="drop",
        description="What happens to passages that exceed the token budget: dropped, or summarised by the "
        "generator, which takes time and is billed.",
    )
    history_tokens: int = Field(
        default=500,
        ge=0,
        le=1_000_000,
        description="Most tokens of earlier turns in the prompt of a question in a conversation (generator tokens).",
    )
    followup: Literal["rules", "model"] = Field(
        default="rules",
        description="How follow-up questions are rewritten to stand alone: by rules, or by the generator where "
        "the rules find something to rewrite, which takes time and is billed.",
    )
    max_output_tokens: int = Field(default=512, ge=1, description="Default limit of generated tokens per answer.")
