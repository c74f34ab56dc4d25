"""A question is noted before it is answered: after a crash its conversation tells that it was interrupted."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.db.asked_questions import AskedQuestionRepository
from app.db.presence import OwnProcess
from app.server.state import State
from app.types import Role
from generation.types import FinishReason
from retrieval.errors import RetrievalError
from tests.app.api.conversing import BROKEN, FIRST, SECOND, Served, TalkingEngine, serve
from tests.app.api.credentials import key_of
from tests.app.api.test_conversation_interruptions import question_in

__all__ = ["serve"]


def noted(state: State, conversation: str) -> list[str]:
    """The questions that a server would find interrupted if this one died now."""
    later = AskedQuestionRepository(state.database, OwnProcess.alone("boot_later"))
    return [one.question for one in later.interrupted(conversation)]


def test_a_question_is_noted_from_its_start_to_the_end_of_its_answer(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    conversation = served.begin()
    question = question_in(conversation)

    async def read() -> None:
        opened = await served.answerer.begun(question)
        assert noted(state, conversation) == [FIRST]
        assert served.client.get(f"/v1/conversations/{conversation}").json()["interrupted"] == []
        await opened.whole()

    asyncio.run(read())
    assert noted(state, conversation) == []
    assert len(served.turns(conversation)) == 1


@pytest.mark.parametrize("reason", [FinishReason.ERROR, FinishReason.CANCELLED, FinishReason.DEADLINE])
def test_an_answer_that_failed_or_was_stopped_was_not_interrupted(
    serve: Callable[..., Served], state: State, reason: FinishReason
) -> None:
    served = serve(TalkingEngine(reason=reason))
    conversation = served.begin()
    served.client.post("/v1/ask", json={"question": FIRST, "conversation_id": conversation})

    assert noted(state, conversation) == []


def test_a_refused_question_and_one_whose_reader_left_are_not_noted_any_more(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    conversation = served.begin()
    question = question_in(conversation)

    async def leave() -> None:
        events = served.answerer.open(question).events()
        await anext(events)
        await events.aclose()

    asyncio.run(leave())
    assert noted(state, conversation) == []
    refused = replace(question, request_id="req_refused", text=BROKEN)
    with pytest.raises(RetrievalError):
        asyncio.run(served.answerer.begun(refused))
    assert noted(state, conversation) == []


def test_after_a_crash_the_conversation_tells_and_asking_again_mends_it(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    conversation = served.begin()
    served.ask(SECOND, conversation)
    dead = AskedQuestionRepository(state.database, OwnProcess.alone("boot_dead"))
    dead.begin("req_dead", conversation_id=conversation, question=FIRST)

    path = f"/v1/conversations/{conversation}"
    (told,) = served.client.get(path).json()["interrupted"]
    assert (told["request_id"], told["question"]) == ("req_dead", FIRST)
    assert served.client.get(path, headers=key_of(state, Role.ADMIN, tenant="rival")).status_code == 404
    served.ask(FIRST, conversation)
    assert served.client.get(path).json()["interrupted"] == []
