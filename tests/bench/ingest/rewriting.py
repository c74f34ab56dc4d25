"""Measures whether a passage that was rewritten is told as altered, and one that gave way to another as removed.

Usage: `python -m tests.bench.ingest.rewriting ../shared/data [--documents 100] [--show 10]`. The texts are those of
`ageing`. The first half of each is edited: sentences get half to four fifths of their words replaced, left out or
followed by others, are deleted, or give way to sentences of the second half, which have the same subject and style.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingestion.comparison import DifferenceKind, TextComparison, compare
from retrieval.sentences import unit_spans
from retrieval.types import Span
from retrieval.words import word_spans
from tests.bench.ingest.ageing import Words, read_arguments, reworded

_LEAST_WORDS = 4  # of a sentence that is asked about
_LONGEST_RUN = 2  # sentences that are edited alike
_EDITS = {"keep": 60, "rewrite": 16, "replace": 10, "delete": 7, "insert": 7}
_KINDS = {
    "keep": None,
    "rewrite": DifferenceKind.ALTERED,
    "replace": DifferenceKind.REMOVED,
    "delete": DifferenceKind.REMOVED,
    "insert": DifferenceKind.ADDED,
}


@dataclass(frozen=True, slots=True)
class Edit:
    """What was done to a sentence: its places in the old text and in the new one, None where it is not in it."""

    name: str
    old: Span | None
    new: Span | None


class RewrittenText:
    """The first half of a text, and what it became."""

    def __init__(self, text: str, *, seed: int) -> None:
        """Edits four sentences in ten."""
        spans = unit_spans(text)
        middle = spans[len(spans) // 2][0]
        self.old = text[:middle]
        self.new = ""
        self.edits: list[Edit] = []
        self._draw = random.Random(seed)
        self._spans = [span for span in spans if span[1] <= middle]
        self._vocabulary = [self.old[a:b].strip(".,;:!?") for a, b in word_spans(self.old)]
        known = {text[start:end] for start, end in self._spans}
        others = (text[start:end] for start, end in spans if start >= middle)
        self._others = [other for other in others if other not in known and _says(other)]
        self._draw.shuffle(self._others)
        self._write()

    def _write(self) -> None:
        draw, at = self._draw, 0
        while at < len(self._spans):
            run = range(at, min(len(self._spans), at + draw.randint(1, _LONGEST_RUN)))
            at = run.stop
            edit = draw.choices([*_EDITS], [*_EDITS.values()])[0]
            if edit in {"replace", "insert"}:
                self._insert(self._others[:_LONGEST_RUN])
                del self._others[:_LONGEST_RUN]
            for sentence in run:
                start, end = self._spans[sentence]
                old, new = Span(start, end), None
                if edit not in {"replace", "delete"}:
                    written = self._rewritten(self.old[start:end]) if edit == "rewrite" else self.old[start:end]
                    new = Span(len(self.new), len(self.new) + len(written))
                    self.new += written + self._ending(sentence)
                self.edits.append(Edit("keep" if edit == "insert" else edit, old, new))

    def _insert(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self.new = self.new.rstrip() + "\n\n" if self.new else ""
            self.edits.append(Edit("insert", None, Span(len(self.new), len(self.new) + len(sentence))))
            self.new += sentence + "\n\n"

    def _rewritten(self, sentence: str) -> str:
        spans = word_spans(sentence)
        gaps = [sentence[first[1] : second[0]] for first, second in pairwise(spans)]
        words: Words = [(sentence[a:b], at) for at, (a, b) in enumerate(spans)]
        changed = reworded(words, self._draw.uniform(0.5, 0.8), self._vocabulary, self._draw)
        parts = [word + (gaps[at] if at is not None and at < len(gaps) else " ") for word, at in changed]
        return "".join(parts).strip()

    def _ending(self, sentence: int) -> str:
        if sentence + 1 == len(self._spans):
            return "\n"
        return self.old[self._spans[sentence][1] : self._spans[sentence + 1][0]] or " "


def _says(sentence: str) -> bool:
    return len(word_spans(sentence)) >= _LEAST_WORDS


def is_right(comparison: TextComparison, edit: Edit) -> bool:
    """Whether all differences over a sentence are of its kind, and one of an altered one leads to its new wording."""
    kind = _KINDS[edit.name]
    found = [
        one
        for one in comparison.differences
        if (edit.old is not None and _meet(one.old, edit.old)) or (edit.old is None and _meet(one.new, edit.new))
    ]
    if {one.kind for one in found} != ({kind} if kind is not None else set()):
        return False
    return kind is not DifferenceKind.ALTERED or any(_meet(one.new, edit.new) for one in found)


def _meet(one: Span | None, other: Span | None) -> bool:
    return one is not None and other is not None and one.start_char < other.end_char and other.start_char < one.end_char


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    arguments, texts = read_arguments(parser)
    passages, right, left = Counter[str](), Counter[str](), arguments.show
    seconds = 0.0
    for number, (file, text) in enumerate(texts):
        edited = RewrittenText(text, seed=number)
        started = time.thread_time()
        comparison = compare(edited.old, edited.new)
        seconds += time.thread_time() - started
        for edit in edited.edits:
            side, span = (edited.new, edit.new) if edit.old is None else (edited.old, edit.old)
            if span is None or not _says(side[span.start_char : span.end_char]):
                continue
            told = is_right(comparison, edit)
            passages.update([edit.name, "all"])
            right.update([edit.name, "all"] if told else [])
            if not told and left > 0:
                left -= 1
                sys.stdout.write(f"{file} [{edit.name}] {side[span.start_char : span.end_char]!r}\n")
    for name, count in passages.most_common():
        sys.stdout.write(f"{name:12} {count:6} {right[name] / count:6.3f}\n")
    sys.stdout.write(f"{seconds:.1f} s of a processor\n")


if __name__ == "__main__":
    main()
