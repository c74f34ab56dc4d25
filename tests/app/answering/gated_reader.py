"""A fake span reader that reads when it is let in."""

import threading
from collections.abc import Callable, Sequence

from retrieval.types import Pointer, Span
from tests.app.answering.pointing_reader import PointingReader

FIRST_BATCH = 7
"""Tokens of the first batch."""


class GatedReader(PointingReader):
    """Implements `SpanReader`: holds its first batch until `open` is set, then reads as `PointingReader`."""

    def __init__(self, words: str, *, asked: str = "") -> None:
        super().__init__(words, asked=asked)
        self.reached, self.open = threading.Event(), threading.Event()

    def mark(
        self,
        question: str,
        passages: Sequence[str],
        pieces: Sequence[Sequence[Span]],
        *,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Pointer | None]]:
        self.reached.set()
        assert self.open.wait(30)
        if on_batch is not None:
            on_batch(FIRST_BATCH)
        return super().mark(question, passages, pieces, on_batch=on_batch)
