"""Recognises the question back, which document is meant, in texts of which no more is known than their words."""

from app.answering.languages.table import languages


def asks_which_document(text: str) -> bool:
    """Whether an answer asks which document is meant, in whichever language."""
    replies = (language.replies for language in languages().values())
    return any(texts.which_document in text for texts in replies if texts is not None)
