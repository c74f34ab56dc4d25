"""The preparation of one answer in a worker thread, as the event loop sees it: its sources first, then the rest."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Protocol

from app.admission.fair_queue import current_slot
from app.answering.metering.meter import Meter, Meters
from app.answering.prepared import Prepared
from app.answering.question import Question
from app.errors import DeadlinePassed

STOPPING_SECONDS = 0.1
"""How long a cancelled answer waits for the batch that is being read, so that its tokens are on the answer's bill."""


class Prepare(Protocol):
    """Prepares an answer; blocks. `Answerer.prepare` is one.

    >>> prepared = prepare(question, meter=meters.of(question), on_sources=print)
    """

    def __call__(self, question: Question, /, *, meter: Meter, on_sources: Callable[[Prepared], None]) -> Prepared:
        """The answer; `on_sources` gets it without its quotes, before models read the sources to find them.

        Once `meter` is closed it is a cancelled one.
        """
        ...


class Preparation:
    """Prepares one answer in a worker thread. Used on the event loop alone.

    A caller of `sources` or `whole` that is cancelled leaves nothing running: the thread ends with the batch that it
    reads, and its result is discarded. The slot of the request is held until then.

    Example:
        >>> preparation = Preparation(question, answerer.prepare, meters=meters, discard=running.release)
        >>> prepared = await preparation.sources()
        >>> prepared = await preparation.whole()
    """

    def __init__(
        self, question: Question, prepare: Prepare, *, meters: Meters, discard: Callable[[Prepared], None]
    ) -> None:
        """Start the thread; `discard` gets a result that nobody waits for any more."""
        loop = asyncio.get_running_loop()
        self._question = question
        self._discard = discard
        self._sources: asyncio.Future[Prepared] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()

        def closed() -> None:
            loop.call_soon_threadsafe(_set, self._closed, None)

        def known(prepared: Prepared) -> None:
            loop.call_soon_threadsafe(_set, self._sources, prepared)

        self._meter = meters.of(question, on_close=closed)

        def run() -> Prepared:
            return prepare(question, meter=self._meter, on_sources=known)

        self._thread = loop.run_in_executor(None, copy_context().run, run)
        if (slot := current_slot.get()) is not None:
            slot.hold_until(self._thread)  # also when the caller has left: the thread is still busy

    async def sources(self) -> Prepared:
        """The answer as soon as its sources are known if quotes will answer, else all of it, as `whole`.

        What is missing is its `rest`.

        Raises:
            DeadlinePassed: Its deadline passed; the result of the thread is discarded.
        """
        await self._first_of(self._thread, self._sources)
        if not self._thread.done() and self._sources.result().by_quotes:
            return replace(self._sources.result(), rest=self)
        return await self.whole()

    async def whole(self) -> Prepared:
        """The answer with all that it is made from; a cancelled one without waiting for what the thread still reads.

        Raises:
            DeadlinePassed: Its deadline passed; the result of the thread is discarded.
        """
        await self._first_of(self._thread, self._closed)
        await self._first_of(self._thread, self._sources)  # a search is not interrupted
        await self._first_of(self._thread, timeout=STOPPING_SECONDS)
        if self._thread.done():
            return self._thread.result()
        self._leave()
        return replace(self._sources.result(), cancelled=True)

    def close(self) -> None:
        """Stop: nobody waits for the answer any more."""
        self._meter.close()
        self._leave()

    async def _first_of(self, *futures: "asyncio.Future[Any]", timeout: float | None = None) -> None:  # noqa: ASYNC109 - a timeout is no error here
        """Wait until one of the futures is done, for `timeout` seconds at most."""
        limit = asyncio.timeout(self._question.seconds_left)
        try:
            async with limit:
                await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            self.close()
            raise DeadlinePassed from None
        except asyncio.CancelledError:
            self.close()
            raise

    def _leave(self) -> None:
        """Discard the result of the thread when there is one."""

        def discard(done: "asyncio.Future[Prepared]") -> None:
            if not done.cancelled() and done.exception() is None:
                self._discard(done.result())

        self._thread.add_done_callback(discard)


def _set(future: "asyncio.Future[Any]", value: object) -> None:
    """Set the result of a future that may have one."""
    if not future.done():
        future.set_result(value)
