"""Splits a text into words, in scripts with and without spaces."""

import re
import unicodedata

from retrieval.memo import remembered

# Scripts written without spaces: kana, bopomofo, Han, Thai, Lao, Burmese, Khmer. Hangul has spaces.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u312f\u31a0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_TERM = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")

# Words that carry grammar, not content: no search looks for them, no comparison counts them. English only:
# rarity does the rest.
STOP_WORDS = frozenset(
    """
    a about an and are as at be been but by can could did do does for from had has have how i if in into is it its me
    my no not of on or our shall should so than that the their them then there these they this those to was we were
    what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a list of a hundred quoted words is no easier to read
)

# Their referents are elsewhere in the text. A search without them finds no better (docs/EXPERIMENTS.md).
_PRONOUNS = frozenset(("he", "her", "his", "she", "us"))


def word_spans(text: str) -> list[tuple[int, int]]:
    """`[start, end)` of every run between spaces, and of every character of a script that has none."""
    return [match.span() for match in _WORD.finditer(text)]


@remembered
def terms(text: str) -> frozenset[str]:
    """Terms to compare texts by: folded words without plural endings, character pairs in unspaced scripts.

    Stop words and pronouns are left out, unless the text has no other words.
    """
    found: set[str] = set()
    for match in _TERM.finditer(text):
        word = match.group().casefold()
        if _UNSPACED_RUN.match(word):
            found.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.add(word)
    content = found - STOP_WORDS - _PRONOUNS or found
    return frozenset(_singular(word) for word in content)


def _singular(word: str) -> str:
    """The S-stemmer (Harman 1991, "How effective is suffixing?"): removes plural endings only."""
    if len(word) <= 3:
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")):
        return word[:-1]
    return word


def says_new(question: str, text: str) -> bool:
    """Whether a text has a word that the question does not have; the answer to "A or B?" may have none."""
    return " or " in question or not folded(text) <= folded(question)


def folded(text: str) -> frozenset[str]:
    """The terms of a text without accents, those with hyphens also written as one."""
    text = unaccented(text)
    return terms(text) | terms(text.replace("-", ""))


def unaccented(text: str) -> str:
    """A text whose letters have no accents."""
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
