"""One answer, as the event loop sees it: it begins in a worker thread, its events follow, or it is left."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, TypeAlias

from app.answering.answers.answer import Answer, QuotesFound, SourceReport, SourcesFound, TextDelta
from app.answering.closing import RECORDING_SECONDS, Closing
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.running.registry import RunningAnswers
from app.answering.running.stepping import Stepping
from app.answering.states.finished import Finished
from app.answering.states.sources import NO_SOURCES, Grounding
from app.answering.states.strategy import Begun, Sources
from app.errors import DeadlinePassed
from generation.types import TokenLogprob
from retrieval.types import Context

STOPPING_SECONDS = 0.1
"""How long a cancelled answer waits for the batch that is being read, so that its tokens are on the answer's bill."""

Event: TypeAlias = SourcesFound | QuotesFound | TextDelta | Answer
Steps: TypeAlias = Generator[Sources, None, Begun]
"""The steps by which an answer begins: yields the sources at most once, before a model reads them."""


class OpenAnswer:
    """One answer, from its question to its last event. Used on the event loop alone.

    The caller of `Answerer.open` closes it, unless one of its methods raises or its events are read to their end. An
    answer that is left keeps nothing running: the thread ends with the batch that it reads.

    Example:
        >>> answer = answerer.open(question)
        >>> await answer.begun()
        >>> async for event in answer.events():
        ...     print(event)
    """

    def __init__(
        self, question: Question, meter: Meter, steps: Steps, *, running: RunningAnswers, closing: Closing
    ) -> None:
        """Begin in a worker thread; `meter` meters the answer's calls."""
        self.question = question
        self._meter = meter
        self._running = running
        self._closing = closing
        self._stopped = asyncio.wrap_future(meter.ended)
        self._kept = False
        running.add(question, meter)
        self._stepping = Stepping(steps)

    @property
    def context(self) -> Context:
        """The sources, once they are known; none for a reply."""
        grounding = self.grounding
        return NO_SOURCES if grounding is None else grounding.context

    async def begun(self) -> None:
        """Wait until the sources are final, or all is ready.

        Raises:
            ConstraintInvalid: The question's JSON schema cannot be used.
            DeadlinePassed: Nothing had begun in time.
            ContextLengthExceeded: Question, history and output leave no room in the context window.
            EngineFull: Checked before any work, and again at admission.
            EngineStopped: The engine is gone.
            NotFound: The question's conversation does not exist for this caller.
            InvalidRequest: The question insists on a reranker or a language model and there is none.
            StoreUnavailable: Search or ledger cannot reach the database.
        """
        with self._noting():
            await self._begun()

    async def ready(self) -> Begun:
        """Wait until nothing remains but to write; raises as `begun`."""
        with self._noting():
            return await self._ready()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events in order: the sources, quotes where a model words the answer, text, and last the answer.

        They are read once.

        A model that cannot be reserved any more, or fails, ends the stream with an error. Leaving the iterator early,
        by `aclose` or cancellation, cancels the answer.
        """
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    yield event
        finally:
            self.close()

    async def whole(self) -> Answer:
        """The whole answer at once; raises as `begun`."""
        async with aclosing(self.events()) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("an answer's events end with the answer")

    def close(self) -> None:
        """Stop what runs for it, as the client's abort, or as the server's where the deadline has passed. Idempotent.

        Its conversation waits no longer for an answer that did not end.
        """
        self._running.release(self.question)
        self._meter.close()
        if not self._kept:
            self._kept = True
            self._stepping.result.add_done_callback(self._left)  # not before: the thread may open the conversation yet

    async def _events(self) -> AsyncGenerator[Event, None]:
        with self._noting():
            await self._begun()
            grounding = self.grounding
            if grounding is None:
                yield SourcesFound(SourceReport.of((), NO_SOURCES), ())
            else:
                yield SourcesFound(grounding.report, grounding.context.sources)
            begun = await self._ready()
            sent, untold = 0, tuple[TokenLogprob, ...]()
            finished: Finished | None = begun.answer if isinstance(begun.answer, Finished) else None
            if not isinstance(begun.answer, Finished):
                if begun.answer.quotes is not None:
                    yield begun.answer.quotes
                async with aclosing(begun.answer.events()) as written:
                    async for event in written:
                        if isinstance(event, Finished):
                            finished = event
                        elif event.text:
                            sent += len(event.text)
                            yield event
                        else:
                            untold = event.logprobs
            assert finished is not None, "what writes an answer ends with how it ended"
            self._running.release(self.question)
            answer = await self._closing.ended(begun, finished)
            self._kept = True
        recording = self._closing.recording(begun.question, answer)
        if (text := answer.text[sent:]) or untold:
            yield TextDelta(text, untold)
        await asyncio.wait({recording}, timeout=RECORDING_SECONDS)
        yield answer

    @property
    def grounding(self) -> Grounding | None:
        """The sources and the hits that they are of; None until they are known, and for a reply."""
        early, result = self._stepping.early, self._stepping.result
        return early.result().grounding if early.done() else result.result().grounding if result.done() else None

    async def _begun(self) -> None:
        result, early = self._stepping.result, self._stepping.early
        await self._first_of(result, early)
        if early.done() and early.result().final:
            return  # told first, also where reading them has failed by now
        if result.done():
            result.result()
        else:
            await self._ready()

    async def _ready(self) -> Begun:
        """All of it; a cancelled answer without waiting for what the thread still reads."""
        result, early = self._stepping.result, self._stepping.early
        await self._first_of(result, self._stopped)
        await self._first_of(result, early)  # a search is not interrupted
        await self._first_of(result, timeout=STOPPING_SECONDS)
        if result.done():
            return result.result()
        grounding = early.result().grounding
        return Begun(question=grounding.question, grounding=grounding, answer=Finished.cancelled(), meter=self._meter)

    async def _first_of(self, *futures: "asyncio.Future[Any]", timeout: float | None = None) -> None:  # noqa: ASYNC109 - a timeout is no error here
        """Wait until one of the futures is done, for `timeout` seconds at most.

        Raises:
            DeadlinePassed: The question's deadline passed before.
        """
        try:
            async with asyncio.timeout(self.question.seconds_left):
                await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise DeadlinePassed from None

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Record in the background that a question failed or was left, if the body of the `with` statement raises."""
        try:
            yield
        except BaseException as error:
            self.close()
            self._closing.failed(self.question, error)
            raise

    def _left(self, result: "asyncio.Future[Begun]") -> None:
        if not result.cancelled() and result.exception() is None:  # one that raised is left by its thread
            self._closing.left_soon(self.question)
