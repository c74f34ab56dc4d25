"""The last state of an answer before it is reported."""

from dataclasses import dataclass, field, replace
from functools import partial

from app.answering.answers.answer import AbstentionReport
from app.answering.answers.parts import AnyPart, CitedConflict, ClarifyPart, JsonPart, Reason, of_kind
from app.answering.citing.citation import Citation
from app.answering.prompt import Prompt
from app.answering.question import Question
from generation.types import Completion


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How an answer ended: its text and footnotes, or why there is none.

    Attributes:
        reason: Why the question is not answered, None for an answer.
        abstention: The stage that refused, with its score and threshold.
        text: The whole text.
        finish_reason: `Answer.finish_reason`.
        citations: The footnotes, in the order of their markers.
        parts: Of `text`, in order, without their citations.
        conflicts: The footnotes that disagree.
        probability: The probability in [0, 1] that the question is answered, None where nothing estimated it.
        prompt: What the language model read or, after a dry run, would have read; empty where none was to be called.
        model: The language model of the prompt, "" without one.
        completion: How its generation ended; None where it was not called.
        error: A sentence where generation failed.
    """

    reason: Reason | None
    abstention: AbstentionReport = field(default_factory=AbstentionReport)
    text: str = ""
    finish_reason: str = "stop"
    citations: tuple[Citation, ...] = ()
    parts: tuple[AnyPart, ...] = ()
    conflicts: tuple[CitedConflict, ...] = ()
    probability: float | None = None
    prompt: Prompt = field(default_factory=partial(Prompt, ()))
    model: str = ""
    completion: Completion | None = None
    error: str | None = None

    def in_form(self, question: Question) -> "Finished":
        """The same with a text by Footnote in the form that is asked for: in JSON it is one part."""
        text = question.in_form(self.text)
        if text == self.text:
            return self
        part = ClarifyPart if of_kind(self.parts, ClarifyPart) else JsonPart
        return replace(self, text=text, parts=(part(start_char=0, end_char=len(text)),))

    @classmethod
    def cancelled(cls) -> "Finished":
        """The end of an answer that was cancelled before a model wrote or quotes were selected."""
        return cls(reason=Reason.CANCELLED, finish_reason="cancelled")
