"""A question is known while it is answered; one whose process died is an interrupted one."""

import pytest

from app.db.asked_questions import AskedQuestionRepository
from app.db.conversations import ConversationRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from tests.app.db.test_conversations import ANN, turn


@pytest.fixture
def conversations(database: Database) -> ConversationRepository:
    return ConversationRepository(database)


def test_a_question_of_a_process_that_died_is_interrupted(database: Database, conversations) -> None:
    made = conversations.create(ANN).id
    before = AskedQuestionRepository(database, OwnProcess.alone("boot_1", clock=lambda: 7.0))
    before.begin("req_1", conversation_id=made, question="Question 1?")
    before.begin("req_2", conversation_id=made, question="Question 2?")
    before.end("req_2")

    assert before.interrupted(made) == ()
    (found,) = AskedQuestionRepository(database, OwnProcess.alone("boot_2")).interrupted(made)
    assert (found.request_id, found.question, found.created_at) == ("req_1", "Question 1?", 7.0)


def test_it_goes_when_the_same_question_is_answered_and_not_with_another(database: Database, conversations) -> None:
    made = conversations.create(ANN).id
    AskedQuestionRepository(database, OwnProcess.alone("boot_1")).begin(
        "req_0", conversation_id=made, question="Question 1?"
    )
    now = AskedQuestionRepository(database, OwnProcess.alone("boot_2"))

    conversations.append(made, turn(2))
    assert [one.request_id for one in now.interrupted(made)] == ["req_0"]
    conversations.append(made, turn(1))
    assert now.interrupted(made) == ()


def test_a_deleted_conversation_has_none(database: Database, conversations) -> None:
    made = conversations.create(ANN).id
    before = AskedQuestionRepository(database, OwnProcess.alone("boot_1"))
    before.begin("req_1", conversation_id=made, question="Q?")
    conversations.delete(made, principal=ANN)
    before.begin("req_2", conversation_id=made, question="Q?")

    assert AskedQuestionRepository(database, OwnProcess.alone("boot_2")).interrupted(made) == ()
