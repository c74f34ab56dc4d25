"""The answering use case: find → compress → prompt → reserve → generate → cite.

`prepare` does everything that can be refused (it raises before a byte is streamed); `stream` then
yields what happens. The ledger is settled by the engine's observer, whatever the reader does.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from app.answer import Answer, Budget, SourceReport, SourcesFound, TextDelta
from app.citations import FootnoteWriter, VerbatimWriter
from app.db.contents import ContentRepository
from app.errors import DeadlinePassed, NotFound
from app.evidence import is_evidence
from app.finding import Finder, Found
from app.prepared import NO_EVIDENCE, Prepared
from app.prompt import Prompt, build_prompt
from app.question import Limits, Question
from app.reading_order import reading_order
from app.settlement import submit
from app.summaries import Calls, Summarised, Summariser
from app.types import Operation, Principal
from app.usage.ledger import Ledger
from generation.errors import EngineFull
from generation.ports import Engine, Tokenizer
from generation.types import Completion, Delta, GenerationRequest
from ingestion.types import Page
from retrieval.compress import compress
from retrieval.types import Context, Hit

_EMPTY = Context(sources=(), dropped=(), tokens=0)


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
    ) -> None:
        """Without a summariser what does not fit is dropped."""
        self._finder = finder
        self._engine = engine
        self._tokenizer = tokenizer
        self._tokenizer_revision = tokenizer_revision
        self._contents = contents
        self._ledger = ledger
        self._limits = limits
        self._summariser = summariser
        self._open: dict[str, tuple[str, Prepared | Calls]] = {}

    def prepare(self, question: Question) -> Prepared:
        """Search, build the prompt, reserve, and hand it to the engine.

        Raises:
            ConstraintInvalid: The question's JSON schema cannot be used.
            DeadlinePassed: Nothing was handed to the engine in time.
            ContextLengthExceeded: Question, history and output leave no room in the context window.
            EngineFull: Checked before any work, and again at admission.
            EngineStopped: The engine is gone.
            InvalidRequest: The question insists on a reranker and there is none.
            StoreUnavailable: Search or ledger cannot reach the database.
        """
        started = time.perf_counter()
        _seconds_left(question)
        if self._engine.stats().waiting > self._limits.max_waiting:
            raise EngineFull(retry_after_s=1)
        empty = self._prompt(question, context=_EMPTY, grounded=True)
        window = self._engine.info.context_window
        max_output, room = self._limits.room(question, window=window, fixed=empty.components.total)
        found = self._finder.find(question)
        retrieve_ms = (time.perf_counter() - started) * 1000 - found.rerank_ms

        evident = is_evidence(question.text, found.hits, least_cosine=self._limits.min_evidence)
        hits = found.hits if evident else ()
        fitted = self._fitted(question, hits, budget=room, head=empty.head) if hits else Summarised(_EMPTY)
        context = fitted.context
        grounded = bool(context.sources) or question.on_no_evidence == "refuse"
        prompt = self._prompt(question, context=context, grounded=grounded)
        prepared = Prepared(
            question=question,
            context=context,
            prompt=prompt,
            report=SourceReport.of(found.hits, context, summarised=fitted.chunk_ids),
            budget=Budget(window, max_output, prompt.components.total),
            embedding_tokens=found.embedding_tokens,
            rerank_tokens=found.rerank_tokens,
            retrieve_ms=retrieve_ms,
            rerank_ms=found.rerank_ms,
            summary_tokens=fitted.tokens,
            started=started,
        )
        if question.dry_run or (not context.sources and question.on_no_evidence == "refuse"):
            return prepared
        prepared.pages = self._page_tables(context, question.principal.tenant_id)
        self._submit(prepared, max_output)
        if fitted.cancelled:
            prepared.close()
        return prepared

    def search(self, question: Question) -> Found:
        """What `prepare` would read, with the query embedding and the reranking on the bill."""
        return self._finder.find(question)

    async def stream(self, prepared: Prepared) -> AsyncGenerator[SourcesFound | TextDelta | Answer, None]:
        """What happens, in order: the sources, text, and last the whole answer.

        Leaving the iterator early, by `aclose` or cancellation, cancels the generation.
        """
        yield SourcesFound(prepared.report, prepared.context.sources)
        if prepared.stream is None:
            if not prepared.question.dry_run:
                yield TextDelta(NO_EVIDENCE)
            yield prepared.ungenerated(model=self._engine.info.model)
            return
        prose = prepared.question.json_schema is None
        writer = FootnoteWriter(prepared.context.sources, pages=prepared.pages) if prose else VerbatimWriter()
        completion: Completion | None = None
        try:
            async for event in prepared.stream:
                if isinstance(event, Delta):
                    if shown := writer.feed(event.text):
                        yield TextDelta(shown)
                else:
                    completion = event
                    if shown := writer.finish():
                        yield TextDelta(shown)
        finally:
            self.release(prepared)
        assert completion is not None, "a stream ends with its completion"
        yield prepared.generated(writer, completion, model=self._engine.info.model)

    async def answer(self, prepared: Prepared) -> Answer:
        """The whole answer at once."""
        async with aclosing(self.stream(prepared)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer's stream ends with the answer")

    def release(self, prepared: Prepared) -> None:
        """The reader is done with it, or never began: whatever still runs is cancelled. Idempotent."""
        self._open.pop(prepared.question.request_id, None)
        prepared.close()

    def cancel(self, request_id: str, *, principal: Principal) -> None:
        """Stop a running answer of the caller's tenant.

        Raises:
            NotFound: No such request runs.
        """
        tenant_id, running = self._open.get(request_id, ("", None))
        if running is None or tenant_id != principal.tenant_id:
            raise NotFound("No such request is running.")
        running.close()

    def abandon(self, question: Question) -> None:
        """Nobody waits for `prepare` any more: what it has under way stops."""
        _, running = self._open.get(question.request_id, ("", None))
        if running is not None:
            running.close()

    def _fitted(self, question: Question, hits: tuple[Hit, ...], *, budget: int, head: tuple[int, ...]) -> Summarised:
        """What of the hits fits, in the order that has most of it cached, and summaries of the rest by setting."""
        salt, count = question.principal.tenant_id, self._tokenizer.count
        order = reading_order(
            self._tokenizer, head=head, cached=lambda prompt: self._engine.cached_tokens(prompt, salt=salt)
        )

        def fit(budget: int) -> Context:
            return compress(hits, query=question.text, budget=budget, count_tokens=count, order=order)

        if self._summariser is None or question.dry_run:  # a dry run generates nothing
            return Summarised(fit(budget))
        calls = Calls(question)
        self._open[question.request_id] = (salt, calls)
        try:
            return self._summariser.fitted(question, hits, budget=budget, fit=fit, order=order, calls=calls)
        finally:
            del self._open[question.request_id]

    def _prompt(self, question: Question, *, context: Context, grounded: bool) -> Prompt:
        return build_prompt(
            self._tokenizer,
            question=question.text,
            context=context,
            history=question.history,
            instructions=question.instructions,
            grounded=grounded,
            json_schema=question.json_schema,
        )

    def _page_tables(self, context: Context, tenant_id: str) -> dict[tuple[str, int], tuple[Page, ...]]:
        """Page tables of the documents with a source that crosses a page boundary."""
        chunks = [source.hit.chunk for source in context.sources]
        wanted = {(chunk.document_id, chunk.version) for chunk in chunks if chunk.page_start != chunk.page_end}
        tables = {}
        for document_id, version in wanted:
            pages, _ = self._contents.structure(document_id, tenant_id=tenant_id, version=version)
            tables[document_id, version] = pages
        return tables

    def _submit(self, prepared: Prepared, max_output: int) -> None:
        question = prepared.question
        deadline_s = _seconds_left(question)
        reservation = question.reservation(
            call=2,
            operation=Operation.CHAT,
            model=self._engine.info.model,
            tokenizer_revision=self._tokenizer_revision,
            input_tokens=prepared.prompt.components.total,
            max_output_tokens=max_output,
            components=prepared.prompt.components,
            documents=prepared.prompt.shares(prepared.context),
        )
        request = GenerationRequest(
            question.request_id,
            prepared.prompt.ids,
            question.sampling(max_output),
            salt=question.principal.tenant_id,
            user=question.principal.user_id or question.principal.key_id,
            deadline_s=deadline_s,
            constraint=question.constraint(len(prepared.context.sources)),
            sources=prepared.prompt.sources,
        )
        prepared.stream, prepared.settler = submit(self._engine, self._ledger, reservation, request)
        self._open[question.request_id] = (question.principal.tenant_id, prepared)


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
    task = asyncio.get_running_loop().run_in_executor(None, answerer.prepare, question)

    def release(done: asyncio.Future[Prepared]) -> None:
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
