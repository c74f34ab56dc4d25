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

from app.answering.abstention import refused_before_generation, with_evidence
from app.answering.answer import AbstentionReport, Answer, Budget, SourceReport, SourcesFound, TextDelta
from app.answering.answer_writer import begin
from app.answering.catalogue_replies import CatalogueReplies
from app.answering.closing import RECORDING_SECONDS, Closing
from app.answering.context import BuiltContext, ContextBuilder
from app.answering.conversations import Conversations
from app.answering.followup.model import Rewriter
from app.answering.generator import Generator
from app.answering.languages.other_language import other_language
from app.answering.metering.meter import Meter, Meters
from app.answering.outcome import Outcome
from app.answering.overview.overviews import Overview, Overviews
from app.answering.preparation import Preparation
from app.answering.prepared import PreparationCost, Prepared
from app.answering.question import Question
from app.answering.quoting.quotable import QuotesAs, is_quotable, require_quotable
from app.answering.quoting.quotes import Selection
from app.answering.retrieving.finder import Finder, Found, SearchedPassages
from app.answering.running import RunningAnswers
from app.answering.verification.metered_models import Verification
from app.errors import NotFound
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
        finder: Finder,
        contexts: ContextBuilder,
        generator: Generator,
        meters: Meters,
        closing: Closing,
        min_evidence: float,
        quotes: QuotesAs = QuotesAs.NOTHING,
        quote_unverified: bool = False,
        conversations: Conversations | None = None,
        rewriter: Rewriter | None = None,
        verification: Verification | None = None,
        replies: CatalogueReplies | None = None,
        overviews: Overviews | None = None,
    ) -> None:
        """Configure the optional parts.

        `quotes` says which questions quotes answer, `quote_unverified` whether they follow a generated answer of which
        nothing is verified. Without a rewriter follow-ups are rewritten by rules; without conversations there are
        none. Without verification by models answers are verified by words alone. `min_evidence` is the least evidence
        score of sources that are shown to the model. Without `replies` small talk is searched for like every question,
        without `overviews` a question about a document as a whole.
        """
        self.running = RunningAnswers()
        self.meters = meters
        self._finder = finder
        self._contexts = contexts
        self._generator = generator
        self._closing = closing
        self._min_evidence = min_evidence
        self._quotes = quotes
        self._quote_unverified = quote_unverified
        self._conversations = conversations
        self._rewriter = rewriter
        self._verification = verification
        self._replies = replies
        self._overviews = overviews
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
        if self._replies is not None and (reply := self._replies.reply(question)) is not None:
            return Prepared.replied(self._joined(question), reply, started=started, meter=meter)
        by_quotes = self._answered_by_quotes(question)
        if not by_quotes:
            self._generator.require_room()
        with station("retrieve") as retrieving:
            question = self._rewritten(question, meter)
            if self._replies is not None and (reply := self._replies.which(question)) is not None:
                return Prepared.replied(question, reply, started=started, meter=meter)
            room = self._contexts.room(question, prompted=not by_quotes)
            found, overview = self._found(question, meter)

        hits, evidence = found.hits, AbstentionReport()
        if overview is None:
            hits, evidence = with_evidence(question.text, hits, minimum=self._min_evidence)
        note = other_language(question.text, found.hits)

        def made_of(given: BuiltContext) -> Prepared:
            return Prepared(
                question=question,
                meter=meter,
                evidence=evidence,
                selection=given.selection,
                by_quotes=by_quotes,
                context=given.context,
                prompt=given.prompt,
                report=SourceReport.of(found.hits, given.context, summarised=given.summarised),
                budget=Budget(room.window, room.max_output, given.prompt.components.total),
                note=note,
                cost=PreparationCost(
                    started=started,
                    retrieve_ms=retrieving.seconds * 1000 - found.rerank_ms,
                    rerank_ms=found.rerank_ms,
                ),
            )

        built = self._contexts.build(
            question,
            hits,
            vector=found.vector,
            room=room,
            meter=meter,
            prompted=not by_quotes,
            overview=overview,
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
        if self._replies is not None and self._replies.reply(question) is not None:
            return None
        with self._memo.of(question.principal.tenant_id), self.running.preparing(question, meter):
            found, overview = self._found(question, meter)
            if overview is not None:
                return None
            hits, _ = with_evidence(question.text, found.hits, minimum=self._min_evidence)
            room = self._contexts.room(question, prompted=False)
            return self._contexts.build(
                question, hits, vector=found.vector, room=room, meter=meter, prompted=False
            ).selection

    def search(self, question: Question) -> SearchedPassages:
        """The hits that `prepare` would use, with the query embedding and the reranking on the bill."""
        meter = self.meters.of(question)
        return SearchedPassages(self._finder.find(question, meter).hits, meter.calls)

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

    def _found(self, question: Question, meter: Meter) -> tuple[Found, Overview | None]:
        """The hits, and the overview they are of where the question asks about a document as a whole."""
        overview = self._overviews.known(question) if self._overviews is not None else None
        if overview is not None:
            return self._finder.unsearched(question, meter, overview.hits), overview
        found = self._finder.find(question, meter)
        overview = self._overviews.found(question, found.hits) if self._overviews is not None else None
        return (found if overview is None else replace(found, hits=overview.hits)), overview

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

    def _joined(self, question: Question) -> Question:
        """The question with its conversation's history."""
        if question.conversation_id is None:
            return question
        if self._conversations is None:
            raise NotFound("There is no such conversation.")
        return self._conversations.joined(question)

    def _rewritten(self, question: Question, meter: Meter) -> Question:
        """The question with its conversation's history, rewritten to stand alone."""
        question = self._joined(question)
        if self._rewriter is None or question.standalone is None or question.dry_run:
            return question
        return self._rewriter.rewritten(question, meter=meter)
