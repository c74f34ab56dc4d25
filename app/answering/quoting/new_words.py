"""Tells whether a text says anything that a question does not say."""

import unicodedata

from retrieval.words import terms


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
