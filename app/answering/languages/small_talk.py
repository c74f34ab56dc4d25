"""Recognises greetings, thanks, and questions about Footnote and its documents instead of their content.

The patterns are a closed list and must match the whole text. So a question about content is never taken for one:
"What can you do?" is, "What can you do about rust?" is not.

Example:
    >>> small_talk("Hello!")
    SmallTalk(wish=<Wish.GREETING: 'greeting'>, language='en')
    >>> small_talk("Which files mention Oslo?") is None
    True
"""

import re
from dataclasses import dataclass

from app.answering.languages.table import Wish, languages

_MOST_CHARACTERS = 100
_BETWEEN_WORDS = re.compile(r"[^\w']+")


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """A recognised wish, and the ISO 639-1 code of its language."""

    wish: Wish
    language: str


def small_talk(text: str) -> SmallTalk | None:
    """The wish of a text that is no question about content; None for every other text."""
    if len(text) > _MOST_CHARACTERS:
        return None
    words = _BETWEEN_WORDS.sub(" ", text.casefold().replace("’", "'")).strip(" '")
    for code, language in languages().items():
        asked = language.replies.asked if language.replies is not None else {}
        for wish, pattern in asked.items():
            if pattern.fullmatch(words):
                return SmallTalk(wish, code)
    return None
