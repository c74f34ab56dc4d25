"""Stored responses are found by those whose conversations they are in, continued at the end, and deleted for good."""

import pytest
import sqlalchemy as sa

from app.db.conversations import ConversationRepository
from app.db.session import Database
from app.db.stored_responses import StoredResponseRepository
from app.db.tables.documents import conversation, conversation_turn
from app.errors import Conflict, NotFound
from tests.app.db.test_conversations import ADMIN, ANN, BEN, LIMITED, RIVAL, turn

TEXT = '{"answer": "\\u0000 \\ud800"}'


@pytest.fixture
def responses(database: Database) -> StoredResponseRepository:
    return StoredResponseRepository(database)


@pytest.fixture
def conversations(database: Database) -> ConversationRepository:
    return ConversationRepository(database)


def counts(database: Database) -> tuple[int, int]:
    """How many conversations and turns there are."""
    with database.read() as connection:
        return (
            connection.execute(sa.select(sa.func.count()).select_from(conversation)).scalar_one(),
            connection.execute(sa.select(sa.func.count()).select_from(conversation_turn)).scalar_one(),
        )


def test_a_response_is_read_as_it_was_stored_by_its_user_and_administrators(
    responses: StoredResponseRepository,
) -> None:
    responses.begin(ANN, turn(1), TEXT)

    for principal in (ANN, ADMIN):
        assert responses.get("req_1", principal=principal) == TEXT
    for principal in (BEN, RIVAL, LIMITED):
        for attempt in (responses.get, responses.delete, responses.conversation_after):
            with pytest.raises(NotFound, match="no such response"):
                attempt("req_1", principal=principal)


def test_the_conversation_of_a_response_is_in_no_list(
    responses: StoredResponseRepository, conversations: ConversationRepository
) -> None:
    responses.begin(ANN, turn(1), TEXT)
    found = responses.conversation_after("req_1", principal=ANN)

    assert conversations.list(ANN, limit=9)[0] == () == conversations.list(ADMIN, limit=9)[0]
    assert conversations.search(ANN, "Question", limit=9)[0] == ()
    assert [one.request_id for one in conversations.turns(found, principal=ANN)] == ["req_1"]


def test_only_the_newest_response_of_a_conversation_is_continued(
    responses: StoredResponseRepository, conversations: ConversationRepository
) -> None:
    responses.begin(ANN, turn(1), TEXT)
    begun = responses.conversation_after("req_1", principal=ANN)
    conversations.append(begun, turn(2))

    with pytest.raises(Conflict, match="continued already"):
        responses.conversation_after("req_1", principal=ANN)
    with pytest.raises(NotFound):
        responses.conversation_after("req_2", principal=ANN)
    assert responses.note("req_2", TEXT)
    assert responses.conversation_after("req_2", principal=ANN) == begun
    assert not responses.note("req_3", TEXT)


def test_a_deleted_response_takes_its_turn_and_the_empty_conversation_with_it(
    database: Database, responses: StoredResponseRepository, conversations: ConversationRepository
) -> None:
    responses.begin(ANN, turn(1), TEXT)
    conversations.append(responses.conversation_after("req_1", principal=ANN), turn(2))
    responses.note("req_2", TEXT)

    responses.delete("req_1", principal=ANN)
    assert counts(database) == (1, 1)
    with pytest.raises(NotFound):
        responses.get("req_1", principal=ANN)
    responses.delete("req_2", principal=ANN)
    assert counts(database) == (0, 0)
    with pytest.raises(NotFound):
        responses.delete("req_2", principal=ANN)


def test_a_turn_of_a_listed_conversation_stays_without_its_response(
    database: Database, responses: StoredResponseRepository, conversations: ConversationRepository
) -> None:
    made = conversations.create(ANN)
    conversations.append(made.id, turn(1))
    responses.note("req_1", TEXT)

    responses.delete("req_1", principal=ANN)

    assert counts(database) == (1, 1)
    with pytest.raises(NotFound):
        responses.get("req_1", principal=ANN)


def test_a_deleted_conversation_takes_its_responses_with_it(
    responses: StoredResponseRepository, conversations: ConversationRepository
) -> None:
    responses.begin(ANN, turn(1), TEXT)
    conversations.delete(responses.conversation_after("req_1", principal=ANN), principal=ANN)

    with pytest.raises(NotFound):
        responses.get("req_1", principal=ANN)
