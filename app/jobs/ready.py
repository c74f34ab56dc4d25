"""Documents that are read and wait to be embedded: a bounded buffer between the two kinds of threads."""

import threading
from collections import deque

from app.jobs.attempt import Attempt


class Ready:
    """First in, first out; small documents leave together. Safe to use from any thread.

    It holds about `most_passages` passages or `most_documents` documents, whichever is less: a document larger
    than that goes in when there is room for one more passage.
    """

    def __init__(self, *, most_passages: int, most_documents: int) -> None:
        self._most_passages = most_passages
        self._most_documents = most_documents
        self._attempts: deque[Attempt] = deque()
        self._passages = 0
        self._closed = False
        self._changed = threading.Condition()

    def put(self, attempt: Attempt) -> bool:
        """Add a document, as soon as there is room; False: it was closed, and the document is the caller's."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._is_full())
            if self._closed:
                return False
            self._attempts.append(attempt)
            self._passages += attempt.passages
            self._changed.notify_all()
            return True

    def take(self, *, large: bool, most_passages: int, most_documents: int, seconds: float) -> list[Attempt]:
        """What to embed next: one large document, or small ones up to so many passages and documents.

        Nothing when nothing came for so many `seconds`. Large ones stay unless `large`; small ones pass them.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._takeable(large=large), timeout=seconds)
            if self._closed:
                return []
            if large and self._attempts and self._attempts[0].is_large:
                taken = [self._attempts.popleft()]
            else:
                taken, passages = [], 0
                for attempt in self._attempts:
                    if attempt.is_large:
                        continue
                    if taken and (len(taken) >= most_documents or passages + attempt.passages > most_passages):
                        break
                    taken.append(attempt)
                    passages += attempt.passages
                chosen = set(map(id, taken))
                self._attempts = deque(attempt for attempt in self._attempts if id(attempt) not in chosen)
            self._passages -= sum(attempt.passages for attempt in taken)
            self._changed.notify_all()
            return taken

    def close(self) -> list[Attempt]:
        """Take and give nothing more; what was left."""
        with self._changed:
            self._closed = True
            left, self._attempts, self._passages = list(self._attempts), deque(), 0
            self._changed.notify_all()
            return left

    def _is_full(self) -> bool:
        return self._passages >= self._most_passages or len(self._attempts) >= self._most_documents

    def _takeable(self, *, large: bool) -> bool:
        return any(large or not attempt.is_large for attempt in self._attempts)
