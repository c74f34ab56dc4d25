"""A question ready to be answered: its sources, its prompt, the cost of finding them, and the generating call."""

from dataclasses import dataclass, field, replace
from typing import Protocol

from app.answering.answer import AbstentionReport, Budget, SourceReport
from app.answering.citation import Pages
from app.answering.metering.meter import Meter
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.answering.quoting.quotes import Selection
from generation.ports import Stream
from retrieval.types import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationCost:
    """The milliseconds before generation; `started` is the `time.perf_counter` second it began."""

    started: float
    retrieve_ms: float
    rerank_ms: float = 0.0


class Rest(Protocol):
    """What is still being prepared of an answer whose sources are known."""

    async def whole(self) -> "Prepared":
        """The whole answer, or a cancelled one."""
        ...

    def close(self) -> None:
        """Stop: nobody waits for the answer any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question that was accepted, with all that its answer is made from.

    `meter` has its model calls. `stream` is what the engine generates, None where no model does: no evidence, a dry
    run, sources that hold no answer, or an answer by quotes (`by_quotes`). `selection` are the quotes and the
    probability that the question is answered; None where nothing was selected. `evidence` is the score of the hits.
    `abstention_threshold` is the probability of a refusal from which on the engine refuses; None leaves that to the
    model. `reply` is the answer to a question that is not about content (`app.answering.understanding`). `note` goes
    with a refusal and with nearest passages, "" for none (`app.answering.languages.other_language`). `cancelled` says
    that it was cancelled before a model answered or quotes were selected. `rest` has the whole answer where only its
    sources are known yet (`app.answering.preparation`).
    """

    question: Question
    meter: Meter
    context: Context
    prompt: Prompt
    report: SourceReport
    budget: Budget
    cost: PreparationCost
    evidence: AbstentionReport = field(default_factory=AbstentionReport)
    pages: Pages = field(default_factory=dict)
    selection: Selection | None = None
    by_quotes: bool = False
    stream: Stream | None = None
    abstention_threshold: float | None = None
    reply: str | None = None
    note: str = ""
    cancelled: bool = False
    rest: Rest | None = None

    @classmethod
    def replied(cls, question: Question, reply: str, *, started: float, meter: Meter) -> "Prepared":
        """A question with a reply that needs no search; `started` as in `PreparationCost`."""
        nothing = Context(sources=(), dropped=(), tokens=0)
        return cls(
            question=question,
            meter=meter,
            context=nothing,
            prompt=Prompt(()),
            report=SourceReport.of((), nothing),
            budget=Budget(context_window=0, reserved_output=0, prompt_tokens=0),
            cost=PreparationCost(started=started, retrieve_ms=0.0),
            reply=reply,
        )

    @property
    def generates(self) -> bool:
        """Whether a language model generates the answer."""
        return self.stream is not None

    @property
    def quotes(self) -> bool:
        """Whether the answer consists of quotes, without a language model."""
        return not self.cancelled and self.by_quotes and self.selection is not None and bool(self.selection.quotes)

    def close(self) -> None:
        """Stop preparing or generating, as the client's abort, or as the server's where the deadline has passed."""
        if self.rest is not None:
            self.rest.close()
        self.meter.close()

    def again(self, choice: int) -> "Prepared":
        """A further answer from the same sources, not yet handed to the engine; the first one paid for the sources."""
        question = self.question.again(choice)
        return replace(self, question=question, meter=self.meter.again(question), stream=None)
