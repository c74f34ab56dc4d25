"""app.answering.metering: each model call is reserved, stopped and settled, and counted as its ledger row counts it."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.answering.metering.call_kinds import KINDS, CallNumber
from app.answering.metering.meter import CallsClosed, Meter
from app.answering.metering.token_usage import ModelCall, Purpose
from app.answering.prompt import Component, Prompt, Segment
from app.answering.question import Question
from app.types import Components, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.errors import EngineFull
from generation.ports import Observer
from generation.types import Completion, Delta, FinishReason, GenerationRequest, ModelInfo, SamplingParams, Timings
from retrieval.types import Scope
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.metered import meter_of
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t1", "u1", "k1", Role.MEMBER),
    text="When?",
    scope=Scope(tenant_id="t1"),
)
PROMPT = Prompt((Segment(Component.TEMPLATE, (1, 2, 3, 4)), Segment(Component.QUESTION, (5, 6, 7, 8, 9, 10))))


class OpenStream:
    """A stream that says nothing until its engine ends it."""

    def __init__(self) -> None:
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        yield Delta("nobody reads", 1)

    def close(self) -> None:
        self.closed = True


class HeldEngine(IdleEngine):
    """Accepts calls, unless it is full, and ends them when it is told to."""

    def __init__(self, *, full: bool = False) -> None:
        self.info = ModelInfo(model="m", revision="0", context_window=99, device="cpu", dtype="float32")
        self._full = full
        self.requests: list[GenerationRequest] = []
        self.observers: list[Observer] = []
        self.streams: list[OpenStream] = []

    def submit(self, request: GenerationRequest, *, observer: Observer) -> OpenStream:
        if self._full:
            raise EngineFull(retry_after_s=1)
        self.requests.append(request)
        self.observers.append(observer)
        self.streams.append(OpenStream())
        return self.streams[-1]


@pytest.fixture
def ledger(sqlite_database):
    return Ledger(sqlite_database, boot_id="boot_1")


def completion(reason: FinishReason) -> Completion:
    return Completion("req_1", "text", (1, 2, 3), reason, 10, 0, 2, Timings(1.0, 2.0, 3.0))


def generating(meter: Meter, purpose: Purpose = Purpose.ANSWER) -> None:
    meter.generating(purpose, PROMPT, SamplingParams(max_tokens=8))


@pytest.mark.parametrize(
    ("reason", "left", "status"),
    [
        (FinishReason.STOP, False, "completed"),
        (FinishReason.LENGTH, False, "completed"),
        (FinishReason.REPETITION, False, "completed"),
        (FinishReason.STOP, True, "completed"),
        (FinishReason.CANCELLED, True, "client_abort"),
        (FinishReason.CANCELLED, False, "server_abort"),
        (FinishReason.DEADLINE, False, "server_abort"),
        (FinishReason.ERROR, False, "error"),
    ],
)
def test_how_it_ended_is_on_the_row_with_what_was_generated_and_delivered(ledger, reason, left, status):
    engine = HeldEngine()
    meter = meter_of(QUESTION, ledger, engine=engine)
    generating(meter)
    if left:
        meter.close()
    (observer,) = engine.observers
    observer.checkpoint("req_1", 2)
    observer.finish(completion(reason))
    (row,) = ledger.usage("req_1")

    assert (row.status, row.output_tokens, row.delivered_tokens, row.input_tokens) == (status, 3, 2, 10)
    assert meter.calls == (ModelCall(purpose=Purpose.ANSWER, model="m", prompt_tokens=10, completion_tokens=3),)


@pytest.mark.parametrize(
    ("counted", "components"),
    [
        (0, Components()),
        (12, Components(template=6, question=6)),
        (7, Components(template=1, question=6)),
        (5, Components(template=2, question=3)),  # fewer than the question alone: each part is scaled
    ],
)
def test_an_input_that_another_server_counted_still_adds_up(ledger, counted, components):
    engine = HeldEngine()
    generating(meter_of(QUESTION, ledger, engine=engine))
    engine.observers[0].finish(replace(completion(FinishReason.STOP), prompt_tokens=counted))
    (row,) = ledger.usage("req_1")

    assert (row.components, row.input_tokens) == (components, components.total)


def test_what_the_server_says_it_generated_is_what_is_billed(ledger):
    engine = HeldEngine()
    meter = meter_of(QUESTION, ledger, engine=engine)
    generating(meter)
    engine.observers[0].finish(replace(completion(FinishReason.STOP), reported_tokens=5))
    (row,) = ledger.usage("req_1")

    assert row.output_tokens == 5
    assert [call.completion_tokens for call in meter.calls] == [5]


def test_call_numbers_name_rows_by_their_digits():
    assert [f"req_1:{number}" for number in CallNumber][:5] == [f"req_1:{number}" for number in range(5)]
    assert len(set(CallNumber)) == len(CallNumber.__members__), "no two kinds of calls share a number"
    assert sorted(number for number, _ in KINDS.values()) == sorted(CallNumber), "each purpose has its own"
    assert set(KINDS) == set(Purpose)


def test_calls_are_told_in_the_order_in_which_they_were_reserved(ledger):
    """The answer is generated while its sentences are verified."""
    engine = HeldEngine()
    meter = meter_of(QUESTION, ledger, engine=engine)
    generating(meter)
    for tokens in (5, 6):
        with meter.reading(Purpose.VERIFY, model="judge", revision="r", tokens=tokens):
            pass
    engine.observers[0].finish(completion(FinishReason.STOP))

    assert [(call.purpose, call.prompt_tokens) for call in meter.calls] == [
        ("answer", 10),
        ("verify", 5),
        ("verify", 6),
    ]
    assert [row.event_id for row in ledger.usage("req_1")] == ["req_1:2", "req_1:100", "req_1:101"]


def test_a_further_answer_has_rows_and_calls_of_its_own(ledger):
    engine = HeldEngine()
    first = meter_of(QUESTION, ledger, engine=engine)
    further = first.again(QUESTION.again(1))
    generating(first)
    generating(further)
    engine.observers[1].finish(completion(FinishReason.STOP))

    assert [row.event_id for row in ledger.usage("req_1")] == ["req_1:2", "req_1:2.1"]
    assert [request.id for request in engine.requests] == ["req_1", "req_1.1"]
    assert (len(first.calls), len(further.calls)) == (0, 1)


def test_a_call_that_is_not_stopped_has_read_what_was_reserved(ledger):
    meter = meter_of(QUESTION, ledger)
    with meter.reading(Purpose.RERANK, model="r", revision="1", tokens=9) as on_batch:
        on_batch(4)
        assert [one.prompt_tokens for one in meter.calls] == [4], "so far"
    (row,) = ledger.usage("req_1")

    assert row.input_tokens == 9
    assert [one.prompt_tokens for one in meter.calls] == [9]


def test_a_call_that_fails_is_on_the_bill_as_it_is_on_the_ledger(ledger):
    meter = meter_of(QUESTION, ledger)
    with pytest.raises(LookupError), meter.reading(Purpose.RERANK, model="r", revision="1", tokens=9):
        raise LookupError
    (row,) = ledger.usage("req_1")

    assert (row.status, row.input_tokens) == (UsageStatus.ERROR, 9)
    assert [call.prompt_tokens for call in meter.calls] == [9]


def test_a_closed_meter_ends_a_call_with_its_batch_and_lets_no_helping_call_begin(ledger):
    engine = HeldEngine()
    meter = meter_of(QUESTION, ledger, engine=engine)

    def read() -> None:
        with meter.reading(Purpose.LOCATE, model="r", revision="1", tokens=9) as on_batch:
            on_batch(3)
            meter.close()
            on_batch(5)

    with pytest.raises(CallsClosed):
        read()
    (row,) = ledger.usage("req_1")

    assert (row.status, row.input_tokens) == (UsageStatus.CLIENT_ABORT, 5)
    assert [one.prompt_tokens for one in meter.calls] == [5]
    assert meter.helping(Purpose.REWRITE, PROMPT, max_tokens=8, time_share=2) is None
    with pytest.raises(CallsClosed):
        meter.require_open()
    assert (engine.requests, len(ledger.usage("req_1"))) == ([], 1)


@pytest.mark.parametrize("purpose", [Purpose.ANSWER, Purpose.SUMMARISE])
def test_what_begins_while_it_is_closed_is_stopped_at_once_as_the_clients_abort(ledger, purpose):
    engine = HeldEngine()
    meter = meter_of(QUESTION, ledger, engine=engine)
    meter.close()
    generating(meter, purpose)
    engine.observers[0].finish(completion(FinishReason.CANCELLED))

    assert engine.streams[0].closed
    assert [row.status for row in ledger.usage("req_1")] == [UsageStatus.CLIENT_ABORT]


def test_a_call_that_the_engine_refuses_is_settled_and_costs_nothing(ledger):
    meter = meter_of(QUESTION, ledger, engine=HeldEngine(full=True))
    assert meter.helping(Purpose.SUMMARISE, PROMPT, max_tokens=8, time_share=2) is None
    with pytest.raises(EngineFull):
        generating(meter)

    assert [(row.status, row.input_tokens) for row in ledger.usage("req_1")] == [(UsageStatus.SERVER_ABORT, 0)] * 2
    assert meter.calls == ()


def test_a_helping_call_gets_its_share_of_the_time_and_none_where_it_is_up(ledger):
    engine = HeldEngine()
    hurried = replace(QUESTION, deadline=time.monotonic() + 100)
    assert meter_of(hurried, ledger, engine=engine).helping(Purpose.REWRITE, PROMPT, max_tokens=8, time_share=4)
    assert meter_of(QUESTION, ledger, engine=engine).helping(Purpose.SUMMARISE, PROMPT, max_tokens=8, time_share=4)
    late = meter_of(replace(QUESTION, deadline=0.0), ledger, engine=engine)
    assert late.helping(Purpose.SUMMARISE, PROMPT, max_tokens=8, time_share=4) is None

    deadlines = [request.deadline_s for request in engine.requests]
    assert deadlines[0] == pytest.approx(25, abs=5)
    assert deadlines[1:] == [None]


@pytest.mark.parametrize("deadline_in", [None, 60.0, -0.1])
@pytest.mark.parametrize("stops", [None, "before", "after"])
def test_a_stopped_call_is_the_clients_abort_unless_the_deadline_passed_or_the_server_stops(ledger, deadline_in, stops):
    engine = HeldEngine()
    deadline = None if deadline_in is None else time.monotonic() + deadline_in
    meter = meter_of(replace(QUESTION, deadline=deadline), ledger, engine=engine)
    if stops == "before":
        meter.server_stops()
    generating(meter)
    if stops == "after":
        meter.server_stops()
    meter.close()
    meter.close()
    engine.observers[0].finish(completion(FinishReason.CANCELLED))
    (row,) = ledger.usage("req_1")

    by_server = stops is not None or deadline_in == -0.1
    assert engine.streams[0].closed
    assert row.status == meter.aborted == (UsageStatus.SERVER_ABORT if by_server else UsageStatus.CLIENT_ABORT)


def test_what_waits_for_the_end_of_a_meter_goes_on_when_it_is_closed():
    meter = meter_of(QUESTION)
    assert (meter.closed, meter.ended.done()) == (False, False)

    meter.close()

    assert (meter.closed, meter.ended.result(timeout=0)) == (True, None)
