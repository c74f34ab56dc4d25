"""Search over conversations: the condition that one holds a text, and the place where it stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from app.db.tables.documents import conversation, conversation_turn

_AROUND = 60  # characters of a snippet on each side


@dataclass(frozen=True, slots=True)
class ConversationHit:
    """The place in a conversation that holds the text searched for.

    `request_id` is the turn's, None for a title. `snippet` is one line.
    """

    place: Literal["title", "question", "answer"]
    request_id: str | None
    snippet: str


def holds(q: str) -> sa.ColumnElement[bool]:
    """The condition on `conversation` that its title, a question or an answer contains `q`."""
    of_conversation = conversation_turn.c.conversation_id == conversation.c.id
    inside = sa.exists().where(of_conversation, _turn_holds(q)).correlate(conversation)
    return sa.or_(_contains(conversation.c.title, q), inside)


def hits_of(
    connection: sa.Connection, q: str, conversations: Sequence[tuple[str, str | None]]
) -> dict[str, ConversationHit]:
    """The first place in each of the conversations, given by id and title, that contains `q`: its title first."""
    hits: dict[str, ConversationHit] = {}
    for id_, title in conversations:
        if title is not None and (found := _snippet(title, q)) is not None:
            hits[id_] = ConversationHit("title", None, found)
    turn = conversation_turn.c
    others = [id_ for id_, _ in conversations if id_ not in hits]
    first = (
        sa.select(turn.conversation_id, sa.func.min(turn.ordinal).label("ordinal"))
        .where(turn.conversation_id.in_(others), _turn_holds(q))
        .group_by(turn.conversation_id)
        .subquery()
    )
    rows = sa.select(turn.conversation_id, turn.request_id, turn.question, turn.answer).join(
        first, sa.and_(turn.conversation_id == first.c.conversation_id, turn.ordinal == first.c.ordinal)
    )
    for row in connection.execute(rows) if others else ():
        asked = _snippet(row.question, q)
        place: Literal["question", "answer"] = "answer" if asked is None else "question"
        # the database may fold a letter that Python does not: then the beginning is shown
        said = asked or _snippet(row.answer, q) or _line(row.answer[: 2 * _AROUND])
        hits[row.conversation_id] = ConversationHit(place, row.request_id, said)
    for id_, title in conversations:  # changed between two statements, or folded as only the database does
        hits.setdefault(id_, ConversationHit("title", None, _line(title or "")))
    return hits


def _turn_holds(q: str) -> sa.ColumnElement[bool]:
    return sa.or_(_contains(conversation_turn.c.question, q), _contains(conversation_turn.c.answer, q))


def _contains(column: sa.ColumnElement[str | None], q: str) -> sa.ColumnElement[bool]:
    """`q` in either case, its LIKE wildcards escaped. SQLite folds ASCII alone, so other letters are tried in both."""
    forms = {q} if q.isascii() else {q, q.lower(), q.upper(), q.title(), q.capitalize()}
    return sa.or_(*(column.icontains(form, autoescape=True) for form in sorted(forms)))


def _snippet(text: str, q: str) -> str | None:
    """The words around the first place of `q` in a text, None where it is not there."""
    at = text.lower().find(q.lower())
    if at < 0:
        return None
    first, last = max(at - _AROUND, 0), min(at + len(q) + _AROUND, len(text))
    before, after = text[first:at], text[at + len(q) : last]
    before = "…" + (before.partition(" ")[2] or before) if first > 0 else before
    after = (after.rpartition(" ")[0] or after) + "…" if last < len(text) else after
    return _line(before + text[at : at + len(q)] + after)


def _line(text: str) -> str:
    return " ".join(text.split())
