"""Finds the documents that a question names: an inverted index of the words of documents' names.

Passages of contracts, reports or letters of one kind hardly differ, and seldom say which document they are from: that
is in its title and in its file's name. So documents are found by their names first, and passages inside them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from retrieval.terms import lucene_idf
from retrieval.words import STOP_WORDS, terms

LEAST_SHARE = 0.45
"""Least weight of the words that name a document, of the weight of two words that one document alone has."""

MOST_NAMED = 20
"""A question names at most so many documents: those of one company, say."""

_CLOSE = 0.8  # of the surest document's weight: others named as surely are meant, too
_COMMON = 0.2  # of the documents: a word that more of them have names none by itself
_FEW = 3  # documents, among which a word always tells
_TWO_WORDS = 2
_INNER = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # "AcmeHoldingsInc"
_NUMBER = re.compile(r"\d{4,}")  # a year inside a word, as in "FY2018"
_BLANK = re.compile(r"(\s+)")


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document that a question names: how surely, in (0, 1], and the words by which."""

    id: str
    share: float
    words: frozenset[str]


class NameIndex:
    """The names of documents. Not safe to use while another thread writes.

    >>> index = NameIndex()
    >>> index.add("doc_1", group="col_1", words=name_words("acme_10k_2018"))
    >>> index.named(name_words("What did Acme earn in 2018?"))
    [NamedDocument(id='doc_1', share=1.0, words=frozenset({'acme', '2018'}))]
    """

    def __init__(self) -> None:
        self._words: dict[str, frozenset[str]] = {}
        self._groups: dict[str, str] = {}
        self._holding: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._words)

    def add(self, document_id: str, *, group: str, words: frozenset[str]) -> None:
        """Add a document, or replace its name; `group` is what a search may be restricted to."""
        for word in self._words.get(document_id, frozenset()) - words:
            self._holding[word].discard(document_id)
        for word in words:
            self._holding.setdefault(word, set()).add(document_id)
        self._words[document_id] = words
        self._groups[document_id] = group

    def named(
        self,
        asked: frozenset[str],
        *,
        allowed: Callable[[str, str], bool] = lambda _document_id, _group: True,
        most: int = MOST_NAMED,
    ) -> list[NamedDocument]:
        """The documents that a question names, the surest first, ties by id; none where no word tells them apart.

        Args:
            asked: The question's `name_words`.
            allowed: Whether a document may be found, by its id and group.
            most: At most so many.
        """
        total = len(self._words)
        holding = {word: found for word in asked if (found := self._holding.get(word))}
        weights = {word: lucene_idf(len(found), total=total) for word, found in holding.items()}
        telling = [word for word, found in holding.items() if len(found) <= max(_FEW, _COMMON * total)]
        candidates = {one for word in telling for one in holding[word] if allowed(one, self._groups[one])}
        scores = {one: sum(weights[word] for word in weights.keys() & self._words[one]) for one in candidates}
        if not scores:
            return []
        best = max(scores.values())
        whole = _TWO_WORDS * lucene_idf(1, total=total)
        if best < LEAST_SHARE * whole:
            return []
        sure = sorted(
            (-score, one) for one, score in scores.items() if score >= max(_CLOSE * best, LEAST_SHARE * whole)
        )
        return [NamedDocument(one, -score / max(whole, best), asked & self._words[one]) for score, one in sure[:most]]


def name_words(text: str) -> frozenset[str]:
    """The words of a name or a question, as `retrieval.words.terms`; also those inside "AcmeInc" and "FY2018"."""
    return terms(text) | terms(_INNER.sub(" ", text)) | frozenset(_NUMBER.findall(text))


def without_names(question: str, named: frozenset[str]) -> str:
    """A question without the words that are in names; as it is where nothing would be left to search for."""
    kept = [piece for piece in _BLANK.split(question) if not (found := name_words(piece)) or not found <= named]
    left = "".join(kept)
    return left if terms(left) - STOP_WORDS else question
