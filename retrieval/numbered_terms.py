"""Terms of chunks and questions as 64-bit numbers, which a database indexes without knowing words.

A term is a word or an inner part of the Tantivy index (`retrieval.tantivy_fields`): a stem, a pair of an unspaced
script, a triple of an identifier. Its number is a hash of the tenant, the field and the term; the lowest four bits say
how often a chunk holds it at least. So one index of numbers answers how often each chunk of a tenant holds a term, and
a search does not read the postings of other tenants.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from retrieval.tantivy_fields import LexicalEntry, composed, plain_parts, plain_words, words_analyzer
from retrieval.terms import is_unspaced, windows, words

if TYPE_CHECKING:
    import tantivy

Field: TypeAlias = Literal["word", "part"]
Term: TypeAlias = tuple[Field, str]
"""A term of a question, and the field that holds it."""

LEVELS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32)
"""How often a chunk holds a term at least, by level. Counts in between are rounded down: BM25's gain is small there."""

LEVEL_BITS = 4
"""The lowest bits of a number, which are its level."""

_MOST_PARTS = 256  # of a question: each is a search of its own


@dataclass(frozen=True, slots=True)
class NumberedTerms:
    """What a chunk's row holds: the lengths of both fields in terms, and the sorted numbers of its terms."""

    words: int
    parts: int
    numbers: list[int]


def number_of(tenant_id: str, term: Term) -> int:
    """The number of a term at its first level, a signed 64-bit integer; add i for the level i."""
    text = "\0".join((tenant_id, *term)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), signed=True) >> LEVEL_BITS << LEVEL_BITS


def numbered(entry: LexicalEntry) -> NumberedTerms:
    """The terms of a chunk; the words of its heading count three times, as in the Tantivy index."""
    stems = Counter(_analyzer().analyze(plain_words(entry)))
    parts = Counter(plain_parts(entry))
    held: list[tuple[Term, int]] = [(("word", stem), count) for stem, count in stems.items()]
    held += [(("part", part), count) for part, count in parts.items()]
    numbers: set[int] = set()
    for term, count in held:
        first = number_of(entry.tenant_id, term)
        numbers.update(first + level for level, least in enumerate(LEVELS) if least <= count)
    return NumberedTerms(stems.total(), parts.total(), sorted(numbers))


def asked(query: str) -> list[list[Term]]:
    """The terms of a question, each alone: a chunk is found by any. Stems, and pairs of unspaced scripts."""
    terms = _words(query)
    spaced = [term for term in terms if not is_unspaced(term)]
    stems = dict.fromkeys(stem for term in spaced for stem in _analyzer().analyze(term))
    pairs = _parts(pair for term in terms if is_unspaced(term) for pair in windows(term, size=2))
    found: list[list[Term]] = [[("word", stem)] for stem in stems]
    return found + [[pair] for pair in pairs]


def asked_inside(query: str) -> list[list[Term]]:
    """The triples inside each word of a question: a chunk is found by all triples of a word.

    For a question without a hit; nothing where it has an unspaced script, which pairs look for.
    """
    terms = _words(query)
    if any(is_unspaced(term) for term in terms):
        return []
    groups = [_parts(windows(term, size=3)) for term in terms if len(term) >= 3]
    while sum(map(len, groups)) > _MOST_PARTS:
        groups.pop()
    return groups


def _words(query: str) -> list[str]:
    return words(composed(query))


def _parts(texts: Iterable[str]) -> list[Term]:
    return [("part", text) for text in dict.fromkeys(texts)][:_MOST_PARTS]


@cache
def _analyzer() -> "tantivy.TextAnalyzer":
    return words_analyzer()
