"""The answering use case: find → compress → prompt → reserve → generate → cite.

`prepare` does everything that can be refused (it raises before a byte is streamed); `stream` then
yields what happens. The ledger is settled by the engine's observer, whatever the reader does.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial

from app.admission.fair_queue import current_slot
from app.answering.abstention import reader_refuses, watched_refusal, with_evidence
from app.answering.answer import Answer, Budget, SourceReport, SourcesFound, TextDelta
from app.answering.answer_writer import begin, page_tables
from app.answering.calls import CallNumber, Calls, submit
from app.answering.closing import RECORDING_SECONDS, CitationRecord, Closing
from app.answering.context import ContextBuilder
from app.answering.conversations import Conversations
from app.answering.finder import Finder, Found
from app.answering.followup.model import Rewriter, Rewritten
from app.answering.locator import Locator
from app.answering.prepared import Prepared
from app.answering.prompt import DEFAULT_WORDING
from app.answering.question import MAX_CHOICES, Limits, Question
from app.answering.quoting.quoter import Quoter
from app.answering.summaries import Summariser
from app.answering.verification.metered_models import Verification
from app.answering.wording import Wording
from app.db.contents import ContentRepository
from app.errors import DeadlinePassed, NotFound
from app.telemetry.stations import station
from app.types import Operation, Principal
from app.usage.ledger.events import Bill
from app.usage.ledger.ledger import Ledger
from generation.errors import EngineFull
from generation.ports import Engine, Tokenizer
from generation.types import Completion, Delta, GenerationRequest, TokenLogprob
from retrieval.memo import Memo


class Answerer:
    """Answers questions from documents. One instance serves every request."""

    def __init__(
        self,
        *,
        finder: Finder,
        engine: Engine,
        tokenizer: Tokenizer,
        tokenizer_revision: str,
        contents: ContentRepository,
        ledger: Ledger,
        limits: Limits,
        summariser: Summariser | None = None,
        quoter: Quoter | None = None,
        conversations: Conversations | None = None,
        citations: CitationRecord | None = None,
        rewriter: Rewriter | None = None,
        verification: Verification | None = None,
        locator: Locator | None = None,
        wording: Wording = DEFAULT_WORDING,
    ) -> None:
        """Configure what is optional.

        Without a summariser what does not fit is dropped. Without a locator no span reader reads the sources before
        the engine does. A quoter makes its `calls`: it answers in the engine's place, points the engine at sentences,
        or quotes behind answers of which nothing is verified. Without a rewriter follow-ups stand alone by rules;
        without conversations there are none. Without verification by models answers are verified by words alone.
        `citations` records what answers cite.
        """
        self._finder = finder
        self._engine = engine
        self._tokenizer = tokenizer
        self._tokenizer_revision = tokenizer_revision
        self._contents = contents
        self._ledger = ledger
        self._limits = limits
        self._quoter = quoter
        self._extractive = quoter is not None and CallNumber.ANSWER in quoter.calls
        self._contexts = ContextBuilder(
            engine=engine,
            tokenizer=tokenizer,
            limits=limits,
            wording=wording,
            summariser=summariser,
            locator=locator,
            quoter=quoter,
        )
        self._verification = verification
        self._conversations = conversations
        self._rewriter = rewriter
        self._closing = Closing(ledger=ledger, conversations=conversations, citations=citations)
        self._open: dict[str, tuple[str, Prepared | Calls]] = {}
        self._abandoned: set[str] = set()
        self._memo = Memo()

    def prepare(self, question: Question) -> Prepared:
        """Search, build the prompt, reserve, and hand it to the engine.

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
        with self._memo.of(question.principal.tenant_id):
            return self._prepare(question)

    def _prepare(self, question: Question) -> Prepared:
        started = time.perf_counter()
        _seconds_left(question)
        if self._quoter is not None and self._extractive:
            self._quoter.check(question)
        if self._engine.stats().waiting > self._limits.max_waiting:
            raise EngineFull(retry_after_s=1)
        with station("retrieve") as retrieving:
            rewritten = self._rewritten(question)
            question = rewritten.question
            room = self._contexts.room(question)
            found = self._finder.find(question)
        retrieve_ms = retrieving.seconds * 1000 - found.rerank_ms

        hits, evidence = with_evidence(question.text, found.hits, minimum=self._limits.min_evidence)
        presented = self._contexts.build(question, hits, room=room, running=partial(self._running, question))
        context = presented.context
        prepared = Prepared(
            question=question,
            evidence=evidence,
            located=presented.located,
            context=context,
            prompt=presented.prompt,
            report=SourceReport.of(found.hits, context, summarised=presented.summarised),
            budget=Budget(room.window, room.max_output, presented.prompt.components.total),
            embedding_tokens=found.embedding_tokens,
            rerank_tokens=found.rerank_tokens,
            retrieve_ms=retrieve_ms,
            rerank_ms=found.rerank_ms,
            summary_tokens=presented.summary_tokens,
            rewrite_tokens=rewritten.tokens,
            started=started,
        )
        if question.dry_run or (not context.sources and question.on_no_evidence == "refuse"):
            return prepared
        if reader_refuses(question, presented.located):
            return prepared
        prepared.pages = page_tables(self._contents, context, tenant_id=question.principal.tenant_id)
        if self._quoter is not None and self._extractive:
            prepared.selection = self._quoter.select(question, context, presented.located, call=CallNumber.ANSWER)
            return prepared
        if question.request_id in self._abandoned:
            return prepared  # whoever asked has left while it was searched: nothing is generated for nobody
        self._submit(prepared, room.max_output)
        if presented.cancelled or rewritten.cancelled:
            prepared.close()
        return prepared

    def choices(self, prepared: Prepared, n: int) -> tuple[Prepared, ...]:
        """`n` answers from the same sources, `prepared` being the first; each is generated, and on the bill, by itself.

        Raises:
            EngineFull, EngineStopped, BudgetExceeded, StoreUnavailable, DeadlinePassed: One was not taken; those that
                were, the first included, are ended.
        """
        made = [prepared]
        try:
            for choice in range(1, n):
                made.append(prepared.again(choice))
                if prepared.stream is not None:
                    self._submit(made[-1], prepared.budget.reserved_output)
        except BaseException:
            for one in made:
                self.release(one)
            raise
        return tuple(made)

    def bill(self, request_id: str) -> Bill | None:
        """What a request has cost so far, None where the ledger cannot be read now."""
        return self._closing.bill(request_id)

    def search(self, question: Question) -> Found:
        """What `prepare` would read, with the query embedding and the reranking on the bill."""
        return self._finder.find(question)

    async def stream(self, prepared: Prepared) -> AsyncGenerator[SourcesFound | TextDelta | Answer, None]:
        """What happens, in order: the sources, text, and last the whole answer.

        Leaving the iterator early, by `aclose` or cancellation, cancels the generation.
        """
        yield SourcesFound(prepared.report, prepared.context.sources)
        untold: tuple[TokenLogprob, ...] = ()
        if prepared.stream is None:
            answer = prepared.ungenerated(model=self._engine.info.model)
            shown = answer.text
        else:
            writer = begin(prepared, verification=self._verification, memo=self._memo)
            completion: Completion | None = None
            shown = ""
            try:
                async for event in prepared.stream:
                    if isinstance(event, Delta):
                        untold += event.logprobs
                        if shown := await writer.write(event.text):
                            yield TextDelta(shown, untold)
                            untold = ()
                    else:
                        completion = event
                        shown = await writer.finish()
            finally:
                self.release(prepared)
            assert completion is not None, "a stream ends with its completion"
            if self._quoter is not None:
                shown = await writer.quoted(self._quoter, prepared, completion, pending=shown)
            answer = prepared.generated(writer.footnotes, completion, model=self._engine.info.model)
        answer = await self._closing.ended(prepared.question, answer)
        recording = self._closing.recording(prepared.question, answer)
        if shown or untold:
            yield TextDelta(shown, untold)
        await asyncio.wait({recording}, timeout=RECORDING_SECONDS)
        yield answer

    async def answer(self, prepared: Prepared) -> Answer:
        """The whole answer at once."""
        async with aclosing(self.stream(prepared)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer's stream ends with the answer")

    def release(self, prepared: Prepared) -> None:
        """The reader is done with it, or never began: whatever still runs is cancelled. Idempotent."""
        self._open.pop(prepared.question.run_id, None)
        prepared.close()

    def cancel(self, request_id: str, *, principal: Principal) -> None:
        """Stop a running answer of the caller's tenant.

        Raises:
            NotFound: No such request runs.
        """
        its = {Question.choice_id(request_id, choice) for choice in range(MAX_CHOICES)}
        found = [self._open.get(run_id) for run_id in its]
        mine = [running for tenant_id, running in filter(None, found) if tenant_id == principal.tenant_id]
        if not mine:
            raise NotFound("No such request is running.")
        for running in mine:
            running.close()

    def abandon(self, question: Question) -> None:
        """Nobody waits for `prepare` any more: what it has under way stops, and nothing is generated after it.

        To be followed by `forget` when it has come to its end.
        """
        self._abandoned.add(question.request_id)
        _, running = self._open.get(question.request_id, ("", None))
        if running is not None:
            running.close()

    def forget(self, question: Question) -> None:
        """`prepare` has come to its end, with whatever result."""
        self._abandoned.discard(question.request_id)

    def server_stops(self) -> None:
        """What runs is about to be ended, and not by its readers: the ledger is to say so."""
        for _, running in list(self._open.values()):
            running.server_stops()

    def _rewritten(self, question: Question) -> Rewritten:
        """The question with what came before it in its conversation, standing alone."""
        if question.conversation_id is not None:
            if self._conversations is None:
                raise NotFound("There is no such conversation.")
            question = self._conversations.joined(question)
        if self._rewriter is None or question.standalone is None or question.dry_run:
            return Rewritten(question)
        calls = Calls(question)
        with self._running(question, calls):
            return self._rewriter.rewritten(question, calls=calls)

    @contextmanager
    def _running(self, question: Question, calls: Calls) -> Iterator[None]:
        """While calls run they can be cancelled as the question."""
        self._open[question.request_id] = (question.principal.tenant_id, calls)
        try:
            yield
        finally:
            del self._open[question.request_id]

    def _submit(self, prepared: Prepared, max_output: int) -> None:
        question = prepared.question
        deadline_s = _seconds_left(question)
        reservation = question.reservation(
            call=CallNumber.ANSWER,
            operation=Operation.CHAT,
            model=self._engine.info.model,
            tokenizer_revision=self._tokenizer_revision,
            input_tokens=prepared.prompt.components.total,
            max_output_tokens=max_output,
            components=prepared.prompt.components,
            documents=prepared.prompt.shares(prepared.context),
        )
        request = GenerationRequest(
            question.run_id,
            prepared.prompt.ids,
            replace(question.sampling, max_tokens=max_output),
            salt=question.principal.tenant_id,
            user=question.principal.user_id or question.principal.key_id,
            deadline_s=deadline_s,
            constraint=question.constraint(len(prepared.context.sources)),
            sources=prepared.prompt.sources,
            abstention=watched_refusal(question, prepared.context, tokenizer=self._tokenizer, limits=self._limits),
        )
        if request.abstention is not None:
            prepared.abstention_threshold = request.abstention.threshold
        prepared.stream, prepared.settler = submit(self._engine, self._ledger, reservation, request)
        self._open[question.run_id] = (question.principal.tenant_id, prepared)


def _seconds_left(question: Question) -> float | None:
    """Seconds until the question's deadline, None where it has none.

    Raises:
        DeadlinePassed: There are none.
    """
    left = question.seconds_left
    if left is not None and left <= 0:
        raise DeadlinePassed
    return left


async def prepare(answerer: Answerer, question: Question) -> Prepared:
    """`Answerer.prepare` in a worker thread; a caller cancelled meanwhile leaves nothing running.

    Raises:
        DeadlinePassed: Also while the thread is busy, whose result is then thrown away.
    """
    task = asyncio.get_running_loop().run_in_executor(None, copy_context().run, answerer.prepare, question)
    if (slot := current_slot.get()) is not None:
        slot.hold_until(task)  # also when the caller has left: the thread is still busy

    def release(done: asyncio.Future[Prepared]) -> None:
        answerer.forget(question)
        if done.exception() is None:
            answerer.release(done.result())

    def abandon() -> None:
        answerer.abandon(question)
        task.add_done_callback(release)

    limit = asyncio.timeout(question.seconds_left)
    try:
        async with limit:
            return await asyncio.shield(task)
    except TimeoutError:
        if not limit.expired():
            raise
        abandon()
        raise DeadlinePassed from None
    except asyncio.CancelledError:
        abandon()
        raise
