"""Revision 0039: conversations from before are listed; down keeps the turns of responses, and forgets the responses."""

import pytest
import sqlalchemy as sa

from app.db.conversations import ConversationRepository
from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.stored_responses import StoredResponseRepository
from app.errors import NotFound
from app.types import Principal, Role, Turn

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)


def test_turns_are_kept_in_both_directions_and_responses_are_forgotten(migrated_database: Database) -> None:
    conversations, responses = ConversationRepository(migrated_database), StoredResponseRepository(migrated_database)
    turn = Turn(request_id="req_1", question="Q?", standalone=None, answer="A.", answered=True, citations=())
    listed = conversations.create(ANN)
    responses.begin(ANN, turn, '{"id": "req_1"}')
    assert [one.id for one in conversations.list(ANN, limit=9)[0]] == [listed.id]

    downgrade(migrated_database, "0035")
    with migrated_database.read() as connection:
        kept = connection.execute(sa.text("SELECT request_id, answer FROM conversation_turn")).all()
    upgrade(migrated_database)

    assert [tuple(row) for row in kept] == [("req_1", "A.")]
    assert len(conversations.list(ANN, limit=9)[0]) == 2
    with pytest.raises(NotFound):
        responses.get("req_1", principal=ANN)
