"""The reply to the question back, which of several documents is meant: the name of one of them.

Example:
    >>> asked = Message("assistant", "Which document do you mean? …", asks=True)
    >>> history = (Message("user", "Summarise the document."), asked)
    >>> named_in_reply("the strategic plan", history).words
    frozenset({'strategic', 'plan'})
"""

from collections.abc import Sequence

from app.answering.question import Message
from app.answering.understanding.documents.asking import Wanted, named, wanted_overview

_MOST_CHARACTERS = 200


def named_in_reply(text: str, history: Sequence[Message]) -> Wanted | None:
    """The document that `text` names after the question back; None where that was not the last thing said.

    Every word of the text must be in the document's name, so a new question is not taken for one.

    Args:
        text: As the user wrote it.
        history: Earlier turns, oldest first.
    """
    if len(history) < 2 or len(text) > _MOST_CHARACTERS:
        return None
    asked, replied = history[-2], history[-1]
    if not replied.asks or wanted_overview(asked.content) is None:
        return None
    return named(text)
