"""The port of what answers: quotes, a language model, or what is made of both."""

from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from app.answering.answers.answer import QuotesFound, TextDelta
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.states.finished import Finished
from app.answering.states.sources import Grounding, TokenBudget
from app.errors import InvalidRequest, UnsupportedParameter


class Writing(Protocol):
    """An answer that a language model has begun to write."""

    @property
    def quotes(self) -> QuotesFound | None:
        """The answer by quotes, shown until the model has written; None without one."""
        ...

    def events(self) -> AsyncGenerator[TextDelta | Finished, None]:
        """Yield the text while it is written, then how it ended. Read once.

        A piece without text has log probabilities alone, of tokens that show nothing.
        """
        ...

    def again(self, question: Question, meter: Meter) -> "Writing":
        """Another answer from the same sources, begun now; `question` is a further choice, `meter` its own.

        Raises:
            EngineFull, EngineStopped, BudgetExceeded, StoreUnavailable, DeadlinePassed: It was not begun.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of an answer, which a model is about to read: its call is on the ledger.

    `final` says whether they may be shown, since the answer can be refused no more.
    """

    grounding: Grounding
    final: bool


Beginning: TypeAlias = Generator[Sources, None, Finished | Writing]
"""Begins an answer: yields the sources at most once, before a model reads them; returns the answer."""


class Strategy(Protocol):
    """A way to answer. One instance serves every request. Each method blocks."""

    def admit(self, question: Question) -> None:
        """Check before any work that it can answer a question now.

        Raises:
            InvalidRequest, UnsupportedParameter: It cannot answer such a question.
            EngineFull: It has too much to do.
        """
        ...

    def budget(self, question: Question) -> TokenBudget:
        """The room for a question that was understood.

        Raises:
            ContextLengthExceeded: There is none.
        """
        ...

    def begin(self, grounding: Grounding, meter: Meter) -> Beginning:
        """Begin the answer.

        Where the meter is closed meanwhile, the result is a cancelled answer.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: A model's call was not reserved, and not made.
            ConstraintInvalid, DeadlinePassed, EngineFull, EngineStopped: It was not begun.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An answer that has begun: all of it, or what writes it.

    Attributes:
        question: As it was understood.
        grounding: Its sources; None for a reply, for which nothing was searched.
        answer: The answer.
        meter: Its model calls.
    """

    question: Question
    grounding: Grounding | None
    answer: Finished | Writing
    meter: Meter

    @property
    def has_content(self) -> bool:
        """Whether a language model writes it, or it cites documents; a refusal, a reply and a dry run have none."""
        return not isinstance(self.answer, Finished) or bool(self.answer.citations)


def first_fit(strategies: Sequence[Strategy], question: Question) -> Strategy:
    """The first strategy that can answer a question; there is at least one.

    Raises:
        InvalidRequest, UnsupportedParameter: None can; what the last one said.
        EngineFull: The one that can has too much to do.
    """
    *others, last = strategies
    for strategy in others:
        try:
            strategy.admit(question)
        except (InvalidRequest, UnsupportedParameter):
            continue
        return strategy
    last.admit(question)
    return last
