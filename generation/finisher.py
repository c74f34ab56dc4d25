"""Reports finished sequences to their observers in a separate thread, because observers may be slow (SQL)."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from generation.delivery import TokenStream
from generation.ports import Observer
from generation.types import Completion

logger = logging.getLogger("footnote.generation")


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """A sequence the engine is done with. `deadline` is the `time.monotonic` second to stop waiting for its reader."""

    completion: Completion
    observer: Observer
    stream: TokenStream
    deadline: float


class Finisher:
    """A thread that notifies observers and then lets streams yield their completion."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._checkpoints: deque[tuple[Observer, str, int]] = deque()
        self._endings: list[Ending] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="footnote-finisher", daemon=True)
        self._thread.start()

    def checkpoint(self, observer: Observer, request_id: str, generated_tokens: int) -> None:
        """Report progress, soon."""
        with self._changed:
            self._checkpoints.append((observer, request_id, generated_tokens))
            self._changed.notify()

    def end(self, ending: Ending) -> None:
        """Finish a sequence once its reader took everything, has gone, or is past the deadline."""
        with self._changed:
            self._endings.append(ending)
            self._changed.notify()

    def wake(self) -> None:
        """A reader took its last delta or has gone: look again."""
        with self._changed:
            self._changed.notify()

    def close(self) -> None:
        """Finish everything that has ended without waiting for readers, then stop. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._something_due():
                    self._changed.wait(self._next_deadline())
                checkpoints, self._checkpoints = self._checkpoints, deque()
                due = [ending for ending in self._endings if self._is_due(ending)]
                self._endings = [ending for ending in self._endings if ending not in due]
                closing = self._closing
            for observer, request_id, generated_tokens in checkpoints:
                _tell(partial(observer.checkpoint, request_id, generated_tokens))
            for ending in due:
                self._finish(ending)
            if closing and not due:
                return

    def _something_due(self) -> bool:
        return self._closing or bool(self._checkpoints) or any(map(self._is_due, self._endings))

    def _is_due(self, ending: Ending) -> bool:
        return self._closing or ending.stream.settled or time.monotonic() >= ending.deadline

    def _next_deadline(self) -> float | None:
        if not self._endings:
            return None
        return max(0.0, min(ending.deadline for ending in self._endings) - time.monotonic())

    def _finish(self, ending: Ending) -> None:
        completion = replace(ending.completion, delivered_tokens=ending.stream.taken_tokens)
        _tell(partial(ending.observer.finish, completion))
        ending.stream.seal(completion)


def _tell(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:
        logger.exception("an observer failed")
