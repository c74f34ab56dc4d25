"""The answering use case: find → compress → select quotes → prompt → reserve → generate → cite.

Where quotes are the answer (`QuotesAs`), it ends with their selection, and no language model is called.
`prepare` does everything that can be refused: it raises before a byte is streamed. Where quotes are the answer, a
stream begins as soon as the first call that selects them is reserved. `stream` then yields the events of the answer.
The engine's observer settles the ledger, even if the client leaves (`app.answering.metering`).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace

from app.answering.abstention import refused_before_generation
from app.answering.answer import Answer, Budget, SourceReport, SourcesFound, TextDelta
from app.answering.closing import RECORDING_SECONDS, Closing
from app.answering.context import BuiltContext, ContextBuilder
from app.answering.generating.answer_writer import begin
from app.answering.generating.generator import Generator
from app.answering.languages.other_language import other_language
from app.answering.metering.meter import Meter, Meters
from app.answering.outcome import Outcome
from app.answering.preparation import Preparation
from app.answering.prepared import PreparationCost, Prepared
from app.answering.question import Question
from app.answering.quoting.quotable import QuotesAs, is_quotable, require_quotable
from app.answering.quoting.quotes import Selection
from app.answering.retrieving.finder import SearchedPassages
from app.answering.retrieving.retriever import Retriever
from app.answering.running import RunningAnswers
from app.answering.understanding.understanding import Reply, Understanding
from app.answering.verification.metered_models import Verification
from app.telemetry.stations import station
from app.usage.ledger.events import Bill
from generation.types import Completion, Delta, TokenLogprob
from retrieval.memo import Memo


def _unannounced(_: Prepared) -> None:
    """What happens by default when the sources are known: nothing."""


class Answerer:
    """Answers questions from documents. One instance serves every request. `running` cancels answers.

    >>> prepared = await answerer.prepare_in_thread(question)
    >>> answer = await answerer.answer(prepared)
    >>> answer.text, answer.citations[0].cited_text
    """

    def __init__(
        self,
        *,
        understanding: Understanding,
        retriever: Retriever,
        contexts: ContextBuilder,
        generator: Generator,
        meters: Meters,
        verification: Verification,
        closing: Closing,
        quotes: QuotesAs = QuotesAs.NOTHING,
        quote_unverified: bool = False,
    ) -> None:
        """Choose what answers.

        `quotes` says which questions quotes answer, `quote_unverified` whether they follow a generated answer of which
        nothing is verified.
        """
        self.running = RunningAnswers()
        self.meters = meters
        self._understanding = understanding
        self._retriever = retriever
        self._contexts = contexts
        self._generator = generator
        self._closing = closing
        self._quotes = quotes
        self._quote_unverified = quote_unverified
        self._verification = verification
        self._memo = Memo()

    def prepare(
        self,
        question: Question,
        /,
        *,
        meter: Meter | None = None,
        on_sources: Callable[[Prepared], None] = _unannounced,
    ) -> Prepared:
        """Search, select quotes or build the prompt, reserve the call, and hand it to the engine. Blocks.

        Args:
            question: As it was asked.
            meter: Of this question. Once it is closed no further model is called, and the answer is a cancelled one.
            on_sources: Gets the answer without its quotes, before models read the sources to find them.

        Raises:
            ConstraintInvalid: The question's JSON schema cannot be used.
            DeadlinePassed: Nothing was handed to the engine in time.
            ContextLengthExceeded: Question, history and output leave no room in the context window.
            EngineFull: Checked before any work, and again at admission.
            EngineStopped: The engine is gone.
            NotFound: The question's conversation does not exist for this caller.
            InvalidRequest: The question insists on a reranker or a language model and there is none.
            StoreUnavailable: Search or ledger cannot reach the database.
        """
        meter = meter or self.meters.of(question)
        try:
            with self._memo.of(question.principal.tenant_id), self.running.preparing(question, meter):
                return self._prepare(question, meter, on_sources)
        except BaseException:
            self._closing.left(question)
            raise

    async def prepare_in_thread(self, question: Question) -> Prepared:
        """`prepare` in a worker thread; a caller that is cancelled meanwhile leaves nothing running.

        Raises:
            DeadlinePassed: Also while the thread still runs; its result is then discarded.
        """
        with self._noting(question):
            return await self._preparation(question).whole()

    async def sources_in_thread(self, question: Question) -> Prepared:
        """As `prepare_in_thread`, but where quotes will answer, as soon as the sources are known.

        `stream` waits for the rest. A model that cannot be reserved any more, or fails, ends the stream with an error.
        """
        with self._noting(question):
            return await self._preparation(question).sources()

    @contextmanager
    def _noting(self, question: Question) -> Iterator[None]:
        """Record in the background that a question failed or was left, if the body of the `with` statement raises."""
        try:
            yield
        except BaseException as error:
            self._closing.failed(question, error)
            raise

    def _preparation(self, question: Question) -> Preparation:
        def discard(prepared: Prepared) -> None:
            self.running.release(prepared)
            self._closing.left_soon(prepared.question)

        return Preparation(question, self.prepare, meters=self.meters, discard=discard)

    def _prepare(self, question: Question, meter: Meter, on_sources: Callable[[Prepared], None]) -> Prepared:
        started = time.perf_counter()
        question.require_time()
        if (reply := self._understanding.at_once(question)) is not None:
            return Prepared.replied(reply.question, reply.text, started=started, meter=meter)
        by_quotes = self._answered_by_quotes(question)
        if not by_quotes:
            self._generator.require_room()
        with station("retrieve") as retrieving:
            understood = self._understanding.understood(question, meter)
            if isinstance(understood, Reply):
                return Prepared.replied(understood.question, understood.text, started=started, meter=meter)
            question = understood
            room = self._contexts.room(question, prompted=not by_quotes)
            retrieved = self._retriever.retrieve(question, meter)
        note = other_language(question.text, retrieved.found)

        def made_of(given: BuiltContext) -> Prepared:
            return Prepared(
                question=question,
                meter=meter,
                evidence=retrieved.evidence,
                selection=given.selection,
                by_quotes=by_quotes,
                context=given.context,
                prompt=given.prompt,
                report=SourceReport.of(retrieved.found, given.context, summarised=given.summarised),
                budget=Budget(room.window, room.max_output, given.prompt.components.total),
                note=note,
                cost=PreparationCost(
                    started=started,
                    retrieve_ms=retrieving.seconds * 1000 - retrieved.rerank_ms,
                    rerank_ms=retrieved.rerank_ms,
                ),
            )

        built = self._contexts.build(
            question,
            retrieved,
            room=room,
            meter=meter,
            prompted=not by_quotes,
            on_sources=lambda given: on_sources(made_of(given)),
        )
        prepared, context = made_of(built), built.context
        if meter.closed:
            return replace(prepared, cancelled=True)
        if question.dry_run or (not by_quotes and refused_before_generation(question, context, built.selection)):
            return prepared
        prepared = replace(prepared, pages=self._contexts.pages(question, context))
        return prepared if by_quotes else self._begin(prepared)

    def choices(self, prepared: Prepared, n: int) -> tuple[Prepared, ...]:
        """`n` answers from the same sources, the first being `prepared`; each is generated and billed by itself.

        Raises:
            EngineFull, EngineStopped, BudgetExceeded, StoreUnavailable, DeadlinePassed: One was refused; those that
                were accepted, the first included, are stopped.
        """
        accepted = [prepared]
        try:
            for choice in range(1, n):
                further = prepared.again(choice)
                accepted.append(self._begin(further) if prepared.generates else further)
        except BaseException:
            for one in accepted:
                self.running.release(one)
            raise
        return tuple(accepted)

    def bill(self, request_id: str) -> Bill | None:
        """What a request has cost so far, None where the ledger cannot be read now."""
        return self._closing.bill(request_id)

    def selection(self, question: Question, /, *, meter: Meter) -> Selection | None:
        """The quotes that a question about content would be answered with; nothing is generated. Blocks.

        None where it gets a reply without a search, asks about a document as a whole, or finds no sources.

        Raises:
            BudgetExceeded, StoreUnavailable: A model's call was not reserved, and not made.
            ContextLengthExceeded: The question alone is too long.
        """
        if self._understanding.at_once(question) is not None:
            return None
        with self._memo.of(question.principal.tenant_id), self.running.preparing(question, meter):
            retrieved = self._retriever.retrieve(question, meter)
            if retrieved.overview is not None:
                return None
            room = self._contexts.room(question, prompted=False)
            return self._contexts.build(question, retrieved, room=room, meter=meter, prompted=False).selection

    def search(self, question: Question) -> SearchedPassages:
        """The hits that `prepare` would use, with the query embedding and the reranking on the bill."""
        meter = self.meters.of(question)
        return SearchedPassages(self._retriever.search(question, meter), meter.calls)

    async def stream(self, prepared: Prepared) -> AsyncGenerator[SourcesFound | TextDelta | Answer, None]:
        """Yield the events of an answer in order: the sources, text, and last the whole answer.

        Leaving the iterator early, by `aclose` or cancellation, cancels the generation.
        """
        try:
            async with aclosing(self._stream(prepared)) as events:
                async for event in events:
                    yield event
        except BaseException:
            self._closing.left_soon(prepared.question)
            raise

    async def _stream(self, prepared: Prepared) -> AsyncGenerator[SourcesFound | TextDelta | Answer, None]:
        with self._noting(prepared.question):
            try:
                yield SourcesFound(prepared.report, prepared.context.sources)
                prepared = prepared if prepared.rest is None else await prepared.rest.whole()
            except BaseException:
                self.running.release(prepared)
                raise
            outcome = Outcome(prepared=prepared, model=self._generator.model)
            unreported: tuple[TokenLogprob, ...] = ()
            if prepared.stream is None:
                answer = outcome.ungenerated()
                shown = answer.text
            else:
                writer = begin(prepared, verification=self._verification, memo=self._memo)
                completion: Completion | None = None
                shown = ""
                try:
                    async for event in prepared.stream:
                        if isinstance(event, Delta):
                            unreported += event.logprobs
                            if shown := await writer.write(event.text):
                                yield TextDelta(shown, unreported)
                                unreported = ()
                        else:
                            completion = event
                            shown = await writer.finish()
                finally:
                    self.running.release(prepared)
                assert completion is not None, "a stream ends with its completion"
                if self._quote_unverified:
                    shown = writer.quote(prepared, completion, pending=shown)
                answer = replace(outcome, completion=completion).generated(writer.footnotes)
                shown += answer.text[len(writer.footnotes.answer) :]  # the note behind a refusal
            answer = await self._closing.ended(prepared.question, answer)
        recording = self._closing.recording(prepared.question, answer)
        if shown or unreported:
            yield TextDelta(shown, unreported)
        await asyncio.wait({recording}, timeout=RECORDING_SECONDS)
        yield answer

    async def answer(self, prepared: Prepared) -> Answer:
        """The whole answer at once."""
        async with aclosing(self.stream(prepared)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer's stream ends with the answer")

    def _answered_by_quotes(self, question: Question) -> bool:
        """Whether quotes answer a question; where a language model is served too, it answers what they cannot.

        Raises:
            InvalidRequest, UnsupportedParameter: Quotes cannot answer, and no language model is served.
        """
        if self._quotes is QuotesAs.ONLY:
            require_quotable(question)
            return True
        return self._quotes is QuotesAs.FIRST and is_quotable(question)

    def _begin(self, prepared: Prepared) -> Prepared:
        """`prepared` with its generation begun and registered."""
        begun = self._generator.begin(prepared)
        self.running.add(begun)
        return begun
