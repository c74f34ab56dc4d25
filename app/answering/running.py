"""The registry of the answers that are being prepared or generated, by which they are cancelled."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.answering.metering.meter import Meter
from app.answering.prepared import Prepared
from app.answering.question import MAX_CHOICES, Question
from app.errors import NotFound
from app.types import Principal, Role


class RunningAnswers:
    """Registers running answers by request, so that they can be cancelled. Safe to use from any thread.

    >>> running = RunningAnswers()
    >>> running.add(prepared)
    >>> running.cancel(question.request_id, principal=question.principal)
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[Principal, Meter]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, prepared: Prepared) -> None:
        """Register an answer whose generation has begun, until `release`."""
        question = prepared.question
        self._open[question.run_id] = (question.principal, prepared.meter)

    @contextmanager
    def preparing(self, question: Question, meter: Meter) -> Iterator[None]:
        """Register an answer that is prepared, until the body of the `with` statement ends or adds it."""
        registered = (question.principal, meter)
        self._open[question.request_id] = registered
        try:
            yield
        finally:
            if self._open.get(question.request_id) is registered:
                del self._open[question.request_id]

    def release(self, prepared: Prepared) -> None:
        """Unregister an answer that is finished or cancelled, and stop its running calls. Idempotent."""
        self._open.pop(prepared.question.run_id, None)
        prepared.close()

    def cancel(self, request_id: str, *, principal: Principal) -> None:
        """Stop every choice of a running request.

        Raises:
            NotFound: No such request runs that the caller may stop.
        """
        run_ids = [Question.choice_id(request_id, choice) for choice in range(MAX_CHOICES)]
        found = filter(None, map(self._open.get, run_ids))
        own = [running for asker, running in found if _may_stop(principal, asker)]
        if not own:
            raise NotFound("No such request is running.")
        for running in own:
            running.close()

    def server_stops(self) -> None:
        """Record every later stop of running work as the server's abort."""
        for _, running in list(self._open.values()):
            running.server_stops()


def _may_stop(caller: Principal, asker: Principal) -> bool:
    """Whether a caller may stop what another asked: with the same key, as the same user, or as an administrator.

    A key that is limited to collections stops only what was asked with it or by its user.
    """
    if caller.tenant_id != asker.tenant_id:
        return False
    itself = caller.key_id == asker.key_id or caller.user_id == asker.user_id
    return itself or (caller.role is Role.ADMIN and caller.collections is None)
