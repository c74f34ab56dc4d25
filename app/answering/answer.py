"""The events of an answer: its sources first, its text while it is generated, the whole answer last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.answering.citing.citation import Citation
from app.answering.metering.token_usage import TokenUsage
from generation.types import FinishReason, TokenLogprob
from retrieval.types import Context, Dropped, Hit, Source, Span


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The chunk ids that were retrieved, presented, cited and dropped.

    `compressed` sources are shown in part; for those in `summarised` the model read a summary of the rest.
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
    """The first event of an answer: the sources that the model will read."""

    report: SourceReport
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text; joined, the pieces are `Answer.text`.

    `logprobs` belong to the tokens generated since the last piece, where the client asked for them. They need not
    cover `text`: footnotes are added, and text is held back, between generation and display.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """The use of the context window, in tokens of the language model."""

    context_window: int
    reserved_output: int
    prompt_tokens: int

    @property
    def headroom(self) -> int:
        """Tokens left unused."""
        return self.context_window - self.reserved_output - self.prompt_tokens


@dataclass(frozen=True, slots=True)
class QuotedSpan:
    """Characters `[start_char, end_char)` of the answer that are quoted word for word from a document.

    Attributes:
        start_char: The first character.
        end_char: The end.
        answers: The probability in [0, 1] that the quote answers the question; None in answers stored before it was
            estimated.
        highlights: The characters of the answer, inside the span, that answer.
    """

    start_char: int
    end_char: int
    answers: float | None = None
    highlights: tuple[Span, ...] = ()

    def moved(self, by: int) -> "QuotedSpan":
        """The span `by` characters further on."""
        marked = tuple(Span(one.start_char + by, one.end_char + by) for one in self.highlights)
        return QuotedSpan(self.start_char + by, self.end_char + by, self.answers, marked)


Stage = Literal["retrieval", "reader", "model", "verifier"]

REFUSED = frozenset({"no_evidence", "not_in_sources", "not_verified"})
"""The reasons (`Answer.reason`) of refusals; the others: "unsure", whose text quotes, dry runs and failures."""

_ENDED = {FinishReason.STOP.value, FinishReason.LENGTH.value}


@dataclass(frozen=True, slots=True)
class AbstentionReport:
    """The stage that refused the answer, with its score and threshold.

    `stage` is None without a refusal. In stage "retrieval" `score` is the amount of
    evidence, which must reach `threshold`. Else it is the probability that the sources hold no answer, by the
    selection of quotes or by the model, which must be below `threshold`. `score` is None where none is known (a remote
    model), `threshold` where the model decides.
    """

    stage: Stage | None = None
    score: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer. `reason` says why `answered` is false; `error` is a sentence when generation failed.

    `model` is the language model that wrote the text, else the model that chose the quotes, read for them or searched,
    "" where no model was called. `standalone_question` is the rewritten question, None where no rewriting was needed.
    `logprobs` are of every generated token, where they were requested. `quoted` are the spans that Footnote
    quoted from the sources without a model, likeliest first. `answers` is the probability in [0, 1] that the question
    is answered, None where nothing estimated it. `lead` are the words at the beginning that answer it, without their
    marker, where a few words do.
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
    quoted: tuple[QuotedSpan, ...] = ()
    answers: float | None = None
    lead: Span | None = None

    @property
    def whole(self) -> bool:
        """Whether it is complete: ended by no error, deadline or cancellation."""
        return self.error is None and self.finish_reason in _ENDED
