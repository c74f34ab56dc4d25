"""The answering use case: understand → retrieve → fit → answer with quotes, or with a language model → close.

An answer begins in a worker thread (`begin`), in typed states: `Question` → `Retrieved` → `Grounding` → what writes it,
or its end. Everything that refuses with a status is raised before a byte is streamed; `OpenAnswer` has its events.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from app.answering.answers.answer import AbstentionReport
from app.answering.answers.parts import ClarifyPart, Reason, ReplyPart
from app.answering.closing import Closing
from app.answering.fitting import Fitting
from app.answering.metering.meter import CallsClosed, Meter, Meters
from app.answering.question import Question
from app.answering.quoting.strategy import Quoting
from app.answering.retrieving.finder import SearchedPassages
from app.answering.retrieving.retriever import Retriever
from app.answering.running.open_answer import OpenAnswer, Steps
from app.answering.running.registry import RunningAnswers
from app.answering.states.finished import Finished
from app.answering.states.reading import Selection
from app.answering.states.strategy import Begun, Strategy, first_fit
from app.answering.understanding.understanding import Reply, Understanding
from app.telemetry.timing import timed
from app.usage.ledger.events import Bill
from retrieval.memo import Memo
from retrieval.types import Context

Unless: TypeAlias = Callable[[Context], bool]
"""Whether a question is not to be answered, by its sources: they are known, and so is the answer."""


class Answerer:
    """Answers questions from documents. One instance serves every request. `running` cancels answers.

    >>> answer = await answerer.open(question).whole()
    >>> answer.text, answer.citations[0].cited_text
    """

    def __init__(
        self,
        *,
        understanding: Understanding,
        retriever: Retriever,
        fitting: Fitting,
        strategies: Callable[[], Sequence[Strategy]],
        quoting: Quoting,
        meters: Meters,
        closing: Closing,
        memo: Memo,
    ) -> None:
        """Choose what answers.

        The first of `strategies` that can answer a question then does (`first_fit`). `quoting` selects quotes for
        `selection`, whatever answers. `memo` caches computations on texts.
        """
        self.running = RunningAnswers()
        self.meters = meters
        self._understanding = understanding
        self._retriever = retriever
        self._fitting = fitting
        self._strategies = strategies
        self._quoting = quoting
        self._closing = closing
        self._memo = memo

    def over(
        self,
        *,
        understanding: Understanding,
        retriever: Retriever,
        fitting: Fitting,
        meters: Meters,
        closing: Closing,
    ) -> "Answerer":
        """The same ways to answer over other documents; its answers are cancelled by this one's `running`."""
        other = Answerer(
            understanding=understanding,
            retriever=retriever,
            fitting=fitting,
            strategies=self._strategies,
            quoting=self._quoting,
            meters=meters,
            closing=closing,
            memo=Memo(),  # what is computed of their texts is forgotten with them
        )
        other.running = self.running
        return other

    def open(self, question: Question, *, meter: Meter | None = None, unless: Unless | None = None) -> OpenAnswer:
        """Begin to answer in a worker thread; `meter` is the question's. Called on the event loop.

        Where `unless` says so of the sources, nothing answers: no model reads them, and the answer is that of a dry
        run.
        """
        meter = meter or self.meters.of(question)
        return self._opened(question, meter, self.begin(question, meter, unless=unless))

    async def begun(self, question: Question) -> OpenAnswer:
        """An answer that has begun; raises as `OpenAnswer.begun`, and then leaves nothing running."""
        answer = self.open(question)
        await answer.begun()
        return answer

    async def choices(self, question: Question, n: int) -> tuple[OpenAnswer, ...]:
        """`n` answers from the same sources, all ready to be written; each is generated and billed by itself.

        Raises:
            EngineFull, EngineStopped, BudgetExceeded, StoreUnavailable, DeadlinePassed: One was refused; those that
                were accepted, the first included, are stopped. Else as `OpenAnswer.begun`.
        """
        opened = [self.open(question)]
        try:
            first = await opened[0].ready()
            for choice in range(1, n):
                asked = first.question.again(choice)
                meter = first.meter.again(asked)
                opened.append(self._opened(asked, meter, _again(first, asked, meter)))
                await opened[-1].ready()
        except BaseException:
            for answer in opened:
                answer.close()
            raise
        return tuple(opened)

    def begin(self, question: Question, meter: Meter, *, unless: Unless | None = None) -> Steps:
        """The steps by which an answer begins, to be taken in one thread; they block. Raise as `OpenAnswer.begun`.

        Once the meter is closed no further model is called, and the answer is a cancelled one.
        """
        try:
            with self._memo.of(question.principal.tenant_id):
                return (yield from self._begin(question, meter, unless))
        except BaseException:
            self._closing.left(question)
            raise

    def bill(self, request_id: str) -> Bill | None:
        """What a request has cost so far, None where the ledger cannot be read now."""
        return self._closing.bill(request_id)

    def selection(self, question: Question, /, *, meter: Meter) -> Selection | None:
        """The quotes that a question would be answered with; nothing is generated. Blocks.

        None where it gets a reply without a search, or finds no sources.

        Raises:
            BudgetExceeded, StoreUnavailable: A model's call was not reserved, and not made.
            ContextLengthExceeded: The question alone is too long.
        """
        if self._understanding.at_once(question) is not None:
            return None
        with self._memo.of(question.principal.tenant_id), self.running.during(question, meter):
            retrieved = self._retriever.retrieve(question, meter)
            grounding = self._fitting.fit(question, retrieved, self._quoting.budget(question), meter)
            return self._quoting.selection(grounding, meter) if grounding.context.sources else None

    def search(self, question: Question) -> SearchedPassages:
        """The hits that an answer would be made from, with the query embedding and the reranking on the bill."""
        meter = self.meters.of(question)
        return SearchedPassages(self._retriever.search(question, meter), meter.calls)

    def _opened(self, question: Question, meter: Meter, steps: Steps) -> OpenAnswer:
        return OpenAnswer(question, meter, steps, running=self.running, closing=self._closing)

    def _begin(self, question: Question, meter: Meter, unless: Unless | None) -> Steps:
        question.require_time()
        if (reply := self._understanding.at_once(question)) is not None:
            return _replied(reply, meter)
        strategy = first_fit(self._strategies(), question)
        with timed("retrieve") as retrieving:
            understood = self._understanding.understood(question, meter)
            if isinstance(understood, Reply):
                return _replied(understood, meter)
            budget = strategy.budget(understood)
            try:
                retrieved = self._retriever.retrieve(understood, meter)
            except CallsClosed:  # while passages were embedded
                return Begun(question=understood, grounding=None, answer=Finished.cancelled(), meter=meter)
        grounding = replace(
            self._fitting.fit(understood, retrieved, budget, meter),
            retrieve_ms=retrieving.seconds * 1000 - retrieved.rerank_ms,
        )
        if unless is not None and unless(grounding.context):
            finished = Finished(reason=Reason.DRY_RUN)
            return Begun(question=understood, grounding=grounding, answer=finished, meter=meter)
        answer = yield from strategy.begin(grounding, meter)
        return Begun(question=understood, grounding=grounding, answer=answer, meter=meter)


def _replied(reply: Reply, meter: Meter) -> Begun:
    question = reply.question
    part = (ClarifyPart if reply.asks else ReplyPart)(start_char=0, end_char=len(reply.text))
    answer = Finished(reason=None, text=reply.text, parts=(part,)).in_form(question)
    if question.dry_run:
        answer = Finished(reason=Reason.DRY_RUN, abstention=AbstentionReport("retrieval"))
    return Begun(question=question, grounding=None, answer=answer, meter=meter)


def _again(first: Begun, question: Question, meter: Meter) -> Steps:
    """The steps of a further answer from the same sources; nothing is left to be read."""
    yield from ()
    answer = first.answer
    if not isinstance(answer, Finished):
        answer = answer.again(question, meter)
    return replace(first, question=question, answer=answer, meter=meter)
