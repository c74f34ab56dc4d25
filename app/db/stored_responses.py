"""Stored responses of OpenAI's protocol: each is kept with the turn of a conversation, as JSON in ASCII."""

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from app.db.conversation_turns import append_turn
from app.db.conversations import insert_conversation, within
from app.db.idempotency import forget_answers
from app.db.session import Database
from app.db.tables.answers import asked_question, feedback
from app.db.tables.documents import conversation, conversation_turn
from app.errors import Conflict, NotFound
from app.reach import reach_of
from app.types import Principal, Turn


class StoredResponseRepository:
    """Responses of all tenants, by the ids of their requests.

    A response that continues nothing begins a conversation that is in no list; those that continue it are its later
    turns. A caller accesses the responses of its own conversations, as `ConversationRepository` has it, and none of
    conversations that others share.

    Example:
        >>> responses = StoredResponseRepository(database)
        >>> responses.begin(principal, turn, '{"id": "req_1"}')
        >>> responses.get("req_1", principal=principal)
        '{"id": "req_1"}'
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives Unix seconds."""
        self._database = database
        self._clock = clock

    def begin(self, principal: Principal, turn: Turn, response: str) -> None:
        """Store a response as the first turn of a conversation of its own, in one transaction."""
        with self._database.write() as connection:
            now = self._clock()
            begun = insert_conversation(connection, principal, now=now, listed=False)
            append_turn(connection, begun, turn, now=now, response=response)

    def note(self, response_id: str, response: str) -> bool:
        """Store the response of a turn that was appended; False where there is no such turn."""
        turn = conversation_turn.c.request_id == response_id
        with self._database.write() as connection:
            done = connection.execute(sa.update(conversation_turn).where(turn).values(response=response))
        return done.rowcount == 1

    def get(self, response_id: str, *, principal: Principal) -> str:
        """The stored response.

        Raises:
            NotFound: No such response is stored for this caller.
        """
        with self._database.read() as connection:
            return str(_find(connection, response_id, principal).response)

    def conversation_after(self, response_id: str, *, principal: Principal) -> str:
        """The id of the conversation whose newest turn the response is, so that a question continues it.

        Raises:
            NotFound: No such response is stored for this caller.
            Conflict: The conversation has a newer turn.
        """
        with self._database.read() as connection:
            found = _find(connection, response_id, principal)
            of_conversation = conversation_turn.c.conversation_id == found.conversation_id
            newest = sa.select(sa.func.max(conversation_turn.c.ordinal)).where(of_conversation)
            if connection.execute(newest).scalar_one() != found.ordinal:
                raise Conflict("The response was continued already; only the newest of a conversation can be.")
        return str(found.conversation_id)

    def delete(self, response_id: str, *, principal: Principal) -> None:
        """Delete a response with its turn and feedback; in a conversation that is listed the turn stays.

        Raises:
            NotFound: No such response is stored for this caller.
        """
        turn = conversation_turn.c.request_id == response_id
        with self._database.write() as connection:
            found = _find(connection, response_id, principal)
            mine = conversation.c.id == found.conversation_id
            connection.execute(sa.select(conversation.c.id).where(mine).with_for_update())
            if found.listed:
                connection.execute(sa.update(conversation_turn).where(turn).values(response=None))
            else:
                connection.execute(sa.delete(feedback).where(feedback.c.request_id == response_id))
                connection.execute(sa.delete(conversation_turn).where(turn))
                of_conversation = (
                    sa.exists().where(conversation_turn.c.conversation_id == conversation.c.id),
                    sa.exists().where(asked_question.c.conversation_id == conversation.c.id),
                )
                connection.execute(sa.delete(conversation).where(mine, ~sa.or_(*of_conversation)))
            forget_answers(connection, principal.tenant_id)


def _find(connection: sa.Connection, response_id: str, principal: Principal) -> sa.Row[Any, Any, Any, Any]:
    query = (
        sa.select(
            conversation_turn.c.conversation_id,
            conversation_turn.c.ordinal,
            conversation.c.listed,
            conversation_turn.c.response,
        )
        .join(conversation)
        .where(
            conversation_turn.c.request_id == response_id,
            conversation_turn.c.response.is_not(None),
            *within(reach_of(principal)),
        )
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such response. A response is stored where 'store' is true.")
    return row
