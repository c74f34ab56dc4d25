"""The queue of parsed documents that wait to be embedded: a bounded buffer between parser and embedder threads."""

import threading
from collections import deque

from app.jobs.attempt import Attempt


class EmbedQueue:
    """A bounded FIFO queue that gives out small documents in batches. Safe to use from any thread.

    It holds about `most_passages` passages and `most_documents` documents. It is full once either number is reached,
    so the last document put in may exceed `most_passages`.
    """

    def __init__(self, *, most_passages: int, most_documents: int) -> None:
        self._most_passages = most_passages
        self._most_documents = most_documents
        self._attempts: deque[Attempt] = deque()
        self._passages = 0
        self._closed = False
        self._changed = threading.Condition()

    def put(self, attempt: Attempt) -> bool:
        """Add a document, waiting for room; False when the queue was closed and did not take it."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._is_full())
            if self._closed:
                return False
            self._attempts.append(attempt)
            self._passages += attempt.passages
            self._changed.notify_all()
            return True

    def take(self, *, large: bool, most_passages: int, most_documents: int, seconds: float) -> list[Attempt]:
        """Take the next batch: one large document, or small ones up to the given numbers.

        Args:
            large: Whether a large document may be taken; otherwise small ones overtake it.
            most_passages: Passages in a batch of small documents, at most; a batch has at least one document.
            most_documents: Documents in a batch, at most.
            seconds: How long to wait for a document; the result is empty after that.
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
        """Refuse and hand out documents no more; returns those that were left."""
        with self._changed:
            self._closed = True
            left, self._attempts, self._passages = list(self._attempts), deque(), 0
            self._changed.notify_all()
            return left

    def _is_full(self) -> bool:
        return self._passages >= self._most_passages or len(self._attempts) >= self._most_documents

    def _takeable(self, *, large: bool) -> bool:
        return any(large or not attempt.is_large for attempt in self._attempts)
