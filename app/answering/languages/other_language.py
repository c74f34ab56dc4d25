"""Says that a question is in another language than the passages that were found for it.

The default embedder and reader know English, so a German question about English documents is refused although they
may answer it. Nothing is said unless both languages are clear.

Example:
    >>> other_language("Wann wurde das Werk geschlossen?", hits).text
    'Die gefundenen Textstellen sind in einer anderen Sprache (English). Stellen Sie die Frage in dieser Sprache.'
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.languages.recognition import language_of, language_of_prose
from app.answering.languages.table import languages
from retrieval.types import Hit

_READ = 3  # the best hits whose language is recognised


@dataclass(frozen=True, slots=True)
class OtherLanguage:
    """The note: its `text` in the question's language, and the passages' `language` by its own name."""

    text: str
    language: str


def other_language(question: str, hits: Sequence[Hit]) -> OtherLanguage | None:
    """The note; None where the languages are equal or not clear.

    Args:
        question: As it was searched for.
        hits: Best first, evidence or not; the best few must be in one recognised language.
    """
    asked = language_of(question)
    found = {code for hit in hits[:_READ] if (code := language_of_prose(hit.chunk.text)) is not None}
    if asked is None or len(found) != 1 or asked in found:
        return None
    (passages,) = found
    name = languages()[passages].own_name
    return OtherLanguage(languages()[asked].texts.other_language.format(language=name), name)
