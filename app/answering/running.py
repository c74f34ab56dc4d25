"""The registry of the answers that are being prepared or generated, by which they are cancelled and abandoned."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Protocol

from app.admission.fair_queue import current_slot
from app.answering.calls import Calls
from app.answering.prepared import Prepared
from app.answering.question import MAX_CHOICES, Question
from app.errors import DeadlinePassed, NotFound
from app.types import Principal


class Stoppable(Protocol):
    """Work of one answer that can be stopped from any thread: its calls, or its generation.

    >>> running: Stoppable = prepared
    >>> running.close()
    """

    def close(self) -> None:
        """Stop; the ledger records the client's abort, unless its deadline has passed or the server stops."""

    def server_stops(self) -> None:
        """Record every later stop as the server's abort."""


class RunningAnswers:
    """Registers running answers by request, so that they can be cancelled. Safe to use from any thread.

    >>> running = RunningAnswers()
    >>> prepared = await running.in_thread(question, answerer.prepare)
    >>> running.cancel(question.request_id, principal=question.principal)
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, Stoppable]] = {}
        self._abandoned: set[str] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, prepared: Prepared) -> None:
        """Register an answer whose generation has begun, until `release`."""
        question = prepared.question
        self._open[question.run_id] = (question.principal.tenant_id, prepared)

    @contextmanager
    def preparing(self, question: Question, calls: Calls) -> Iterator[None]:
        """Register the calls that prepare an answer, for the body of the `with` statement."""
        self._open[question.request_id] = (question.principal.tenant_id, calls)
        try:
            yield
        finally:
            del self._open[question.request_id]

    def release(self, prepared: Prepared) -> None:
        """Unregister an answer that is finished or cancelled, and stop its running calls. Idempotent."""
        self._open.pop(prepared.question.run_id, None)
        prepared.close()

    def cancel(self, request_id: str, *, principal: Principal) -> None:
        """Stop every choice of a running request of the caller's tenant.

        Raises:
            NotFound: No such request runs.
        """
        run_ids = [Question.choice_id(request_id, choice) for choice in range(MAX_CHOICES)]
        found = filter(None, map(self._open.get, run_ids))
        own = [running for tenant_id, running in found if tenant_id == principal.tenant_id]
        if not own:
            raise NotFound("No such request is running.")
        for running in own:
            running.close()

    def abandon(self, question: Question) -> None:
        """Stop the calls that prepare the answer to `question`, and begin no generation after them."""
        self._abandoned.add(question.request_id)
        _, running = self._open.get(question.request_id, ("", None))
        if running is not None:
            running.close()

    def is_abandoned(self, question: Question) -> bool:
        """Whether the client has left while the answer is still being prepared."""
        return question.request_id in self._abandoned

    def server_stops(self) -> None:
        """Record every later stop of running work as the server's abort."""
        for _, running in list(self._open.values()):
            running.server_stops()

    async def in_thread(self, question: Question, prepare: Callable[[Question], Prepared]) -> Prepared:
        """Run `prepare(question)` in a worker thread; a caller that is cancelled meanwhile leaves nothing running.

        Raises:
            DeadlinePassed: Also while the thread still runs; its result is then discarded.
        """
        task = asyncio.get_running_loop().run_in_executor(None, copy_context().run, prepare, question)
        if (slot := current_slot.get()) is not None:
            slot.hold_until(task)  # also when the caller has left: the thread is still busy

        def discard(done: asyncio.Future[Prepared]) -> None:
            self._abandoned.discard(question.request_id)
            if done.exception() is None:
                self.release(done.result())

        def abandon() -> None:
            self.abandon(question)
            task.add_done_callback(discard)

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
