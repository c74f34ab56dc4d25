"""POST /v1/ask: the sources are sent before models read them, and a reading that nobody wants any more is stopped."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from app.types import Operation
from generation.ports import Engine
from retrieval.ports import SpanReader
from retrieval.search import Search
from tests.app.answering.answerers import QuotesAs
from tests.app.answering.gated_reader import FIRST_BATCH, GatedReader
from tests.app.answering.pointing_reader import PointingReader
from tests.app.api.caller import Caller
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch, ScriptedEngine
from tests.app.api.test_reader import QUESTION, SAYS, hits
from tests.app.api.unhurried import DEADLINES, Service
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.generation.fakes import wait_until
from tests.retrieval.fakes import TopicEmbedder

STOPS_WITHIN = 0.2  # seconds
ATTEMPTS = 3  # on a machine with more workers than cores the fastest counts

CHAT = {"model": "footnote", "messages": [{"role": "user", "content": QUESTION}]}


class Served(Service):
    """The application over a fixed search, and what it holds for requests that run."""

    def __init__(self, http: TestClient, state: State, engine: ScriptedEngine) -> None:
        super().__init__(http, state.usage.ledger)
        self.engine = engine
        self._state = state

    def ask(self, **fields: Any) -> tuple[Caller, "Future[None]"]:
        """A request that runs."""
        caller = Caller(self, question=QUESTION, **fields)
        return caller, self.portal.start_task_soon(caller)

    def cancel(self, caller: Caller) -> None:
        response = self.http.post(f"/v1/requests/{caller.request_id}/cancel")
        assert response.json() == {"cancelled": True}, response.text

    def statuses(self, caller: Caller) -> dict[str, tuple[str, int | None]]:
        """The status and the tokens of each call of a request, by what it is made for."""
        return {
            f"{row.operation} {row.event_id.rpartition(':')[2]}": (row.status, row.input_tokens)
            for row in self.ledger.usage(caller.request_id)
        }

    def documents_read(self) -> int:
        """How many documents the report says were read."""
        found = self.http.get("/v1/admin/usage/documents", params={"start_time": 0}).json()["data"]
        return sum(one["num_retrieved"] > 0 for one in found)

    def idle(self) -> bool:
        """Whether no slot is held and nothing can be cancelled."""
        admission, models = self._state.limits.admission, self._state.serving.models
        assert models is not None
        slots = (admission.generation_slots, admission.preparation_slots)
        return not any(line.held for line in slots) and len(models.answerer.running) == 0


READING = f"{Operation.JUDGE} 99"
QUERY = f"{Operation.EMBED_QUERY} 1"
EMBEDDED = TopicEmbedder("ship").count_query(QUESTION)


@pytest.fixture
def serve(state: State) -> Callable[..., Any]:
    @contextmanager
    def start(reader: SpanReader, *, quotes: QuotesAs = QuotesAs.FIRST, deadline_s: float = 600.0) -> Iterator[Served]:
        engine = ScriptedEngine(SAYS)
        models = stations(
            state,
            cast(Engine, engine),
            embedder=TopicEmbedder("ship"),
            search=cast(Search, FixedSearch(hits())),
            reader=reader,
            quotes=quotes,
            limits=ANY_EVIDENCE,
        )
        settings = state.settings.model_copy(update={"answer_deadline_s": deadline_s})
        running = state_with(state, models=models, settings=settings)
        with client_of(running) as http:
            yield Served(http, running, engine)

    return start


def test_the_sources_are_sent_while_the_reader_has_not_read_a_batch(serve) -> None:
    reader = GatedReader("forty ships", asked="ships")
    with serve(reader) as served:
        caller, running = served.ask(stream=True)
        wait_until(lambda: b"event: sources" in caller.received)
        early = caller.events
        assert (caller.status, reader.passages) == (200, [])

        reader.open.set()
        running.result(30)
        whole = served.http.post("/v1/ask", json={"question": QUESTION}).json()

    assert [name for name, _ in early] == ["sources"]
    passages = early[0][1].pop("passages")
    assert [one["chunk_id"] for one in passages] == whole["sources"]["presented"]
    assert early[0][1] == {**whole["sources"], "cited": []}
    names = [name for name, _ in caller.events]
    citations = ["citation"] * len(whole["citations"])
    assert names == ["sources", "delta", *citations, "usage", "done"]
    assert caller.events[1][1]["text"] == whole["answer"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_cancellation_ends_the_answer_while_the_reader_still_reads(serve, stream: bool) -> None:
    seconds: list[float] = []
    for _ in range(ATTEMPTS):
        reader = GatedReader("forty ships", asked="ships")
        with serve(reader) as served:
            caller, running = served.ask(stream=stream)
            wait_until(reader.reached.is_set)
            began = time.monotonic()
            served.cancel(caller)
            running.result(30)
            seconds.append(time.monotonic() - began)

            assert not served.idle(), "the thread still holds its slot"
            if stream:
                names = [name for name, _ in caller.events]
                body = caller.events[-1][1]
                assert names == ["sources", "usage", "done"]
            else:
                body = caller.answer
                assert body["answer"] == ""
            assert (body["finish_reason"], body["answered"], body["reason"]) == ("cancelled", False, "cancelled")
            assert (body["answers"], body["lead"], body["quoted_spans"]) == (None, None, [])

            reader.open.set()
            wait_until(served.idle)
            assert served.statuses(caller) == {QUERY: ("completed", EMBEDDED), READING: ("client_abort", FIRST_BATCH)}
            assert served.documents_read() == 0  # which of them the first batch was of is not known
        if seconds[-1] < STOPS_WITHIN:
            break
    assert min(seconds) < STOPS_WITHIN


@pytest.mark.parametrize("stream", [True, False])
def test_a_response_is_cancelled_at_its_own_address_and_not_stored(serve, stream: bool) -> None:
    reader = GatedReader("forty ships", asked="ships")
    body = {"model": "footnote", "input": QUESTION, "store": True, "stream": stream}
    with serve(reader) as served:
        caller = Caller(served, path="/v1/responses", body=json.dumps(body).encode())
        running = served.portal.start_task_soon(caller)
        wait_until(reader.reached.is_set)
        told = served.http.post(f"/v1/responses/{caller.request_id}/cancel").json()
        running.result(30)
        reader.open.set()
        name, last = caller.events[-1] if stream else ("response.incomplete", {"response": caller.answer})

        assert (told["id"], told["object"], told["status"]) == (caller.request_id, "response", "cancelled")
        assert (name, last["response"]["status"], last["response"]["store"]) == (
            "response.incomplete",
            "cancelled",
            False,
        )
        assert last["response"]["output"][-1]["status"] == "incomplete"
        assert served.http.get(f"/v1/responses/{caller.request_id}").status_code == 404


def test_the_bill_of_a_cancelled_answer_has_the_batch_that_ends_in_time(serve) -> None:
    billed: list[list[dict[str, Any]]] = []
    for _ in range(ATTEMPTS):
        reader = GatedReader("forty ships", asked="ships")
        with serve(reader) as served:
            caller, running = served.ask()
            wait_until(reader.reached.is_set)
            served.cancel(caller)
            reader.open.set()
            running.result(30)
        billed.append(caller.answer["usage"]["auxiliary"][1:])
        if billed[-1]:
            break
    assert billed[-1] == [{"purpose": "locate", "tokens": FIRST_BATCH}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/ask", {"question": QUESTION}),
        ("/v1/chat/completions", CHAT),
        ("/v1/responses", {"model": "footnote", "input": QUESTION}),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_who_hangs_up_ends_the_request_while_the_reader_still_reads(
    serve, path: str, body: dict[str, Any], stream: bool
) -> None:
    reader = GatedReader("forty ships", asked="ships")
    with serve(reader) as served:
        caller = Caller(served, path=path, body=json.dumps({**body, "stream": stream}).encode())
        running = served.portal.start_task_soon(caller)
        wait_until(reader.reached.is_set)
        caller.hang_up()
        running.result(30)
        assert not served.idle(), "the thread still holds its slot"

        reader.open.set()
        wait_until(served.idle)
        assert served.statuses(caller) == {QUERY: ("completed", EMBEDDED), READING: ("client_abort", FIRST_BATCH)}


def test_a_deadline_that_passes_while_the_reader_reads_ends_the_stream_with_an_error(serve) -> None:
    for deadline_s in DEADLINES:
        reader = GatedReader("forty ships", asked="ships")
        with serve(reader, deadline_s=deadline_s) as served:
            caller, running = served.ask(stream=True)
            running.result(60)
            reads, lasts = reader.reached.is_set(), not served.idle()
            reader.open.set()
            wait_until(served.idle)
            statuses = served.statuses(caller)
        if reads:
            break

    assert reads
    assert lasts, "the thread still holds its slot"
    assert [name for name, _ in caller.events] == ["sources", "error"]
    assert caller.events[-1][1]["status"] == 504
    assert statuses[READING] == ("server_abort", FIRST_BATCH)


def test_a_reader_that_breaks_ends_the_stream_with_an_error(serve) -> None:
    with serve(PointingReader("forty ships", failing=True)) as served:
        caller, running = served.ask(stream=True)
        running.result(30)
        wait_until(served.idle)

    assert [name for name, _ in caller.events] == ["sources", "error"]
    assert served.statuses(caller)[READING][0] == "error"


def test_a_reading_that_no_budget_covers_is_refused_before_the_stream_begins(serve) -> None:
    with serve(PointingReader("forty ships")) as served:
        served.http.post("/v1/admin/budgets", json={"limit": 20, "unit": "tokens", "period": "day"})
        response = served.http.post("/v1/ask", json={"question": QUESTION, "stream": True})

    assert (response.status_code, response.json()["type"]) == (429, "urn:footnote:problem:budget-exceeded")


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_cancelled_before_its_generation_generates_nothing(serve, stream: bool) -> None:
    reader = GatedReader("forty ships", asked="ships")
    with serve(reader, quotes=QuotesAs.NOTHING) as served:
        caller, running = served.ask(stream=stream)
        wait_until(reader.reached.is_set)
        served.cancel(caller)
        running.result(30)
        reader.open.set()
        wait_until(served.idle)

    ended = caller.events[-1][1] if stream else caller.answer
    assert (ended["finish_reason"], ended["reason"]) == ("cancelled", "cancelled")
    assert served.engine.requests == []
