"""The last state of an answer before it is reported."""

from dataclasses import dataclass, field
from functools import partial

from app.answering.answer import AbstentionReport, QuotedSpan
from app.answering.citing.citation import Citation
from app.answering.prompt import Prompt
from generation.types import Completion
from retrieval.types import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How an answer ended: its text and footnotes, or why there is none.

    Attributes:
        reason: `Answer.reason`, None for an answer.
        abstention: The stage that refused, with its score and threshold.
        text: The whole text.
        finish_reason: `Answer.finish_reason`.
        citations: The footnotes, in the order of their markers.
        uncited: The characters of `text` that no footnote supports.
        quoted: The quotes in `text`, likeliest first.
        lead: The words of `text` that lead it.
        answers: The probability in [0, 1] that the question is answered, None where nothing estimated it.
        prompt: What the language model read or, after a dry run, would have read; empty where none was to be called.
        model: The language model of the prompt, "" without one.
        completion: How its generation ended; None where it was not called.
        error: A sentence where generation failed.
    """

    reason: str | None
    abstention: AbstentionReport = field(default_factory=AbstentionReport)
    text: str = ""
    finish_reason: str = "stop"
    citations: tuple[Citation, ...] = ()
    uncited: tuple[Span, ...] = ()
    quoted: tuple[QuotedSpan, ...] = ()
    lead: Span | None = None
    answers: float | None = None
    prompt: Prompt = field(default_factory=partial(Prompt, ()))
    model: str = ""
    completion: Completion | None = None
    error: str | None = None

    @classmethod
    def cancelled(cls) -> "Finished":
        """The end of an answer that was cancelled before a model wrote or quotes were selected."""
        return cls(reason="cancelled", finish_reason="cancelled")
