"""The registry of the answers that are being prepared or generated, by which they are cancelled."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.answering.metering.meter import Meter
from app.answering.question import MAX_CHOICES, Question
from app.errors import NotFound
from app.types import Principal, Role


class RunningAnswers:
    """Registers running answers by request, so that they can be cancelled. Safe to use from any thread.

    >>> running = RunningAnswers()
    >>> running.add(question, meter)
    >>> running.cancel(question.request_id, principal=question.principal)
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[Principal, Meter]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, question: Question, meter: Meter) -> None:
        """Register an answer, until `release`."""
        self._open[question.run_id] = (question.principal, meter)

    def release(self, question: Question) -> None:
        """Unregister an answer that has ended or is stopped. Idempotent."""
        self._open.pop(question.run_id, None)

    @contextmanager
    def during(self, question: Question, meter: Meter) -> Iterator[None]:
        """Register an answer until the body of the `with` statement ends."""
        self.add(question, meter)
        try:
            yield
        finally:
            self.release(question)

    def cancel(self, request_id: str, *, principal: Principal) -> None:
        """Stop every choice of a running request.

        Raises:
            NotFound: No such request runs that the caller may stop.
        """
        own = [running for asker, running in self._choices(request_id) if may_stop(principal, asker)]
        if not own:
            raise NotFound("No such request is running.")
        for running in own:
            running.close()

    def stop(self, request_id: str) -> None:
        """Stop every choice of a request that another process was asked to cancel; nothing where none runs."""
        for _, meter in self._choices(request_id):
            meter.close()

    def _choices(self, request_id: str) -> list[tuple[Principal, Meter]]:
        run_ids = [Question.choice_id(request_id, choice) for choice in range(MAX_CHOICES)]
        return [found for found in map(self._open.get, run_ids) if found is not None]

    def server_stops(self) -> None:
        """Record every later stop of running work as the server's abort."""
        for _, running in list(self._open.values()):
            running.server_stops()


def may_stop(caller: Principal, asker: Principal) -> bool:
    """Whether a caller may stop what another asked: with the same key, as the same user, or as an administrator.

    A key that is limited to collections stops only what was asked with it or by its user.
    """
    if caller.tenant_id != asker.tenant_id:
        return False
    itself = caller.caller == asker.caller or caller.user_id == asker.user_id
    return itself or (caller.role is Role.ADMIN and caller.collections is None)
