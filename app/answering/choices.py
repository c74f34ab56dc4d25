"""Several answers to one question: the sources are found once, each answer is generated and billed separately."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import dataclass, replace

import anyio

from app.answering.answer import Answer, SourcesFound, TextDelta
from app.answering.answerer import Answerer
from app.answering.metering.token_usage import TokenUsage, total
from app.answering.prepared import Prepared
from app.answering.question import Question

Event = SourcesFound | TextDelta | Answer


@dataclass(frozen=True, slots=True)
class Choices:
    """The accepted answers of one request, in order, at least one.

    >>> choices = await prepare_choices(answerer, question, n=3)
    >>> answers = await choices.answers()
    """

    answerer: Answerer
    prepared: tuple[Prepared, ...]

    @property
    def first(self) -> Prepared:
        """The first answer, whose usage includes finding the sources."""
        return self.prepared[0]

    def release(self) -> None:
        """Stop and unregister all of them. Idempotent."""
        for prepared in self.prepared:
            self.answerer.running.release(prepared)

    async def answers(self) -> tuple[Answer, ...]:
        """All whole answers."""
        try:
            return tuple(await asyncio.gather(*(self.answerer.answer(prepared) for prepared in self.prepared)))
        finally:
            self.release()

    async def stream(self) -> AsyncGenerator[tuple[int, Event], None]:
        """Yield (choice, event): the events of each choice in order, as in `Answerer.stream`.

        Leaving early stops all choices. A slow client delays every choice.
        """
        if len(self.prepared) == 1:
            async with aclosing(self.answerer.stream(self.first)) as events:
                async for event in events:
                    yield 0, event
            return
        line: asyncio.Queue[tuple[int, Event] | BaseException | None] = asyncio.Queue(maxsize=1)
        tasks = [asyncio.ensure_future(self._feed(choice, line)) for choice in range(len(self.prepared))]
        open_choices = len(tasks)
        try:
            while open_choices:
                item = await line.get()
                if item is None:
                    open_choices -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            self.release()
            for task in tasks:
                task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait(tasks)

    async def usage(self, answers: Sequence[Answer]) -> TokenUsage:
        """The sum of the usage of all `answers`, equal to the ledger rows of the request."""
        if len(answers) == 1:
            return answers[0].usage
        bill = await asyncio.to_thread(self.answerer.bill, self.first.question.request_id)
        return replace(total(answer.usage for answer in answers), bill=bill)

    async def _feed(self, choice: int, line: "asyncio.Queue[tuple[int, Event] | BaseException | None]") -> None:
        try:
            async with aclosing(self.answerer.stream(self.prepared[choice])) as events:
                async for event in events:
                    await line.put((choice, event))
        except Exception as error:  # noqa: BLE001 - raised again where the choices are read
            await line.put(error)
        else:
            await line.put(None)


async def prepare_choices(answerer: Answerer, question: Question, *, n: int) -> Choices:
    """Prepare `n` answers to a question, in worker threads; a caller cancelled meanwhile leaves nothing running.

    Raises:
        EngineFull: Also where there is room for some of them but not for all.
    """
    first = await answerer.prepare_in_thread(question)
    if n == 1:
        return Choices(answerer, (first,))
    task = asyncio.get_running_loop().run_in_executor(None, copy_context().run, answerer.choices, first, n)

    def release(done: "asyncio.Future[tuple[Prepared, ...]]") -> None:
        if done.exception() is None:
            Choices(answerer, done.result()).release()

    try:
        return Choices(answerer, await asyncio.shield(task))
    except asyncio.CancelledError:
        task.add_done_callback(release)
        raise
