"""Measures which edits of a cited passage make an event of a watched question, on real documents edited by rule.

Usage: `python -m tests.bench.ingest.watched_evidence ../shared/data [--documents 100] [--show 10]`.
The edits are those of `tests.bench.ingest.ageing`, and "not" behind the first verb that takes one. Each passage is the
evidence of an answer before, and its edited text, in the next version, that of the answer after.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator

from app.watches.evidence import AnswerEvidence, differences
from tests.bench.ingest.ageing import EditedText, read_arguments

_TAKES_NOT = re.compile(r"\b(is|are|was|were|may|must|shall|will|can|should)\b(?! not\b)")
_ALREADY = re.compile(r"\b(?:no|not|never|none|nor|neither|without|cannot)\b", re.IGNORECASE)


def edited_passages(text: str, *, seed: int) -> Iterator[tuple[str, str, str]]:
    """The edit, the passage before and the passage after, for each passage that has a place in both."""
    edited = EditedText(text, seed=seed)
    for one in edited.expected():
        if one is None or "/" in one.edit:
            continue
        before = text[one.passage.start_char : one.passage.end_char]
        if one.place is not None:
            yield one.edit, before, edited.new[one.place.start_char : one.place.end_char]
        found = _TAKES_NOT.search(before)
        if found is not None and _ALREADY.search(before) is None:
            yield "negate", before, f"{before[: found.end()]} not{before[found.end() :]}"


def evidence(text: str, *, version: int) -> AnswerEvidence:
    """An answer that cites one passage."""
    return AnswerEvidence(answered=True, citations=({"document_id": "doc_1", "version": version, "cited_text": text},))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    arguments, texts = read_arguments(parser)
    passages, events = Counter[str](), Counter[str]()
    kinds, shown = Counter[tuple[str, str]](), Counter[str]()
    for number, (file, text) in enumerate(texts):
        for edit, before, after in edited_passages(text, seed=number):
            found = differences(evidence(before, version=1), evidence(after, version=2))
            passages[edit] += 1
            events[edit] += bool(found)
            kinds.update((edit, kind) for one in found for kind in one.kinds)
            if bool(found) != (edit in {"renumber", "negate"}) and shown[edit] < arguments.show:
                shown[edit] += 1
                told = [one.kinds for one in found]
                sys.stdout.write(f"{file} [{edit}] {told}\n  before {before!r}\n  after  {after!r}\n")
    sys.stdout.write(f"{len(texts)} documents\n{'':10} {'passages':>8} {'events':>7}\n")
    for edit, count in passages.most_common():
        named = ", ".join(f"{kind} {times}" for (one, kind), times in kinds.most_common() if one == edit)
        sys.stdout.write(f"{edit:10} {count:8} {events[edit] / count:7.3f}  {named}\n")


if __name__ == "__main__":
    main()
