"""Refuses to answer in the question's language, and recognises a refusal in every language.

`app.answering.abstention` decides when a question is refused.

Example:
    >>> refusal("Wann wurde das Werk geschlossen?")
    'Ich weiß es nicht.'
    >>> refuses("I don't know. [1]", cited=True)
    True
    >>> denies("The sources do not mention a date.")
    True
"""

import re
import unicodedata
from functools import cache

from app.answering.languages.recognition import spoken
from app.answering.languages.table import Language, languages
from retrieval.footnote_numbers import MARKER, without_markers
from retrieval.sentences import sentence_spans

_LETTER = re.compile(r"[^\W\d_]")


def no_evidence(question: str) -> str:
    """The text shown where nothing was found, in the question's language."""
    return spoken(question).texts.no_evidence


def refusal(question: str) -> str:
    """The text shown where the sources hold no answer, in the question's language."""
    return spoken(question).texts.refusal


def unsure(question: str) -> str:
    """The sentence above the nearest passages, in the question's language."""
    return spoken(question).texts.unsure


def sources_disagree(question: str) -> str:
    """What is before the values that sources disagree about, in the question's language."""
    return spoken(question).texts.sources_disagree


def refuses(answer: str, *, cited: bool) -> bool:
    """Whether an answer is a refusal, in whichever language and however it is typed.

    Args:
        answer: The generated text, footnotes included.
        cited: Whether the answer has citations. Then it is a refusal only if it holds nothing else but markers: an
            answer that begins with a refusal, goes on and cites is an answer. Without citations the beginning decides.

    A refusal in the model's own words is one in both cases (`denies`).
    """
    if cited:
        exact = _folded(without_markers(answer)).rstrip(".。। ") in _refusals()
    else:
        exact = _folded(answer).startswith(_refusals())
    return exact or denies(answer)


def denies(answer: str) -> bool:
    """Whether each sentence of an answer says, in words of its own, that the sources do not answer.

    A sentence with a contrast ("but", "however") may answer after all.
    """
    pieces = MARKER.sub("\n\n", _folded(answer))
    sentences = [pieces[start:end] for start, end in sentence_spans(pieces) if _LETTER.search(pieces, start, end)]
    return bool(sentences) and all(any(_denies(one, each) for each in languages().values()) for one in sentences)


def _denies(sentence: str, language: Language) -> bool:
    return language.denials.match(sentence) is not None and language.contrasts.search(sentence) is None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold().replace("’", "'")


@cache
def _refusals() -> tuple[str, ...]:
    return tuple(_folded(language.texts.refusal).rstrip(".。।") for language in languages().values())
