"""The rows of turns: how one is appended to its conversation, and read."""

from typing import Any

import sqlalchemy as sa

from app.db.cited_passages import note_cited
from app.db.idempotency import note_effect
from app.db.tables.answers import asked_question
from app.db.tables.documents import conversation, conversation_turn
from app.types import KeptTurn, Turn

TURNS = sa.select(*(column for column in conversation_turn.c if column.name != "response"))
"""Every column that `to_turn` reads: a response may be long, and no turn needs it."""

_TITLE_LENGTH = 80  # characters of the first question that name a conversation without a title
_UNSTORABLE = str.maketrans({"\0": "\ufffd", **dict.fromkeys(map(chr, range(55296, 57344)), "�")})


def append_turn(
    connection: sa.Connection, conversation_id: str, turn: Turn, *, now: float, response: str | None = None
) -> bool:
    """Append a turn; False when the conversation was deleted or has the turn already.

    Args:
        connection: A write transaction.
        conversation_id: The conversation, which is locked.
        turn: The question and its answer.
        now: Unix seconds.
        response: What `app.db.stored_responses` keeps with the turn.
    """
    # locked: simultaneous turns are appended one after the other, and a deletion waits or is seen
    mine = conversation.c.id == conversation_id
    title = sa.select(conversation.c.title).where(mine).with_for_update()
    found = connection.execute(title).one_or_none()
    known = sa.select(conversation_turn.c.ordinal).where(conversation_turn.c.request_id == turn.request_id)
    if found is None or connection.execute(known).scalar() is not None:
        return False
    last = sa.select(sa.func.coalesce(sa.func.max(conversation_turn.c.ordinal), 0))
    of_conversation = conversation_turn.c.conversation_id == conversation_id
    connection.execute(
        sa.insert(conversation_turn).values(
            conversation_id=conversation_id,
            ordinal=connection.execute(last.where(of_conversation)).scalar_one() + 1,
            request_id=turn.request_id,
            answered=turn.answered,
            created_at=now,
            question=turn.question,
            standalone=_storable(turn.standalone),
            answer=_storable(turn.answer),
            citations=[dict(citation) for citation in turn.citations],
            making=None if turn.making is None else dict(turn.making),
            response=response,
        )
    )
    note_cited(connection, turn.citations)
    # answered now, and with it the same question where it was interrupted before
    same = sa.and_(asked_question.c.conversation_id == conversation_id, asked_question.c.question == turn.question)
    ended = sa.or_(asked_question.c.request_id == turn.request_id, same)
    connection.execute(sa.delete(asked_question).where(ended))
    named = found.title or " ".join(turn.question.split())[:_TITLE_LENGTH]
    connection.execute(sa.update(conversation).where(mine).values(updated_at=now, title=named))
    note_effect(connection)
    return True


def to_turn(row: sa.Row[Any]) -> KeptTurn:
    """The turn of a row of `TURNS`."""
    return KeptTurn(
        ordinal=row.ordinal,
        request_id=row.request_id,
        question=row.question,
        standalone=row.standalone,
        answer=row.answer,
        answered=row.answered,
        citations=tuple(row.citations),
        making=row.making,
        created_at=row.created_at,
    )


def _storable(text: str | None) -> str | None:
    """A model's text, with U+FFFD for the characters that a database cannot store."""
    return text.translate(_UNSTORABLE) if text is not None else None
