"""Finds the documents that a question names: an inverted index of the words of documents' names.

Passages of contracts, reports or letters of one kind hardly differ, and seldom say which document they are from: that
is in its title and in its file's name. So documents are found by their names first, and passages inside them.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from retrieval.terms import lucene_idf
from retrieval.words import STOP_WORDS, terms

LEAST_SHARE = 0.5
"""Least weight of the words that name a document, of the weight of two words that one document alone has."""

LEAST_HELD = 0.75
"""Least share of a name, by the weight of its words, that the question has; numbers that it lacks do not count."""

MOST_NAMED = 20
"""A question names at most so many documents, those of one company, say; a name that more have tells none apart."""

_CLOSE = 0.8  # of the surest document's weight: others named as surely are meant, too
_COMMON = 0.2  # of the documents: a word that more of them have names none by itself
_FEW = 3  # documents, among which a word always tells
_TWO_WORDS = 2
_INNER = re.compile(  # "AcmeHoldingsInc", "FY2018", "10k"
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)
_PROPER = re.compile(r"(?<=[^\W.!?]\s)[\"'(\u201c\u2018]?[^\W\d_a-z][\w&-]*|(?<!\d)\d{4}(?!\d)|\b[a-z]+[A-Z]\w*")
_BLANK = re.compile(r"(\s+)")


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document that a question names: how surely, in (0, 1], and the words by which."""

    id: str
    share: float
    words: frozenset[str]


class NameIndex:
    """The names of documents, of which each may have several. Not safe to use while another thread writes.

    >>> index = NameIndex()
    >>> index.add("doc_1", group="col_1", names=[name_words("acme_10k_2018")])
    >>> index.named("What did Acme earn in 2018, by its 10-K?")
    [NamedDocument(id='doc_1', share=1.0, words=frozenset({'acme', '10', 'k', '2018'}))]
    """

    def __init__(self) -> None:
        self._names: dict[str, tuple[frozenset[str], ...]] = {}
        self._groups: dict[str, str] = {}
        self._holding: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def add(self, document_id: str, *, group: str, names: Iterable[frozenset[str]]) -> None:
        """Add a document, or replace its names; `group` is what a search may be restricted to."""
        self.remove(document_id)
        self._names[document_id] = tuple(filter(None, names))
        self._groups[document_id] = group
        for word in self._words(document_id):
            self._holding.setdefault(word, set()).add(document_id)

    def remove(self, document_id: str) -> None:
        """Remove a document; an unknown one is ignored."""
        for word in self._words(document_id):
            self._holding[word].discard(document_id)
            if not self._holding[word]:
                del self._holding[word]
        self._names.pop(document_id, None)
        self._groups.pop(document_id, None)

    def named(
        self,
        question: str,
        *,
        allowed: Callable[[str, str], bool] = lambda _document_id, _group: True,
        most: int = MOST_NAMED,
    ) -> list[NamedDocument]:
        """The documents that a question names, the surest first, ties by id; none where no word tells them apart.

        Args:
            question: In any words.
            allowed: Whether a document may be found, by its id and group.
            most: Where more are named as surely, none is.
        """
        total, asked = len(self._names), name_words(question)
        holding = {word: found for word in asked if (found := self._holding.get(word))}
        telling = {word for word, found in holding.items() if len(found) <= max(_FEW, _COMMON * total)}
        proper = telling if question[1:].islower() else telling & _proper_words(question)
        candidates = {one for word in telling for one in holding[word] if allowed(one, self._groups[one])}
        scores = {one: max(self._weight(name, asked) for name in self._names[one]) for one in candidates}
        whole = _TWO_WORDS * lucene_idf(min(1, total), total=total)
        scores = {
            one: score for one, score in scores.items() if score >= LEAST_SHARE * whole and proper & self._words(one)
        }
        best = max(scores.values(), default=0.0)
        sure = sorted((-score, one) for one, score in scores.items() if score >= _CLOSE * best)
        if len(sure) > most:
            return []  # a name that so many have tells none of them apart
        return [NamedDocument(one, -score / max(whole, best), asked & self._words(one)) for score, one in sure]

    def _weight(self, name: frozenset[str], asked: frozenset[str]) -> float:
        """The weight of the words of a name that are asked; 0 where too much of the name is not."""
        held = sum(map(self._idf, name & asked))
        missing = sum(self._idf(word) for word in name - asked if not word.isdecimal())
        return held if held >= LEAST_HELD * (held + missing) else 0.0

    def _idf(self, word: str) -> float:
        return lucene_idf(len(self._holding[word]), total=len(self._names))

    def _words(self, document_id: str) -> frozenset[str]:
        return frozenset[str]().union(*self._names.get(document_id, ()))


def name_words(text: str) -> frozenset[str]:
    """The words of a name or a question, as `retrieval.words.terms`; "AcmeInc", "FY2018" and "10k" are two each."""
    return terms(_INNER.sub(" ", text)) if text else frozenset()


def _proper_words(question: str) -> frozenset[str]:
    """The words of a question that are names or years: large within a sentence, or of four digits."""
    return frozenset[str]().union(*(name_words(match.group()) for match in _PROPER.finditer(question)))


def without_names(question: str, named: frozenset[str]) -> str:
    """A question without the words that are in names; as it is where nothing would be left to search for."""
    kept = [piece for piece in _BLANK.split(question) if not (found := name_words(piece)) or not found <= named]
    left = "".join(kept)
    return left if terms(left) - STOP_WORDS else question
