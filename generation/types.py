"""The data types of generation. Imports none of our modules, so any module may import it."""

from dataclasses import dataclass
from enum import StrEnum


class FinishReason(StrEnum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"
    REPETITION = "repetition"
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to choose the next token. The defaults are greedy and change nothing.

    Applied in this order: `logit_bias` and `allowed_tokens`, `repetition_penalty`,
    `presence_penalty` and `frequency_penalty`, `temperature`, `min_p`, `top_k`, `top_p`.

    Attributes:
        max_tokens: Most tokens generated, an end-of-sequence token included.
        temperature: 0 is greedy.
        min_p: A token needs at least this share of the best token's probability; 0 keeps all.
        top_k: How many of the best tokens stay; 0 keeps all.
        top_p: Share of the probability mass that stays; 1 keeps all.
        repetition_penalty: Divides (multiplies, if negative) the logits of tokens in prompt or output; 1 is off.
        presence_penalty: Subtracted from the logits of tokens that occur in the output.
        frequency_penalty: Subtracted once for every time a token occurs in the output.
        logit_bias: (token id, added to its logit) pairs, each id at most once.
        allowed_tokens: The only ids that may be chosen, end-of-sequence ids included only if named;
            None allows every id.
        logprobs: How many of the likeliest tokens to report beside the chosen one's log probability;
            None reports nothing.
        seed: Makes a sampled sequence reproducible whatever else is in the batch; None draws one.
        stop: Stop strings; they are not part of the returned text.
        ignore_eos: Go on after an end-of-sequence token.
        stop_repetition: End a text that goes round in a circle (`generation.repetition`).
    """

    max_tokens: int
    temperature: float = 0.0
    min_p: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    allowed_tokens: tuple[int, ...] | None = None
    logprobs: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    stop_repetition: bool = False

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not 0.0 <= self.temperature <= 100.0:  # also refuses NaN
            raise ValueError(f"temperature must be between 0 and 100, got {self.temperature}")
        if not 0.0 <= self.min_p < 1.0:
            raise ValueError(f"min_p must be at least 0 and below 1, got {self.min_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be at least 0, got {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        if not 0.01 <= self.repetition_penalty <= 100.0:  # nearer to 0 it overflows logits
            raise ValueError(f"repetition_penalty must be between 0.01 and 100, got {self.repetition_penalty}")
        if not -2.0 <= self.presence_penalty <= 2.0:
            raise ValueError(f"presence_penalty must be between -2 and 2, got {self.presence_penalty}")
        if not -2.0 <= self.frequency_penalty <= 2.0:
            raise ValueError(f"frequency_penalty must be between -2 and 2, got {self.frequency_penalty}")
        if self.logprobs is not None and not 0 <= self.logprobs <= 20:
            raise ValueError(f"logprobs must be between 0 and 20, got {self.logprobs}")
        self._check_token_ids()

    def _check_token_ids(self) -> None:
        """The ids' upper bound is the vocabulary's, which is not known here: ids beyond it name no token."""
        biased = [token for token, _ in self.logit_bias]
        if len(set(biased)) < len(biased):
            raise ValueError("logit_bias must name each token id at most once")
        if any(token < 0 for token in (*biased, *(self.allowed_tokens or ()))):
            raise ValueError("token ids must be at least 0")
        for _, bias in self.logit_bias:
            if not -100.0 <= bias <= 100.0:
                raise ValueError(f"logit_bias must be between -100 and 100, got {bias}")
        if self.allowed_tokens is not None and not self.allowed_tokens:
            raise ValueError("allowed_tokens must name at least one token id")


@dataclass(frozen=True, slots=True)
class CitationMarkers:
    """A constraint: a marker names one of the sources 1 to `sources` and stands behind words, and something is said."""

    sources: int


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A constraint: the output is one JSON document that satisfies `schema` (JSON text), then ends."""

    schema: str


Constraint = CitationMarkers | JsonSchema


@dataclass(frozen=True, slots=True)
class Abstention:
    """When to refuse: the model's probability of beginning the refusal decides, at the first position alone.

    Attributes:
        tokens: Token ids of the refusal's text, at least one.
        threshold: Above 0, at most 1: from this probability on the output is the refusal and ends, below it
            the output does not begin with the refusal's first token. None leaves it to the model.
    """

    tokens: tuple[int, ...]
    threshold: float | None = None

    def __post_init__(self) -> None:
        if not self.tokens:
            raise ValueError("a refusal is at least one token")
        if self.threshold is not None and not 0.0 < self.threshold <= 1.0:  # also refuses NaN
            raise ValueError(f"the threshold of abstention must be above 0 and at most 1, got {self.threshold}")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One sequence to generate.

    Attributes:
        id: Names the sequence in logs and to its observer.
        prompt: Token ids of the serving tokenizer, at least one.
        sampling: How tokens are chosen.
        salt: Prompts share cached keys and values only under the same salt: the tenant's id, set by
            the server, never by a caller.
        user: The user it belongs to: waiting users take turns.
        priority: Higher goes first; waiting long makes up for a low one.
        deadline_s: Seconds from submission after which it ends with what it has; None never.
        constraint: The form that the output must have.
        sources: (start, stop) spans of the prompt that hold the presented sources: where an answer
            is likely to be copied from.
        speculate: Whether tokens may be drafted and verified; the output is the same either way.
        abstention: The refusal to check at the first position; not together with `sampling.allowed_tokens`.
    """

    id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams
    salt: str = ""
    user: str = ""
    priority: int = 0
    deadline_s: float | None = None
    constraint: Constraint | None = None
    sources: tuple[tuple[int, int], ...] = ()
    speculate: bool = True
    abstention: Abstention | None = None

    def __post_init__(self) -> None:
        if self.abstention is not None and self.sampling.allowed_tokens is not None:
            raise ValueError("allowed_tokens would keep a refusal from being given")

    @property
    def turn(self) -> str:
        """The user that takes turns with others: tenant and user; tenants never share a turn."""
        return f"{self.salt}\0{self.user}"


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One generated token: natural logarithms of probabilities under the raw model output.

    Raw means float32 log-softmax of the model's own logits, before bias, penalties and temperature.
    `top` holds (token id, log probability) of the likeliest tokens, best first.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """Newly decoded text; concatenated deltas are the completion's text.

    `tokens` is how many new tokens it covers, `logprobs` one entry for each of them when asked for.
    """

    text: str
    tokens: int
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds: waiting for admission, submission to first token (None if none came), submission to end."""

    queue_ms: float
    first_token_ms: float | None
    total_ms: float


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of a sequence. `generated_tokens` are billed, an end-of-sequence token included.

    That is `len(token_ids)` unless a remote server sent a count without ids: then
    `reported_tokens` is its count, and `token_ids` is the text in our tokenizer's ids.
    `delivered_tokens` is how many of them the reader had taken when the sequence was settled.
    `prompt_tokens` is 0 when nothing of the prompt was read, as in the waiting line: it goes on no bill.
    `cached_tokens` of the prompt were not computed but found. `drafted_tokens` were proposed and
    `accepted_tokens` of them are in the output. `error` is a sentence when `finish_reason` is ERROR.
    `abstention` is the model's probability of beginning the refusal, in [0, 1]: None unless it was asked
    for, a first token was drawn, and the engine sees probabilities (a remote one does not).
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
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()
    reported_tokens: int | None = None
    abstention: float | None = None

    @property
    def generated_tokens(self) -> int:
        """How many tokens were generated: the number that is billed."""
        return len(self.token_ids) if self.reported_tokens is None else self.reported_tokens


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by upper bound in seconds (the last bound is infinite), and the sum of what was counted."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPath:
    """What computes the steps of an engine in this process.

    Attributes:
        layout: Of keys and values: "slabs", a contiguous one for each sequence, or "pages" that sequences share.
        kernels: What computes attention: "torch" or "triton".
        graphs: Whether a step that only decodes is replayed as one CUDA graph.
        speculation: Whether tokens are drafted for the sequences that begin now.
        slower: Sentences on why a faster path of this machine does not serve; empty where the fastest one does.
    """

    layout: str
    kernels: str
    graphs: bool
    speculation: bool
    slower: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot: sequences waiting and running now; totals since the first start of the engine.

    `prefill_tokens` were computed, `cached_tokens` of prompts were found instead, `decode_tokens`
    generated. Of sequences that have ended, `recomputed_tokens` were computed again after they had lost their room,
    and `unread_tokens` of prompts begun were not computed: `prompt_tokens` is what their bills add up to.
    Blocks are the cache's unit of `block_tokens` tokens and `block_bytes` bytes; free + used + cached is their number.
    `given_back_bytes` were cached and given back when memory was short. `path` is None where another server computes.
    """

    waiting: int
    running: int
    capacity: int
    prefill_tokens: int
    decode_tokens: int
    requests: int
    cancelled: int
    cached_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    preemptions: int = 0
    restarts: int = 0
    free_blocks: int = 0
    used_blocks: int = 0
    cached_blocks: int = 0
    block_tokens: int = 0
    block_bytes: int = 0
    given_back_bytes: int = 0
    first_token_s: Histogram | None = None
    inter_token_s: Histogram | None = None
    recomputed_tokens: int = 0
    unread_tokens: int = 0
    waiting_tokens: int = 0
    path: ServingPath | None = None

    @property
    def cache_bytes(self) -> int:
        """The most bytes that keys and values take."""
        return (self.free_blocks + self.used_blocks + self.cached_blocks) * self.block_bytes

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompts begun, each once, without those that were found when it began."""
        return self.prefill_tokens - self.recomputed_tokens + self.unread_tokens


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The loaded generator. `context_window` is in tokens, prompt and output together."""

    model: str
    revision: str
    context_window: int
    device: str
    dtype: str
