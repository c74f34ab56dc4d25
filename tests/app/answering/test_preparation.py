"""app.answering.preparation: sources first, and nothing left running for a caller who is gone."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.answering.answer import Budget, SourceReport
from app.answering.metering.meter import Meter
from app.answering.preparation import Preparation
from app.answering.prepared import PreparationCost, Prepared
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.types import Principal, Role
from retrieval.types import Context, Scope
from tests.app.answering.metered import meter_of, meters

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="When was the plant in Oslo closed?",
    scope=Scope(tenant_id="t"),
)
NOTHING = Context((), (), 0)
SOURCES = Prepared(
    question=QUESTION,
    meter=meter_of(QUESTION),
    context=NOTHING,
    prompt=Prompt(()),
    report=SourceReport.of((), NOTHING),
    budget=Budget(0, 0, 0),
    cost=PreparationCost(started=0.0, retrieve_ms=0.0),
    by_quotes=True,
)
WHOLE = replace(SOURCES, note="whole")


class Work:
    """Prepares: tells the sources, and the rest when it is let in; stops where the calls are closed by then."""

    def __init__(self, sources: Prepared | None = SOURCES, *, error: Exception | None = None) -> None:
        self._sources, self._error = sources, error
        self.open = threading.Event()
        self.discarded: list[Prepared] = []

    def __call__(self, question: Question, /, *, meter: Meter, on_sources: Callable[[Prepared], None]) -> Prepared:
        if self._sources is not None:
            on_sources(self._sources)
        assert self.open.wait(30)
        if self._error is not None:
            raise self._error
        return replace(WHOLE, cancelled=meter.closed)

    def begin(self) -> Preparation:
        return Preparation(QUESTION, self, meters=meters(), discard=self.discarded.append)


async def discarded(work: Work) -> Prepared:
    async with asyncio.timeout(30):
        while not work.discarded:
            await asyncio.sleep(0.001)
    (one,) = work.discarded
    return one


async def test_the_sources_come_before_the_rest() -> None:
    work = Work()
    sources = await work.begin().sources()
    assert (sources.note, sources.rest is not None) == ("", True)

    work.open.set()
    assert sources.rest is not None
    assert await sources.rest.whole() == WHOLE
    assert work.discarded == []


@pytest.mark.parametrize("sources", [None, replace(SOURCES, by_quotes=False)], ids=["none told", "generated"])
async def test_where_quotes_do_not_answer_all_of_it_is_waited_for(sources: Prepared | None) -> None:
    work = Work(sources)
    waiting = asyncio.create_task(work.begin().sources())
    await asyncio.sleep(0)
    assert not waiting.done()

    work.open.set()
    assert await waiting == WHOLE


async def test_a_failure_after_the_sources_is_raised_where_the_rest_is_waited_for() -> None:
    work = Work(error=LookupError("broken"))
    sources = await work.begin().sources()
    work.open.set()

    assert sources.rest is not None
    with pytest.raises(LookupError, match="broken"):
        await sources.rest.whole()


async def test_a_stream_that_never_begins_stops_the_thread_and_discards_its_result() -> None:
    work = Work()
    sources = await work.begin().sources()

    sources.close()
    work.open.set()

    assert (await discarded(work)).cancelled


async def test_a_caller_who_is_cancelled_stops_the_thread_and_discards_its_result() -> None:
    work = Work(None)
    waiting = asyncio.create_task(work.begin().whole())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    work.open.set()

    assert (await discarded(work)).cancelled
