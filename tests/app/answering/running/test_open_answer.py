"""app.answering.running.open_answer: sources first, every answer ends once, and one that is left leaves nothing."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.answers.answer import AbstentionReport, Answer, QuotesFound, SourcesFound, TextDelta
from app.answering.closing import Closing
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.running.open_answer import OpenAnswer
from app.answering.running.registry import RunningAnswers
from app.answering.states.finished import Finished
from app.answering.states.sources import Grounding, Retrieved, TokenBudget
from app.answering.states.strategy import Begun, Sources
from app.db.answer_citations import AnswerOutcome
from app.errors import DeadlinePassed
from app.types import Principal, Role
from app.usage.ledger.ledger import Ledger
from generation.types import TokenLogprob
from retrieval.types import Scope
from tests.app.answering.absent import NoConversations, NoRecord
from tests.app.answering.metered import meter_of

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="When was the plant in Oslo closed?",
    scope=Scope(tenant_id="t"),
    conversation_id="conv_1",
)
GROUNDING = Grounding(
    question=QUESTION,
    retrieved=Retrieved(hits=(), found=(), evidence=AbstentionReport(), vector=cast(Any, None)),
    budget=TokenBudget(window=9, output=2, sources=5, overview=5, count=len, order=lambda sources: []),
)
WHOLE = Finished(reason=None, text="On 4 May.")


class Conversations(NoConversations):
    """Remembers which questions got an answer, and which were left."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []
        self.left_at: list[float] = []

    def keep(self, question: Question, answer: Answer) -> None:
        self.kept.append(answer.text)

    def left(self, question: Question) -> None:
        self.left_at.append(time.monotonic())


class Record(NoRecord):
    """Remembers how questions ended."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def record(self, *_: object, outcome: AnswerOutcome | None = None, **__: object) -> None:
        if outcome is not None:
            self.results.append(outcome.result.value)


class Books:
    """Has no bill."""

    def bill(self, request_id: str) -> None:
        return None


@dataclass
class Pieces:
    """Implements `Writing`: the pieces of a text, and then the end."""

    pieces: tuple[TextDelta, ...]
    end: Finished | Exception
    quotes: QuotesFound | None = None

    async def events(self) -> AsyncGenerator[TextDelta | Finished, None]:
        for piece in self.pieces:
            yield piece
            await asyncio.sleep(0)
        if isinstance(self.end, Exception):
            raise self.end
        yield self.end

    def again(self, question: Question, meter: Meter) -> "Pieces":
        return self


class Work:
    """One answer, whose steps tell the sources, and end when they are let to."""

    def __init__(
        self,
        *,
        final: bool | None = True,
        answer: Finished | Pieces = WHOLE,
        error: Exception | None = None,
        question: Question = QUESTION,
    ) -> None:
        """`final` None tells no sources."""
        self.open, self.reached = threading.Event(), threading.Event()
        self.running, self.conversations, self.record = RunningAnswers(), Conversations(), Record()
        self.closing = Closing(ledger=cast(Ledger, Books()), conversations=self.conversations, citations=self.record)
        self.question = question
        self.meter = meter_of(question)
        self._final, self._answer, self._error = final, answer, error
        self.ended_at: float | None = None

    def steps(self) -> Generator[Sources, None, Begun]:
        if self._final is not None:
            yield Sources(replace(GROUNDING, question=self.question), final=self._final)
        self.reached.set()
        assert self.open.wait(30)
        self.ended_at = time.monotonic()
        if self._error is not None:
            raise self._error
        return Begun(question=self.question, grounding=GROUNDING, answer=self._answer, meter=self.meter)

    def begin(self) -> OpenAnswer:
        return OpenAnswer(self.question, self.meter, self.steps(), running=self.running, closing=self.closing)

    async def settled(self) -> None:
        """Wait until the thread has ended and what it left to be noted is noted."""
        self.open.set()
        async with asyncio.timeout(30):
            while self.ended_at is None or not (self.conversations.left_at or self.conversations.kept):
                await asyncio.sleep(0.001)


async def events(answer: OpenAnswer) -> list[object]:
    return [event async for event in answer.events()]


async def test_final_sources_come_before_the_rest() -> None:
    work = Work()
    answer = work.begin()
    await answer.begun()
    stream = answer.events()

    assert await anext(stream) == SourcesFound(GROUNDING.report, ())
    assert work.ended_at is None
    work.open.set()
    *_, whole = [event async for event in stream]
    assert isinstance(whole, Answer)
    assert (whole.text, work.conversations.kept, work.conversations.left_at) == ("On 4 May.", ["On 4 May."], [])
    assert (len(work.running), work.meter.closed) == (0, True)


@pytest.mark.parametrize("final", [None, False], ids=["none told", "not final"])
async def test_where_the_sources_are_not_final_all_of_it_is_waited_for(final: bool | None) -> None:
    work = Work(final=final)
    answer = work.begin()
    waiting = asyncio.create_task(answer.begun())
    assert await asyncio.to_thread(work.reached.wait, 30)
    await asyncio.sleep(0.01)
    assert not waiting.done()

    work.open.set()
    await waiting
    assert (await answer.whole()).text == "On 4 May."


async def test_the_pieces_of_a_text_are_the_text_and_its_log_probabilities_are_all_told() -> None:
    sure = TokenLogprob(1, -0.1, ())
    pieces = (TextDelta("On ", (sure,)), TextDelta("4 "), TextDelta("", (sure,)))
    work = Work(final=None, answer=Pieces(pieces, WHOLE))
    work.open.set()

    _, *told, whole = await events(work.begin())

    assert told == [TextDelta("On ", (sure,)), TextDelta("4 "), TextDelta("May.", (sure,))]
    assert isinstance(whole, Answer)
    assert whole.text == "On 4 May."


async def test_a_failure_after_the_sources_is_raised_where_the_rest_is_waited_for() -> None:
    work = Work(error=LookupError("broken"))
    answer = work.begin()
    await answer.begun()
    work.open.set()

    with pytest.raises(LookupError, match="broken"):
        await events(answer)
    assert (len(work.running), work.meter.closed) == (0, True)


async def test_an_answer_that_fails_while_it_is_written_is_recorded_and_left() -> None:
    work = Work(final=None, answer=Pieces((TextDelta("On "),), LookupError("broken")))
    work.open.set()

    with pytest.raises(LookupError, match="broken"):
        await events(work.begin())
    await work.settled()
    async with asyncio.timeout(30):
        while not work.record.results:
            await asyncio.sleep(0.001)

    assert (work.record.results, len(work.conversations.left_at)) == (["failed"], 1)


async def test_a_cancelled_answer_ends_without_waiting_for_what_the_thread_reads() -> None:
    work = Work()
    answer = work.begin()
    await answer.begun()
    work.running.cancel("req_1", principal=QUESTION.principal)

    whole = await answer.whole()

    assert (whole.reason, whole.finish_reason, whole.text) == ("cancelled", "cancelled", "")
    assert work.ended_at is None
    await work.settled()
    assert (work.conversations.kept, work.conversations.left_at) == ([""], [])


async def test_a_stream_that_never_begins_is_left_when_its_thread_has_ended() -> None:
    work = Work()
    answer = work.begin()
    await answer.begun()

    answer.close()
    answer.close()
    await asyncio.sleep(0.01)
    assert work.conversations.left_at == [], "the thread may open the conversation yet"
    await work.settled()

    assert work.ended_at is not None
    assert len(work.conversations.left_at) == 1
    assert work.conversations.left_at[0] >= work.ended_at
    assert (len(work.running), work.meter.closed) == (0, True)


async def test_a_caller_that_is_cancelled_leaves_nothing_running() -> None:
    work = Work(final=None)
    waiting = asyncio.create_task(work.begin().begun())
    assert await asyncio.to_thread(work.reached.wait, 30)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert (len(work.running), work.meter.closed) == (0, True)
    await work.settled()
    assert len(work.conversations.left_at) == 1


async def test_a_deadline_that_passes_while_the_thread_reads_ends_the_answer() -> None:
    work = Work(question=replace(QUESTION, deadline=time.monotonic() + 0.05))
    answer = work.begin()

    with pytest.raises(DeadlinePassed):
        await events(answer)
    assert work.meter.closed
    await work.settled()


@given(leaves_after=st.integers(0, 6), streamed=st.booleans())
def test_wherever_an_answer_is_left_its_meter_is_closed_and_its_conversation_waits_no_longer(
    leaves_after: int, streamed: bool
) -> None:
    pieces = Pieces((TextDelta("On "), TextDelta("4 ")), WHOLE)
    work = Work(final=None, answer=pieces if streamed else WHOLE)
    work.open.set()

    async def leave() -> int:
        stream, read = work.begin().events(), 0
        async for _ in stream:
            read += 1
            if read > leaves_after:
                break
        await stream.aclose()
        await work.settled()
        return read

    read = asyncio.run(leave())

    assert (len(work.running), work.meter.closed) == (0, True)
    last = 5 if streamed else 3
    assert read == min(leaves_after + 1, last)
    assert len(work.conversations.kept) + len(work.conversations.left_at) == 1
