"""The languages Footnote recognises and answers in, read from the TOML files beside this module.

A language is added as a file named after its ISO 639-1 code. What it may hold is what `Language` says; `words` or
`letters` recognise a language in Latin script, `scripts` any other.

Example:
    >>> languages()["de"].texts.refusal
    'Ich weiß es nicht.'
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from retrieval.words import UNSPACED

_UNSPACED = re.compile(f"[{UNSPACED}]")
ENGLISH = "en"
REFUSAL = "I don't know."
"""The English refusal. The prompt asks the model for exactly these words (`Wording`)."""


class Wish(StrEnum):
    """What small talk wants: a greeting returned, thanks accepted, the list of documents, or what Footnote can do."""

    GREETING = "greeting"
    THANKS = "thanks"
    DOCUMENTS = "documents"
    ABILITIES = "abilities"


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The sentences of an answer in Footnote's own words.

    Attributes:
        no_evidence: Shown where no passage was found that is about the question; no model was called.
        refusal: Shown where passages were read and hold no answer; a model may also write it.
        unsure: The sentence above passages that may not answer.
        other_language: The note that the passages are in another language, whose own name replaces `{language}`.
        sources_disagree: What is before the values that sources disagree about.
    """

    no_evidence: str
    refusal: str
    unsure: str
    other_language: str
    sources_disagree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """Small talk, and the sentences of its replies. Numbers are put in for `{n}`, names for `{names}`.

    Attributes:
        asked: A pattern for each wish, which must match a whole text: case-folded words (ß is ss) with single spaces,
            without punctuation but apostrophes. The file has a list of alternatives for each.
        which_document: The question back where a question is about "this document" and there are several.
    """

    asked: Mapping[Wish, "re.Pattern[str]"]
    which_document: str
    greeting: str
    thanks: str
    abilities: str
    ask: str
    none: str
    one: str
    many: str
    collections: str
    newest: str
    waiting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language.

    Attributes:
        code: ISO 639-1.
        name: In English.
        own_name: In the language itself.
        scripts: First words of the Unicode names of characters that no other language of the table uses.
        unspaced: Whether words are written without spaces between them.
        words: Function words, case-folded; none for a language that its script tells.
        letters: Letters that few of the languages in Latin script use.
        foreign_letters: Letters of its script that other languages use and it does not.
        denials: Begins a sentence by which a language model says that the sources hold no answer; the text is
            case-folded, with `'` for `’`. The file has a list of alternatives.
        contrasts: A word with which such a sentence may answer after all. The file has `_` for a space between them.
        texts: The sentences of its answers.
        replies: None where no small talk is recognised.
    """

    code: str
    name: str
    own_name: str
    scripts: tuple[str, ...] = ()
    unspaced: bool = False
    words: frozenset[str] = frozenset()
    letters: frozenset[str] = frozenset()
    foreign_letters: frozenset[str] = frozenset()
    denials: "re.Pattern[str]"
    contrasts: "re.Pattern[str]"
    texts: Texts
    replies: Replies | None = None


@cache
def languages() -> Mapping[str, Language]:
    """Every language by its code, English first."""
    files = sorted(Path(__file__).parent.glob("*.toml"), key=lambda file: (file.stem != ENGLISH, file.stem))
    return MappingProxyType(
        {file.stem: read_language(file.stem, tomllib.loads(file.read_text("utf-8"))) for file in files}
    )


def read_language(code: str, file: Mapping[str, Any]) -> Language:
    """The language of a file that was parsed.

    Raises:
        KeyError, TypeError: A key is missing, or has no attribute.
    """
    found = dict(file)
    replies = found.pop("replies", None)
    return Language(
        code=code,
        scripts=tuple(found.pop("scripts", ())),
        words=frozenset(found.pop("words", "").split()),
        letters=frozenset(found.pop("letters", "")),
        foreign_letters=frozenset(found.pop("foreign_letters", "")),
        denials=_pattern(found.pop("denials")),
        contrasts=_any_word(found.pop("contrasts").split()),
        texts=Texts(**found.pop("texts")),
        replies=None if replies is None else _read_replies(**replies),
        **found,
    )


def _pattern(alternatives: Sequence[str]) -> "re.Pattern[str]":
    """Any of the alternatives, case-folded as what they are compared with; classes of characters stay as they are."""
    folded = (re.sub(r"\\.|[^\\]+", _case_folded, one) for one in alternatives)
    return re.compile("|".join(f"(?:{one})" for one in folded))


def _any_word(words: Sequence[str]) -> "re.Pattern[str]":
    """Any of the words as a whole one; scripts without spaces have no whole ones."""
    whole = (re.escape(word.replace("_", " ").casefold()) for word in words)
    return re.compile("|".join(one if _UNSPACED.search(one) else rf"(?<!\w){one}(?!\w)" for one in whole))


def _case_folded(piece: "re.Match[str]") -> str:
    return piece[0] if piece[0].startswith("\\") else piece[0].casefold()


def _read_replies(asked: Mapping[str, Sequence[str]], **sentences: str) -> Replies:
    patterns = {Wish(wish): re.compile("|".join(alternatives)) for wish, alternatives in asked.items()}
    return Replies(asked=MappingProxyType(patterns), **sentences)
