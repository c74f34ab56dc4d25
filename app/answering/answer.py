"""What answering yields: sources first, text as it comes, the whole answer last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.answering.citation import Citation
from app.types import Components
from app.usage.ledger.events import Bill
from generation.types import FinishReason, TokenLogprob
from retrieval.types import Context, Dropped, Hit, Source, Span


@dataclass(frozen=True, slots=True)
class SourceReport:
    """Chunk ids on their way from retrieval to citation, and what fell out where.

    `compressed` sources are not shown whole; of those in `summarised` the model read a summary of the rest.
    """

    retrieved: int
    presented: tuple[str, ...]
    cited: tuple[str, ...]
    compressed: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    summarised: tuple[str, ...] = ()

    @classmethod
    def of(cls, hits: Sequence[Hit], context: Context, *, summarised: tuple[str, ...] = ()) -> "SourceReport":
        """The report before anything is cited."""
        return cls(
            retrieved=len(hits),
            presented=tuple(source.hit.chunk.id for source in context.sources),
            cited=(),
            compressed=tuple(source.hit.chunk.id for source in context.sources if source.compressed),
            dropped=context.dropped,
            summarised=summarised,
        )


@dataclass(frozen=True, slots=True)
class SourcesFound:
    """What the model is about to read."""

    report: SourceReport
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer; joined they are `Answer.text`.

    `logprobs` are of the tokens generated until then and not told yet, where they were asked for: footnotes are
    set and text is held back between what is generated and what is shown.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of one answer; equal to its ledger rows. `by_document` sums to `components.context`.

    `summary_tokens` were read and generated to summarise what did not fit, `extract_tokens` by the embedder to
    choose what is quoted, `rewrite_tokens` read and generated to make the
    question stand alone, `verify_tokens` read to verify the answer, `locate_tokens` read to find where the
    sources answer. `bill` is None until the answer has ended, and where the ledger could not be read then.
    """

    components: Components
    completion_tokens: int
    cached_tokens: int
    by_document: Mapping[str, int]
    embedding_tokens: int
    rerank_tokens: int = 0
    summary_tokens: int = 0
    extract_tokens: int = 0
    rewrite_tokens: int = 0
    verify_tokens: int = 0
    locate_tokens: int = 0
    bill: Bill | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """How the context window is spent, in generator tokens."""

    context_window: int
    reserved_output: int
    prompt_tokens: int

    @property
    def headroom(self) -> int:
        """Tokens left unused."""
        return self.context_window - self.reserved_output - self.prompt_tokens


Stage = Literal["retrieval", "reader", "model", "verifier"]

_ENDED = {FinishReason.STOP.value, FinishReason.LENGTH.value}


@dataclass(frozen=True, slots=True)
class AbstentionReport:
    """Where answering was given up, and on what score.

    `stage` is None when it was not. `score` is compared with `threshold`: where nothing was read how much
    evidence was found, which must reach it; otherwise the probability that the sources hold no answer, the
    reader's, or the model's of refusing, which must stay below it. `score` is None where there is none (a remote
    model's), `threshold` where the model decides.
    """

    stage: Stage | None = None
    score: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer. `reason` says why `answered` is false; `error` is a sentence when generation failed.

    `standalone_question` is what the question was rewritten to, None where it stood alone as it was asked.
    `logprobs` are of every token generated, where they were asked for and anything was. `quoted` is what Footnote
    itself quoted from the sources, no model having written it.
    """

    id: str
    model: str
    answered: bool
    reason: str | None
    text: str
    finish_reason: str
    citations: tuple[Citation, ...]
    uncited: tuple[Span, ...]
    sources: SourceReport
    usage: TokenUsage
    budget: Budget
    timings_ms: Mapping[str, float | None]
    error: str | None = None
    abstention: AbstentionReport = AbstentionReport()
    conversation_id: str | None = None
    standalone_question: str | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    quoted: tuple[Span, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it came to its end: not to an error, a deadline or a cancellation."""
        return self.error is None and self.finish_reason in _ENDED
