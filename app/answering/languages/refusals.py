"""Refuses to answer in the question's language, and recognises a refusal in every language.

`app.answering.abstention` decides when a question is refused.

Example:
    >>> refusal("Wann wurde das Werk geschlossen?")
    'Ich weiß es nicht.'
    >>> refuses("I don't know. [1]", cited=True)
    True
"""

import unicodedata
from functools import cache

from app.answering.languages.recognition import spoken
from app.answering.languages.table import languages
from retrieval.footnote_numbers import without_markers


def no_evidence(question: str) -> str:
    """The text shown where nothing was found, in the question's language."""
    return spoken(question).texts.no_evidence


def refusal(question: str) -> str:
    """The text shown where the sources hold no answer, in the question's language."""
    return spoken(question).texts.refusal


def unsure(question: str) -> str:
    """The sentence above the nearest passages, in the question's language."""
    return spoken(question).texts.unsure


def refuses(answer: str, *, cited: bool) -> bool:
    """Whether an answer is a refusal, in whichever language and however it is typed.

    Args:
        answer: The generated text, footnotes included.
        cited: Whether the answer has citations. Then it is a refusal only if it holds nothing else but markers: an
            answer that begins with a refusal, goes on and cites is an answer. Without citations the beginning decides.
    """
    if cited:
        return _folded(without_markers(answer)).rstrip(".。। ") in _refusals()
    return _folded(answer).startswith(_refusals())


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold().replace("’", "'")


@cache
def _refusals() -> tuple[str, ...]:
    return tuple(_folded(language.texts.refusal).rstrip(".。।") for language in languages().values())
