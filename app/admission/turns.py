"""A request's turn at preparing: held while a thread works for it, and no longer.

The gate knows when a request begins and ends, and only whoever starts a thread knows when that is done with:
before an answer is generated, or after everybody who waited for it has left. So the turn is in the request's context
(PEP 567), and `app.answering.answerer.prepare` says how long it lasts.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any


class Turn:
    """One request's. `give_back` is called once, when it is over."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._threads = 0
        self._over = False

    def lasts(self, work: "asyncio.Future[Any]") -> None:
        """It is over with this work, and not before."""
        self._threads += 1
        work.add_done_callback(self._done)

    def end(self) -> None:
        """The request has ended; so has its turn, unless a thread still works for it."""
        if not self._threads:
            self._finish()

    def _done(self, _: object) -> None:
        self._threads -= 1
        if not self._threads:
            self._finish()

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._give_back()


current: ContextVar[Turn | None] = ContextVar("turn", default=None)
"""The turn of the request that is being handled, None outside of one."""
