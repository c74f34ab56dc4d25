"""Retries calls that fail for a temporary reason: a full or restarting server, or a rate limit."""

import time
from collections.abc import Callable
from typing import TypeVar

from app.client import Refused
from app.clock import pause_after

_Result = TypeVar("_Result")
_PASSES = frozenset({429, 502, 503, 504, 507})  # a full disk may be given room
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_CONFLICT = 409  # with Retry-After: the same request is still being answered


class Patience:
    """Retries calls that were refused for a temporary reason.

    The pause is the server's `Retry-After`, else it doubles from 1 s to 60 s.
    """

    def __init__(
        self,
        *,
        limit_s: float | None,
        say: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take its limit.

        Args:
            limit_s: Longest time spent waiting for one call, None for any.
            say: Called with the reason when a wait begins.
            sleep: Waits for some seconds.
        """
        self._limit_s = limit_s
        self._say = say
        self._sleep = sleep

    def __call__(self, call: Callable[[], _Result]) -> _Result:
        """Calls `call` until it succeeds and returns its result.

        Raises:
            Refused: For a reason that stays, or for longer than the limit.
        """
        waited, failures, told = 0.0, 0, False
        while True:
            try:
                return call()
            except Refused as error:
                asked = error.retry_after_s
                if not passes(error):
                    raise
                failures += 1
                pause = pause_after(failures, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
                wait = min(asked, _LONGEST_PAUSE_S) if asked else pause
                # A budget that is filled again next month is no matter of waiting for a moment.
                if self._limit_s is not None and waited + max(wait, asked or 0) > self._limit_s:
                    raise
                if not told:
                    self._say(f"Waiting: {error}")
                    told = True
            self._sleep(wait)
            waited += wait


def passes(error: Refused) -> bool:
    """Whether the same call may succeed later: a temporary error."""
    if error.status is None or error.status in _PASSES:
        return True
    return error.status == _CONFLICT and error.retry_after_s is not None
