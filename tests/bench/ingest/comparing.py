"""Measures whether a comparison of two texts tells each change as it was made, on real documents edited by rule.

Usage: `python -m tests.bench.ingest.comparing ../shared/data [--documents 100] [--show 10]`. The texts and their edits
are those of `ageing`. A passage that moved may be told as unchanged, and one beside it as moved: which of the two went
past the other is not known.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from ingestion.comparison import DifferenceKind, TextComparison, TextDifference, compare
from ingestion.revisions import PassageState
from retrieval.types import Span
from tests.bench.ingest.ageing import EditedText, Expected, read_arguments

_TELLINGS: dict[PassageState, set[DifferenceKind | None]] = {
    PassageState.CURRENT: {None, DifferenceKind.MOVED},
    PassageState.MOVED: {None, DifferenceKind.MOVED},
    PassageState.ALTERED: {DifferenceKind.ALTERED},
    PassageState.GONE: {DifferenceKind.REMOVED},
}


class Told:
    """Counts by what was done to a passage: passages, and those that are told rightly."""

    def __init__(self) -> None:
        self.passages: Counter[str] = Counter()
        self.right: Counter[str] = Counter()
        self.seconds = 0.0
        self.characters = 0
        self.differences = 0

    def table(self) -> str:
        """A line for each kind of edit, and one for all."""
        lines = [f"{'':28} {'passages':>8} {'right':>7}"]
        for key, count in sorted(self.passages.items(), key=lambda item: -item[1]):
            lines.append(f"{key:28} {count:8} {self.right[key] / count:7.3f}")
        each = 1e6 * self.seconds / max(1, self.characters)
        return "\n".join(
            [*lines, f"{self.differences} differences; {each:.2f} s of a processor for a million characters"]
        )


def covering(comparison: TextComparison, passage: Span) -> list[TextDifference]:
    """The differences that have a character of a passage of the old text."""
    return [
        one
        for one in comparison.differences
        if one.old is not None and one.old.start_char < passage.end_char and passage.start_char < one.old.end_char
    ]


def is_told(found: Sequence[TextDifference], wanted: Expected) -> bool:
    """Whether each difference over a passage is of the kind of its edit, and where the passage is now."""
    kinds: set[DifferenceKind | None] = {one.kind for one in found} or {None}
    if not kinds <= _TELLINGS[wanted.state]:
        return False
    place = wanted.place
    if place is None or not found:
        return True
    return any(
        one.new is not None and one.new.start_char < place.end_char and place.start_char < one.new.end_char
        for one in found
    )


def measure(texts: Sequence[tuple[str, str]], *, show: int) -> Told:
    """The counts of all passages of texts, given as (file, text)."""
    told = Told()
    for number, (file, text) in enumerate(texts):
        edited = EditedText(text, seed=number)
        started = time.thread_time()
        comparison = compare(edited.old, edited.new)
        told.seconds += time.thread_time() - started
        told.characters += len(edited.old)
        told.differences += len(comparison.differences)
        for wanted in edited.expected():
            if wanted is None or "/" in wanted.edit:
                continue  # two answers are right, or a part of it was edited
            found = covering(comparison, wanted.passage)
            right = is_told(found, wanted)
            for key in (wanted.edit, "all"):
                told.passages[key] += 1
                told.right[key] += right
            if not right and show > 0:
                show -= 1
                words = text[wanted.passage.start_char : wanted.passage.end_char]
                sys.stdout.write(f"{file} [{wanted.edit}] {words!r} is told as {[one.kind.value for one in found]}\n")
    return told


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    arguments, texts = read_arguments(parser)
    sys.stdout.write(f"{len(texts)} documents\n{measure(texts, show=arguments.show).table()}\n")


if __name__ == "__main__":
    main()
