"""Several answers to one question: the sources are found once, each answer is generated and billed separately."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import anyio

from app.answering.answerer import Answerer
from app.answering.answers.answer import Answer
from app.answering.metering.token_usage import TokenUsage, total
from app.answering.question import Question
from app.answering.running.open_answer import Event, OpenAnswer


@dataclass(frozen=True, slots=True)
class Several:
    """The accepted answers of one request, in order, at least one.

    Attributes:
        answerer: Has the bill.
        opened: The answers, ready to be written; the usage of the first includes finding the sources.
        content: Whether they have content: a model writes them, or they consist of quotes.

    Example:
        >>> choices = await open_choices(answerer, question, n=3)
        >>> answers = await choices.whole()
    """

    answerer: Answerer
    opened: tuple[OpenAnswer, ...]
    content: bool

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return self.opened[0].question.request_id

    def close(self) -> None:
        """Stop all of them. Idempotent."""
        for answer in self.opened:
            answer.close()

    async def whole(self) -> tuple[Answer, ...]:
        """All whole answers."""
        try:
            return tuple(await asyncio.gather(*(answer.whole() for answer in self.opened)))
        finally:
            self.close()

    async def stream(self) -> AsyncGenerator[tuple[int, Event], None]:
        """Yield (choice, event): the events of each choice in order, as in `OpenAnswer.events`.

        Leaving early stops all choices. A slow client delays every choice.
        """
        if len(self.opened) == 1:
            async with aclosing(self.opened[0].events()) as events:
                async for event in events:
                    yield 0, event
            return
        line: asyncio.Queue[tuple[int, Event] | BaseException | None] = asyncio.Queue(maxsize=1)
        tasks = [asyncio.ensure_future(_feed(choice, answer, line)) for choice, answer in enumerate(self.opened)]
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
            self.close()
            for task in tasks:
                task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait(tasks)

    async def usage(self, answers: Sequence[Answer]) -> TokenUsage:
        """The sum of the usage of all `answers`, equal to the ledger rows of the request."""
        if len(answers) == 1:
            return answers[0].usage
        bill = await asyncio.to_thread(self.answerer.bill, self.request_id)
        return replace(total(answer.usage for answer in answers), bill=bill)


async def _feed(
    choice: int, answer: OpenAnswer, line: "asyncio.Queue[tuple[int, Event] | BaseException | None]"
) -> None:
    try:
        async with aclosing(answer.events()) as events:
            async for event in events:
                await line.put((choice, event))
    except Exception as error:  # noqa: BLE001 - raised again where the choices are read
        await line.put(error)
    else:
        await line.put(None)


async def open_choices(answerer: Answerer, question: Question, *, n: int) -> Several:
    """Begin `n` answers to a question; a caller that is cancelled meanwhile leaves nothing running.

    Raises:
        EngineFull: Also where there is room for some of them but not for all.
    """
    opened = await answerer.choices(question, n)
    return Several(answerer, opened, content=(await opened[0].ready()).has_content)
