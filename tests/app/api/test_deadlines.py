"""An answer is cut at its deadline, reported as timed out, and settled as aborted by the server."""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import cast

import pytest

from app.server.state import State
from app.types import Components, Operation
from generation.ports import Engine, Observer
from generation.types import (
    Completion,
    Delta,
    FinishReason,
    GenerationRequest,
    ModelInfo,
    Timings,
)
from tests.app.answering.idle_engine import IdleEngine
from tests.app.api.bills import answering
from tests.app.api.caller import Caller, slow_engine
from tests.app.api.unhurried import DEADLINES, Finding, Service, served
from tests.generation.fakes import Gate, Plan, names, wait_until

QUESTION = {"question": "How did revenue do?"}
CHAT = {"model": "footnote", "messages": [{"role": "user", "content": "How did revenue do?"}]}
LATE = "The answer was not finished before its deadline."
SLUG = "urn:footnote:problem:deadline"


class LateStream:
    """Two tokens, and then the deadline."""

    def __init__(self, request: GenerationRequest, observer: Observer) -> None:
        self._request, self._observer = request, observer

    async def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        yield Delta("So", 2)
        late = Completion(
            id=self._request.id,
            text="So",
            token_ids=(83, 111),
            finish_reason=FinishReason.DEADLINE,
            prompt_tokens=len(self._request.prompt),
            cached_tokens=0,
            delivered_tokens=2,
            timings=Timings(queue_ms=0.0, first_token_ms=1.0, total_ms=2.0),
        )
        self._observer.finish(late)
        yield late

    def close(self) -> None:
        """Nothing runs."""


class LateEngine(IdleEngine):
    """Never done in time; remembers how much of it there was."""

    def __init__(self) -> None:
        self.deadlines: list[float | None] = []
        self.info = ModelInfo(model="late", revision="0", context_window=9000, device="cpu", dtype="float32")

    def submit(self, request: GenerationRequest, *, observer: Observer) -> LateStream:
        self.deadlines.append(request.deadline_s)
        return LateStream(request, observer)


@pytest.fixture
def late(state: State) -> Iterator[Service]:
    with served(state, cast(Engine, LateEngine())) as service:
        yield service


@pytest.mark.parametrize(("route", "body"), [("/v1/ask", QUESTION), ("/v1/chat/completions", CHAT)])
def test_c10_a_late_answer_is_a_504_problem_and_our_abort_in_the_ledger(late, route, body):
    response = late.http.post(route, json=body)
    problem = response.json()
    row = late.row(response.headers["x-request-id"])

    assert response.status_code == 504
    assert response.headers["content-type"] == "application/problem+json"
    assert (problem["type"], problem["title"], problem["detail"]) == (SLUG, "Gateway Timeout", LATE)
    assert (row.status, row.output_tokens, row.delivered_tokens) == ("server_abort", 2, 2)
    if route == "/v1/chat/completions":
        assert problem["error"] == {"message": LATE, "type": "server_error", "code": "deadline", "param": None}


def test_a_late_stream_keeps_what_it_said_tells_the_usage_and_ends_with_the_error(late):
    response = late.http.post("/v1/ask", json={**QUESTION, "stream": True})
    events = [block.split("\n") for block in response.text.strip().split("\n\n")]
    kinds = [lines[0].removeprefix("event: ") for lines in events]
    problem = json.loads(events[-1][1].removeprefix("data: "))

    assert response.status_code == 200
    assert kinds[0] == "sources"
    assert kinds[-3:] == ["delta", "usage", "error"]
    assert (problem["type"], problem["status"], problem["instance"]) == (SLUG, 504, response.headers["x-request-id"])
    assert json.loads(events[-2][1].removeprefix("data: "))["completion_tokens"] == 2


@pytest.mark.parametrize("include_usage", [False, True])
def test_c10_a_late_chat_stream_ends_with_openais_error_and_what_it_cost(late, include_usage):
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": include_usage}}
    lines = [line for line in late.http.post("/v1/chat/completions", json=body).text.splitlines() if line]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]

    assert chunks[-1]["error"] == {"message": LATE, "type": "server_error", "code": "deadline", "param": None}
    assert chunks[-1]["usage"]["completion_tokens"] == 2
    assert not any(chunk.get("usage") for chunk in chunks[:-1]), "it is told once"
    assert not any("[DONE]" in line for line in lines)


def test_the_engine_gets_what_is_left_of_the_time_since_the_request_arrived(state):
    engine = LateEngine()
    with served(state, cast(Engine, engine), deadline_s=50.0) as service:
        service.http.post("/v1/ask", json=QUESTION)
        service.http.post("/v1/chat/completions", json=CHAT)

    assert len(engine.deadlines) == 2
    assert all(left is not None and 0 < left < 50 for left in engine.deadlines)


class LongSearch:
    """Holds a search until `released` is set, a minute at most, and tells whether the search has begun and ended."""

    def __init__(self) -> None:
        self.begun, self.released, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        self.released.wait(60)
        self.ended.set()


def test_a_search_that_takes_too_long_is_answered_while_it_lasts_and_nothing_is_generated(state):
    engine = LateEngine()
    for deadline_s in DEADLINES:
        search = LongSearch()
        with served(state, cast(Engine, engine), deadline_s=deadline_s, search=Finding(search)) as service:
            response = service.http.post("/v1/ask", json=QUESTION)
            began, ended = search.begun.is_set(), search.ended.is_set()
            search.released.set()
            request_id = response.headers["x-request-id"]
            wait_until(lambda: all(row.status != "reserved" for row in service.ledger.usage(request_id)))  # noqa: B023
        if began:
            break

    assert began
    assert not ended
    assert (response.status_code, response.json()["type"]) == (504, SLUG)
    assert [(row.operation, row.status) for row in service.ledger.usage(request_id)] == [
        (Operation.EMBED_QUERY, "completed")
    ], "the embedding is all there is to pay"
    assert engine.deadlines == []


def test_c10_the_engine_itself_is_stopped_at_the_deadline_and_its_slot_is_free(state, monkeypatch):
    pause = threading.Event()
    engine = slow_engine(lambda plan: pause.wait(0.02))
    submit = engine.submit

    def hurried(request: GenerationRequest, *, observer: Observer) -> object:
        return submit(replace(request, deadline_s=0.3), observer=observer)  # however long the search took

    monkeypatch.setattr(engine, "submit", hurried)
    with served(state, engine) as service:
        response = service.http.post("/v1/ask", json={**QUESTION, "max_output_tokens": 3000})
        row = service.row(response.headers["x-request-id"])
        running = engine.stats().running
    engine.close()

    assert (response.status_code, response.json()["type"]) == (504, SLUG)
    assert row.status == "server_abort"
    assert row.output_tokens < 3000
    assert running == 0


@pytest.mark.parametrize("stream", [False, True])
def test_c1_a_client_that_leaves_the_waiting_line_pays_for_the_embedding_alone(state, stream):
    gate, seen = Gate(), set()

    def before_step(plan: Plan) -> None:
        seen.update(names(plan))
        gate(plan)

    engine = slow_engine(before_step, max_running=1)
    with served(state, engine) as service:
        first = Caller(service, stream=stream, max_output_tokens=8)
        second = Caller(service, stream=stream, max_output_tokens=8, question="And costs?")
        running = service.portal.start_task_soon(first)
        wait_until(lambda: engine.stats().running == 1)
        waiting = service.portal.start_task_soon(second)
        wait_until(lambda: engine.stats().waiting == 1)
        second.hang_up()
        waiting.result(10)
        gate.free()
        running.result(10)
        wait_until(lambda: service.row(second.request_id).status != "reserved")
        left, stayed = service.row(second.request_id), service.row(first.request_id)
        (embedding,) = service.rows(second.request_id, Operation.EMBED_QUERY)
    engine.close()

    assert seen == {first.request_id}, "the engine never worked for who left"
    assert (left.status, left.input_tokens, left.cached_tokens, left.output_tokens) == ("client_abort", 0, 0, 0)
    assert left.components == Components()
    assert (embedding.status, embedding.input_tokens) == ("completed", len("And costs?"))
    assert (stayed.status, stayed.output_tokens) == ("completed", 8)
    assert stayed.input_tokens > 0


def test_an_answer_cancelled_in_the_waiting_line_reports_the_usage_that_is_billed(state):
    gate = Gate()
    engine = slow_engine(gate, max_running=1)
    with served(state, engine) as service:
        first, second = (Caller(service, max_output_tokens=8) for _ in range(2))
        running = service.portal.start_task_soon(first)
        wait_until(lambda: engine.stats().running == 1)
        waiting = service.portal.start_task_soon(second)
        wait_until(lambda: engine.stats().waiting == 1)
        cancelled = service.http.post(f"/v1/requests/{second.request_id}/cancel").json()
        gate.free()
        waiting.result(10)
        running.result(10)
        row = service.row(second.request_id)
    engine.close()
    usage = second.answer["usage"]

    assert cancelled == {"cancelled": True}
    assert second.answer["finish_reason"] == "cancelled"
    assert (usage["completion_tokens"], usage["by_document"]) == (0, {})
    assert "answer" not in {call["purpose"] for call in usage["calls"]}
    assert row.input_tokens == 0
    assert answering(first.answer["usage"])["prompt_tokens"] > 0
