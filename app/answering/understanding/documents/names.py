"""Compares the words of a question with the names of documents: case, spaces, and marks between words do not count.

"The 10-Q" is in the names "apple_10q.pdf", "Apple 10 Q" and "Form 10-Q", and "the annual-report" in "AnnualReport.pdf".

Example:
    >>> closest(wanted_overview("Summarise the 10-Q"), [Named("doc_1", 1, "apple_10q.pdf", None)])
    [Named(id='doc_1', version=1, filename='apple_10q.pdf', title=None)]
"""

import re
from collections.abc import Sequence

from app.answering.understanding.documents.asking import Wanted
from app.db.catalogue import Named
from ingestion.titles import words_of_name
from retrieval.words import terms

_RUN = re.compile(r"[^\W\d_]+|\d+")
_MOST_JOINED = 8  # runs of letters or digits that are written as one word
_HALF = 0.5


def closest(wanted: Wanted, candidates: Sequence[Named]) -> list[Named]:
    """The candidates whose names hold most of the words, all as good as the first; none that holds too few.

    A subject that is a document by its own words needs half of them, any other all. Without words one of its kinds must
    be in the name ("the memo"). Of names that hold as many words, those with no others are better where a whole name is
    asked for. Else they are not: a document with a well-chosen name would take the place of the one that is meant.
    """
    scored = []
    for candidate in candidates:
        called = _spellings_of(candidate)
        words, kinds = len(_held(wanted, called)), len(wanted.kinds & called)
        if wanted.explicit:
            enough = words >= _HALF * len(wanted.words) if wanted.words else kinds > 0
        else:
            enough = words == len(wanted.words) and (words > 0 or kinds > 0)
        if enough:
            scored.append(((words, kinds, wanted.whole and _says_no_more(candidate, wanted)), candidate))
    best = max((score for score, _ in scored), default=None)
    return [candidate for score, candidate in scored if score == best]


def names(wanted: Wanted, document: Named) -> bool:
    """Whether a document's name holds all the words of a question."""
    return _held(wanted, _spellings_of(document)) == wanted.words


def searched(wanted: Wanted) -> frozenset[str]:
    """The words to look up in the catalogue: without marks, those of several parts also as one."""
    return (wanted.words | wanted.kinds).union(*map(_joined, wanted.compounds))


def _held(wanted: Wanted, called: frozenset[str]) -> frozenset[str]:
    """The words of a question that a name holds.

    The parts of a compound count together where they are neighbours in the name. Else each counts alone, but a letter,
    which says nothing without its neighbour: "10-Q" is not in "Q3 report 10".
    """
    whole = frozenset[str]().union(*(terms(one) for one in wanted.compounds if _joined(one) & called))
    letters = {part for one in wanted.compounds for part in terms(one) if len(part) == 1}
    return (wanted.words & whole) | (wanted.words & called - letters)


def _says_no_more(document: Named, wanted: Wanted) -> bool:
    """Whether the words of a question are all the words of a document's title or of its file's name."""
    asked = {run for word in wanted.words | wanted.kinds for run in _RUN.findall(word)}
    called = (document.title or "", words_of_name(document.filename))
    return bool(wanted.words) and any(len(runs) > 0 and runs <= asked for runs in map(_runs_of, called))


def _runs_of(name: str) -> set[str]:
    return {run for word in terms(name) for run in _RUN.findall(word)}


def _spellings_of(document: Named) -> frozenset[str]:
    return _spellings(document.title or "") | _spellings(words_of_name(document.filename))


def _spellings(name: str) -> frozenset[str]:
    """The words of a name, and its neighbouring runs of letters and digits written as one word."""
    runs = _RUN.findall(name.casefold())
    joined = (
        "".join(runs[first:last])
        for first in range(len(runs))
        for last in range(first + 1, min(first + _MOST_JOINED, len(runs)) + 1)
    )
    return terms(name).union(joined)


def _joined(compound: str) -> frozenset[str]:
    """A compound without the marks between its parts, as it is and without a plural ending."""
    word = "".join(_RUN.findall(compound))
    return terms(word) | {word}
