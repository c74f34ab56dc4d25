"""A readers-writer lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class ReadersWriterLock:
    """Many readers or one writer hold the lock; a waiting writer goes before new readers, so it never starves.

    Not reentrant: a thread that holds it must not acquire it again (Courtois, Heymans and Parnas
    1971, "Concurrent control with readers and writers", the second problem).
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers = 0
        self._writers_waiting = 0
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Holds the lock together with other readers."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writing and not self._writers_waiting)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the lock exclusively."""
        with self._changed:
            self._writers_waiting += 1
            try:
                self._changed.wait_for(lambda: not self._writing and not self._readers)
                self._writing = True
            finally:
                self._writers_waiting -= 1
                self._changed.notify_all()  # after an interrupted wait, readers would wait forever
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
