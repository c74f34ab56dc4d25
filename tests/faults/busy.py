"""A server in which one rule of ours takes very long in plain Python and looks at no clock and no flag."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.server.state import State
from tests.faults.metered import metered
from tests.generation.fakes import LetterTokenizer

WORD = "interminable"
BUSY_SECONDS = 120.0


class BusyTokenizer(LetterTokenizer):
    """Counts the letters of a text with `WORD` again and again; notes in a file that it has begun."""

    def __init__(self, begun: Path) -> None:
        self._begun = begun

    def encode(self, text: str) -> list[int]:
        if WORD in text:
            self._begun.touch()
            end = time.monotonic() + BUSY_SECONDS
            while time.monotonic() < end:
                sum(ord(letter) for letter in text)
        return super().encode(text)

    def count(self, text: str) -> int:
        return len(self.encode(text))


def begun_file(data_dir: Path) -> Path:
    """Is there once the rule has begun."""
    return data_dir.parent / "busy"


@contextmanager
def metered_busily(data_dir: Path) -> Iterator[State]:
    """As `metered`, with the rule."""
    with metered(data_dir, tokenizer=BusyTokenizer(begun_file(data_dir))) as state:
        yield state
