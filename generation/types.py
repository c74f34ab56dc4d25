"""The nouns of generation. Imports nothing of ours, so everyone may import it."""

from dataclasses import dataclass
from enum import StrEnum


class FinishReason(StrEnum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to choose the next token.

    `temperature` 0 is greedy. `top_k` 0 and `top_p` 1 keep every token. `seed` makes a sampled
    sequence reproducible whatever else is in the batch; `None` draws one. Stop strings are not
    part of the returned text.
    """

    max_tokens: int
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not 0.0 <= self.temperature <= 100.0:  # also refuses NaN
            raise ValueError(f"temperature must be between 0 and 100, got {self.temperature}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be at least 0, got {self.top_k}")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One sequence to generate. `prompt` holds token ids of the serving tokenizer, at least one."""

    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams


@dataclass(frozen=True, slots=True)
class Delta:
    """Newly decoded text; concatenated deltas are the completion's text. `tokens` is how many new tokens it covers."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds: waiting for admission, submission to first token (None if none came), submission to end."""

    queue_ms: float
    first_token_ms: float | None
    total_ms: float


@dataclass(frozen=True, slots=True)
class Completion:
    """How a sequence ended. `len(token_ids)` tokens were generated, an end-of-sequence token included.

    `delivered_tokens` is how many of them had been taken by the reader when the books were closed.
    `error` is a sentence when `finish_reason` is ERROR.
    """

    id: str
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    delivered_tokens: int
    timings: Timings
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot: sequences waiting and running now, token totals since start."""

    waiting: int
    running: int
    capacity: int
    prefill_tokens: int
    decode_tokens: int
    requests: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The loaded generator. `context_window` is in tokens, prompt and output together."""

    model: str
    revision: str
    context_window: int
    device: str
    dtype: str
