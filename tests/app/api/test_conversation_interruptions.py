"""Readers who leave in the middle of a turn, and questions asked at the same time."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from app.answering.answers.answer import Answer, TextDelta
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.db.conversations import ConversationRepository
from app.server.state import State
from app.types import Principal, Role, Turn
from retrieval.types import Scope
from tests.app.api.conversing import FIRST, Served, serve

__all__ = ["serve"]


def question_in(conversation: str) -> Question:
    return Question(
        request_id="req_left",
        endpoint="ask",
        principal=Principal("default", "u", "k", Role.ADMIN),
        text=FIRST,
        scope=Scope(tenant_id="default"),
        conversation_id=conversation,
    )


class GatedRepository(ConversationRepository):
    """Holds what is to be stored until it is let in."""

    def __init__(self, state: State) -> None:
        super().__init__(state.database)
        self.reached, self.open, self.stored = threading.Event(), threading.Event(), threading.Event()

    def append(self, conversation_id: str, turn: Turn) -> bool:
        self.reached.set()
        assert self.open.wait(30)
        done = super().append(conversation_id, turn)
        self.stored.set()
        return done


def test_a_reader_who_leaves_while_the_turn_is_stored_changes_nothing(
    serve: Callable[..., Served], state: State
) -> None:
    gated = GatedRepository(state)
    served = serve(repository=gated)
    conversation = served.begin()

    async def read() -> None:
        reader = asyncio.create_task(served.answerer.open(question_in(conversation)).whole())
        assert await asyncio.to_thread(gated.reached.wait, 10)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        gated.open.set()
        assert await asyncio.to_thread(gated.stored.wait, 10)

    asyncio.run(read())
    assert [turn["request_id"] for turn in served.turns(conversation)] == ["req_left"]


def test_a_reader_who_leaves_at_the_last_word_changes_nothing(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    whole = served.ask(FIRST, None)["answer"]
    question = question_in(conversation)

    async def read() -> bool:
        stream = served.answerer.open(question).events()
        said = ""
        async for event in stream:
            assert not isinstance(event, Answer)
            said += event.text if isinstance(event, TextDelta) else ""
            if said == whole:
                await stream.aclose()
                return True
        return False

    assert asyncio.run(read())
    assert [turn["answer"] for turn in served.turns(conversation)] == [whole]


def test_nothing_is_generated_for_a_reader_who_left_during_the_search(serve: Callable[..., Served]) -> None:
    served = serve()
    question = question_in(served.begin())
    meter = served.answerer.meters.of(question)
    meter.close()

    async def answer(asked: Question, meter: Meter | None) -> Answer:
        return await served.answerer.open(asked, meter=meter).whole()

    assert asyncio.run(answer(question, meter)).reason == "cancelled"
    assert (len(served.search.questions), served.engine.requests) == (1, [])
    asyncio.run(answer(replace(question, request_id="req_stays"), None))
    assert [request.id for request in served.engine.requests] == ["req_stays"], "others are answered"


def test_questions_asked_together_are_all_kept(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: served.ask(f"{FIRST} {number}", conversation), range(8)))

    turns = served.turns(conversation)
    assert [turn["ordinal"] for turn in turns] == list(range(1, 9))
    assert {turn["request_id"] for turn in turns} == {answer["id"] for answer in answers}
