"""Terms of a text for keyword search, and their inverse document frequencies."""

import math
import re
import unicodedata
from collections.abc import Iterator

from retrieval.words import STOP_WORDS

_LEAST = 1e-6


def lucene_idf(holding: int, *, total: int) -> float:
    """BM25's weight of a word that `holding` of `total` texts have, as Lucene and tantivy count it: never negative.

    `ln(1 + (N - n + 0.5) / (n + 0.5))`, Robertson and Zaragoza 2009 with one added against negative weights.
    """
    assert 0 <= holding <= total, "of the texts, some hold it"
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def sqlite_idf(holding: int, *, total: int) -> float:
    """The same as SQLite's `bm25()` counts it (ext/fts5/fts5_aux.c): a word that most texts have weighs 0.000001.

    `ln((N - n + 0.5) / (n + 0.5))`, Robertson and Zaragoza 2009.
    """
    assert 0 <= holding <= total, "of the texts, some hold it"
    return max(math.log((total - holding + 0.5) / (holding + 0.5)), _LEAST)


MAX_TERMS = 64
_MAX_CHARS = 200  # of a term; PostgreSQL refuses words above 2 kB
_MAX_READ = 20_000  # characters of a question that are looked at

# Scripts written without spaces (or, Korean, with particles joined to words): a run is no word.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3130, 0x318F),  # Hangul compatibility
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han
    (0xAC00, 0xD7AF),  # Hangul syllables
    (0xF900, 0xFAFF),  # Han, compatibility
    (0xFF66, 0xFF9F),  # Katakana, half width
    (0x20000, 0x3FFFF),  # Han, further extensions
)

_UNSPACED_CHARACTER = re.compile(f"[{''.join(f'{chr(low)}-{chr(high)}' for low, high in _UNSPACED)}]")
_CANDIDATE = re.compile(r"[^\W_]{4,}")
_LONG_WORD = 12  # characters; from here on a word may well be a compound


def words(text: str) -> list[str]:
    """The distinct words of `text`, in lower case and in order: at most 64, of letters, digits and marks."""
    found: dict[str, None] = {}
    for word in _runs(text[:_MAX_READ]):
        found[word.lower()[:_MAX_CHARS]] = None  # not casefold: the indexes keep ß as it is
        if len(found) >= MAX_TERMS + len(STOP_WORDS):
            break
    telling = [word for word in found if word not in STOP_WORDS]
    return (telling or list(found))[:MAX_TERMS]


def is_unspaced(word: str) -> bool:
    """Whether the word holds a script that is written without spaces."""
    return _UNSPACED_CHARACTER.search(word) is not None


def inner_parts(text: str) -> list[str]:
    """The parts of `text` that can be searched: pairs in unspaced scripts, triples in identifiers and compounds.

    Pairs of characters are the words of an unspaced script (the bigrams of Lucene's CJKAnalyzer). An identifier is
    a word that mixes letters with digits or capitals with small letters. In lower case, in order, repeated as in
    `text`; of ordinary words nothing.
    """
    found: list[str] = []
    if is_unspaced(text):
        for run in filter(is_unspaced, _runs(text)):
            found += windows(run.lower(), size=2)
    for word in _CANDIDATE.findall(text):
        # nearly every word is small letters, and this is half of the time of an index: that comes first
        if len(word) < _LONG_WORD and word.islower() and word.isalpha():
            continue
        if (len(word) >= _LONG_WORD or _is_identifier(word)) and not is_unspaced(word):
            found += windows(word.lower()[:_MAX_CHARS], size=3)
    return found


def windows(word: str, *, size: int) -> list[str]:
    """Every run of `size` characters in `word`, in order; none when it is shorter."""
    return [word[at : at + size] for at in range(len(word) - size + 1)]


def pieces(terms: list[str], *, size: int) -> list[str]:
    """The search terms inside a text: windows of `size` for unspaced scripts, other terms whole.

    Anything shorter than `size` is left out; at most 64, distinct, in order.
    """
    found: dict[str, None] = {}
    for term in terms:
        for piece in windows(term, size=size) if is_unspaced(term) else [term] * (len(term) >= size):
            found[piece] = None
    return list(found)[:MAX_TERMS]


def _runs(text: str) -> Iterator[str]:
    run: list[str] = []
    for character in f"{text} ":
        if unicodedata.category(character)[0] in "LNM":
            run.append(character)
        else:
            if any(each.isalnum() for each in run):
                yield "".join(run)
            run = []


def _is_identifier(word: str) -> bool:
    if any(character.isdigit() for character in word):
        return any(character.isalpha() for character in word)
    return not (word.islower() or word.isupper() or word[1:].islower())
