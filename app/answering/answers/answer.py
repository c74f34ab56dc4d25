"""The events of an answer: its sources first, its text while it is generated, the whole answer last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from app.answering.answers.parts import AnyPart, CitedConflict, LeadPart, ProsePart, QuotePart, Reason, of_kind
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
class QuotesFound:
    """The answer by quotes, told while a language model words its own; it is no part of that answer.

    `reason` says why the quotes may not answer; `probability` estimates, in [0, 1], that they do.
    """

    text: str
    citations: tuple[Citation, ...]
    parts: tuple[AnyPart, ...]
    reason: Reason | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text; joined, the pieces are `Answer.text`.

    `logprobs` belong to the tokens generated since the last piece, where the client asked for them. They need not
    cover `text`: footnotes are added, and text is held back, between generation and display. `part` is the number of
    the part that a model is writing; None for text that comes whole, of which the answer tells the parts. `citations`
    are those that are new since the last piece; their markers may be in earlier text. What the answer tells of them
    later, as `answers`, they do not have yet, and citations of the rest come with the answer alone.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()
    part: int | None = None
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowUse:
    """The use of the context window, in tokens of the language model."""

    context_window: int
    reserved_output: int
    prompt_tokens: int

    @property
    def headroom(self) -> int:
        """Tokens left unused."""
        return self.context_window - self.reserved_output - self.prompt_tokens


Stage = Literal["retrieval", "reader", "model", "verifier"]

_ENDED = {FinishReason.STOP.value, FinishReason.LENGTH.value, FinishReason.REPETITION.value}


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


class WordsState(StrEnum):
    """What became of the text that a language model writes as an answer.

    Attributes:
        NONE: It wrote none.
        WAITING: It has not written any yet, and quotes are shown meanwhile.
        SHOWN: The answer has it.
        WITHHELD: The answer has something else in its place.
    """

    NONE = "none"
    WAITING = "waiting"
    SHOWN = "shown"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class Words:
    """A language model's words: their state, and why they were withheld."""

    state: WordsState
    reason: Reason | None = None

    @classmethod
    def of(cls, usage: TokenUsage, abstention: AbstentionReport, reason: Reason | None) -> "Words":
        """What became of them by the end of an answer.

        A refusal is withheld where quotes are shown instead as the nearest passages, and sentences where none of them
        could be verified.
        """
        if not usage.answer_tokens:
            return cls(WordsState.NONE)
        if abstention.stage == "verifier":
            return cls(WordsState.WITHHELD, Reason.NOT_VERIFIED)
        if abstention.stage == "model" and reason is Reason.UNSURE:
            return cls(WordsState.WITHHELD, Reason.NOT_IN_SOURCES)
        return cls(WordsState.SHOWN)


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer.

    `reason` says why the question is not answered, None where it is; `error` is a sentence when generation failed.
    `model` is the language model that wrote the text, else the model that chose the quotes, read for them or
    searched, "" where no model was called. `standalone_question` is the rewritten question, None where no rewriting
    was needed. `logprobs` are of every generated token, where they were requested. `parts` are those of `text`, in
    order. `probability` estimates, in [0, 1], that the question is answered; None where nothing did. `conflicts` are
    the footnotes that disagree.
    """

    id: str
    model: str
    reason: Reason | None
    text: str
    finish_reason: str
    citations: tuple[Citation, ...]
    parts: tuple[AnyPart, ...]
    sources: SourceReport
    usage: TokenUsage
    budget: WindowUse
    timings_ms: Mapping[str, float | None]
    error: str | None = None
    abstention: AbstentionReport = AbstentionReport()
    conversation_id: str | None = None
    standalone_question: str | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    probability: float | None = None
    conflicts: tuple[CitedConflict, ...] = ()

    @property
    def quotes(self) -> tuple[QuotePart, ...]:
        """What Footnote quotes from the sources, likeliest first."""
        return tuple(of_kind(self.parts, QuotePart))

    @property
    def lead(self) -> Span | None:
        """The words at the beginning that answer, without their marker, where a few words do."""
        return next((part.words for part in of_kind(self.parts, LeadPart)), None)

    @property
    def words(self) -> Words:
        """What became of a language model's words."""
        return Words.of(self.usage, self.abstention, self.reason)

    @property
    def uncited(self) -> tuple[Span, ...]:
        """The sentences that no source supports."""
        return tuple(span for part in of_kind(self.parts, ProsePart) for span in part.uncited)

    @property
    def whole(self) -> bool:
        """Whether it is complete: ended by no error, deadline or cancellation."""
        return self.error is None and self.finish_reason in _ENDED
