"""Recognises the language of a text.

The script decides, and within the Latin script function words and letters that few languages share. No model is
loaded. A text that is too short or mixed has no language, and is answered in English.

Example:
    >>> language_of("Wann wurde das Werk geschlossen?")
    'de'
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache

from app.answering.languages.table import ENGLISH, Language, languages
from retrieval.memo import remembered

_WORD = re.compile(r"[^\W\d_]+")
# A Latin word has about five letters, a word of a script without spaces about two characters.
_WORD_OF_UNSPACED = 3
_LETTER_WEIGHT = 2  # a letter that few languages use is better evidence than a short word that several share
_PROSE_SHARE = 0.1  # of a passage's words that are function words, at least
_KANA = re.compile("[\u3041-\u30ff]")


@remembered
def language_of(text: str) -> str | None:
    """The ISO 639-1 code of the language of `text`, one of `languages()`; None where it is not clear."""
    text = unicodedata.normalize("NFC", text)
    groups = _scripts(text)
    if not groups:
        return None
    group, weight = groups.most_common(1)[0]
    if 2 * weight <= groups.total():
        return None
    if group == "LATIN":
        return _latin(text)
    if group == "zh" and _KANA.search(text):
        return "ja"
    known = languages().get(group)
    return None if known is None or known.foreign_letters & set(text.casefold()) else group


def language_of_prose(text: str) -> str | None:
    """As `language_of`, for a passage of a document: None also where it is a table or a list of names.

    In running text of a language in Latin script every third or fourth word is a function word. Single words of a table
    ("Para", "dos", an "ç") say nothing about its language.
    """
    code = language_of(text)
    if code is None or not languages()[code].words:
        return code
    words = _WORD.findall(text.casefold())
    return code if sum(word in languages()[code].words for word in words) >= _PROSE_SHARE * len(words) else None


def spoken(text: str) -> Language:
    """The language of `text`; English where it is not clear."""
    return languages()[language_of(text) or ENGLISH]


def answer_in(text: str) -> str:
    """The prompt's instruction to answer in the language of `text`; "" where that is English or not clear."""
    language = spoken(text)
    return "" if language.code == ENGLISH else f"Answer in {language.name}."


def is_english(question: str) -> bool:
    """Whether a question is in English, the language the default installation's models read, or in no clear one."""
    return language_of(question) in (None, ENGLISH)


@cache
def _languages_of_scripts() -> Mapping[str, str]:
    return {script: language.code for language in languages().values() for script in language.scripts}


@cache
def _unspaced() -> frozenset[str]:
    return frozenset(language.code for language in languages().values() if language.unspaced)


def _scripts(text: str) -> "Counter[str]":
    """Letters by group: a language with a script of its own, or "LATIN". Words count about the same in each."""
    found: Counter[str] = Counter()
    languages_of, unspaced = _languages_of_scripts(), _unspaced()
    for char in text:
        if char.isalpha():
            script = unicodedata.name(char, "").split(" ", 1)[0]
            group = languages_of.get(script, script)
            group = "zh" if group == "ja" else group  # Japanese uses both, and is recognised by its kana
            found[group] += _WORD_OF_UNSPACED if group in unspaced else 1
    return found


def _latin(text: str) -> str | None:
    """The language with most function words and letters in the text; None where there are none, or two are equal."""
    words = Counter(_WORD.findall(text.casefold()))
    # Capitalised words may be foreign names.
    letters = {char for word in text.split() if not word[0].isupper() for char in word.casefold()}
    scores = {
        language.code: sum(words[word] for word in language.words) + _LETTER_WEIGHT * len(letters & language.letters)
        for language in languages().values()
        if not language.scripts
    }
    (best, most), (_, second) = sorted(scores.items(), key=lambda pair: -pair[1])[:2]
    return best if most > second else None
