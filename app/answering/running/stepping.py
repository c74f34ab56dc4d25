"""Takes the steps of an answer in a worker thread, as the event loop sees it: an early value first, then the result."""

import asyncio
from collections.abc import Generator
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from app.admission.fair_queue import current_slot

Early = TypeVar("Early")
Result = TypeVar("Result")


class Stepping(Generic[Early, Result]):
    """Takes all steps without a pause, also when no caller waits any more. Used on the event loop alone.

    The slot of the request is held until the last step, also if the caller has left by then.

    Attributes:
        early: What the steps yield first; never done where they yield nothing.
        result: What they return or raise.

    Example:
        >>> stepping = Stepping(answerer.begin(question, meter))
        >>> grounding = await stepping.early
        >>> begun = await stepping.result
    """

    def __init__(self, steps: Generator[Early, None, Result]) -> None:
        """Start the thread."""
        loop = asyncio.get_running_loop()
        self.early: asyncio.Future[Early] = loop.create_future()

        def take() -> Result:
            try:
                while True:
                    loop.call_soon_threadsafe(_set, self.early, next(steps))
            except StopIteration as ended:
                result: Result = ended.value
                return result

        self.result: asyncio.Future[Result] = loop.run_in_executor(None, copy_context().run, take)
        if (slot := current_slot.get()) is not None:
            slot.hold_until(self.result)


def _set(future: "asyncio.Future[Any]", value: object) -> None:
    """Set the result of a future that may have one."""
    if not future.done():
        future.set_result(value)
