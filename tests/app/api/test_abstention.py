"""POST /v1/ask says where answering was given up and on what score: nothing found, the model's refusal, or neither.

A tiny model with random weights: what it says means nothing, how probable it finds the refusal is exact.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, cast

import pytest
import torch
from fastapi.testclient import TestClient

from app.answering.languages.refusals import no_evidence
from app.answering.languages.table import REFUSAL
from app.server.state import State
from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler
from generation.engine import LocalEngine
from generation.ports import Engine, Tokenizer
from generation.runner import ModelRunner
from generation.tokenizer import ChatTokenizer
from generation.types import Abstention
from generation.weights import LoadedModel, adopt_model
from retrieval.search import Search
from retrieval.types import Hit
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch, ScriptedEngine
from tests.app.server.stations import LIMITS, state_with, stations
from tests.generation.tiny import tiny_model, tiny_tokenizer
from tests.retrieval.fakes import chunk, hit

torch.set_num_threads(1)

QUESTION = "How many ships did the harbour master log?"
LOW = 1e-30  # below any probability a tiny model gives


@cache
def loaded() -> LoadedModel:
    return adopt_model(tiny_model("llama", attention="eager"), EngineConfig(model="tiny"))


def found(*, cosine: float) -> tuple[Hit, ...]:
    (one,) = [hit(chunk(1, "The harbour master logged forty ships in May."), rank=1)]
    return (replace(one, scores=replace(one.scores, dense=cosine)),)


class Service:
    """The application over one engine and one search."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    def ask(self, **fields: Any) -> Any:
        body = {"question": QUESTION, "max_output_tokens": 24, **fields}
        return self._client.post("/v1/ask", content=json.dumps(body), headers={"Content-Type": "application/json"})

    def stream(self, **fields: Any) -> tuple[str, dict[str, Any]]:
        """The joined text and the data of `done`."""
        text, done = "", {}
        for event in self.ask(stream=True, **fields).text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in event.splitlines() if ": " in line)
            if lines.get("event") == "delta":
                text += json.loads(lines["data"])["text"]
            elif lines.get("event") == "done":
                done = json.loads(lines["data"])
        return text, done


@pytest.fixture
def serve(state: State) -> Iterator[Callable[..., Service]]:
    closing: list[Callable[[], object]] = []
    tokenizer = ChatTokenizer(tiny_tokenizer())

    def start(
        *, engine: Engine | None = None, hits: tuple[Hit, ...] | None = None, threshold: float | None = None
    ) -> Service:
        if engine is None:
            engine = LocalEngine(
                ModelRunner(loaded(), vocab_size=tokenizer.vocab_size, eos_ids=tokenizer.eos_ids),
                tokenizer,
                EngineConfig(model="tiny"),
                info=replace(loaded().info, context_window=4000),
                eos_ids=tokenizer.eos_ids,
                vocab_size=tokenizer.vocab_size,
                constraints=ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids, vocab_size=tokenizer.vocab_size),
            )
            closing.append(engine.close)
        models = stations(
            state,
            engine,
            tokenizer=cast(Tokenizer, tokenizer),
            search=cast(Search, FixedSearch(found(cosine=0.8) if hits is None else hits)),
            limits=replace(LIMITS, abstention_threshold=threshold),
        )
        client = client_of(state_with(state, models=models))
        client.__enter__()
        closing.append(lambda: client.__exit__(None, None, None))
        return Service(client)

    yield start
    for close in reversed(closing):
        close()


def test_from_the_threshold_on_the_answer_is_exactly_the_refusal_streamed_or_not(serve) -> None:
    service = serve()
    answer = service.ask(abstention_threshold=LOW).json()
    text, done = service.stream(abstention_threshold=LOW)

    assert answer["answer"] == text == REFUSAL
    assert (answer["answered"], answer["reason"], answer["finish_reason"]) == (False, "not_in_sources", "stop")
    assert (answer["citations"], answer["uncited_spans"]) == ([], [])
    assert answer["abstention"]["stage"] == "model"
    assert 0 < answer["abstention"]["score"] < 1
    assert answer["abstention"]["threshold"] == LOW
    assert done["abstention"] == answer["abstention"] | {"score": pytest.approx(answer["abstention"]["score"])}
    assert answer["usage"]["completion_tokens"] > 1, "a refusal by the model is generated and billed"


def test_below_the_threshold_the_question_is_answered_with_its_score_reported(serve) -> None:
    service = serve()
    refused = service.ask(abstention_threshold=LOW).json()
    answered = service.ask(abstention_threshold=1.0).json()
    free = service.ask().json()

    assert not answered["answer"].startswith(REFUSAL[0])
    assert answered["answered"]
    assert answered["abstention"]["stage"] is None
    assert free["abstention"]["threshold"] is None
    for body in (answered, free):
        assert body["abstention"]["score"] == pytest.approx(refused["abstention"]["score"])


def test_the_setting_decides_where_the_request_does_not(serve) -> None:
    service = serve(threshold=LOW)

    assert service.ask().json()["abstention"]["threshold"] == LOW
    assert service.ask(abstention_threshold=1.0).json()["abstention"]["threshold"] == 1.0


@pytest.mark.parametrize("hits", [(), found(cosine=0.1)], ids=["nothing", "something else"])
def test_before_generation_it_is_given_up_on_the_evidence_and_costs_no_output(serve, hits) -> None:
    question = "Who painted it?"
    answer = serve(hits=hits).ask(question=question).json()
    text, done = serve(hits=hits).stream(question=question)

    assert answer["answer"] == text == no_evidence("")
    assert (answer["answered"], answer["reason"]) == (False, "no_evidence")
    assert answer["abstention"]["stage"] == "retrieval"
    assert answer["abstention"]["score"] < answer["abstention"]["threshold"] == LIMITS.min_evidence
    assert {call["purpose"] for call in answer["usage"]["calls"]} == {"embed_query"}
    assert answer["usage"]["completion_tokens"] == 0
    assert done["abstention"] == answer["abstention"]


def test_a_dry_run_reports_the_evidence_and_gives_nothing_up(serve) -> None:
    report = serve().ask(dry_run=True).json()["abstention"]

    assert report["stage"] is None
    assert report["score"] >= report["threshold"]


def test_an_engine_that_sees_no_probabilities_decides_for_itself(serve) -> None:
    service = serve(engine=ScriptedEngine(REFUSAL))
    answer = service.ask(abstention_threshold=0.5).json()

    assert answer["reason"] == "not_in_sources"
    assert answer["abstention"] == {"stage": "model", "score": None, "threshold": None}


def test_the_refusal_is_watched_for_in_prose_with_sources_only(serve) -> None:
    tokenizer = ChatTokenizer(tiny_tokenizer())
    engine = ScriptedEngine("Forty [1].")
    service = serve(engine=engine)
    service.ask(abstention_threshold=0.5)
    service.ask(abstention_threshold=0.5, format="json")
    without = serve(engine=engine, hits=())
    without.ask(abstention_threshold=0.5, on_no_evidence="answer")

    assert [request.abstention for request in engine.requests] == [
        Abstention(tuple(tokenizer.encode(REFUSAL)), 0.5),
        None,
        None,
    ]


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, "often"])
def test_a_threshold_that_is_no_probability_is_refused(serve, threshold) -> None:
    answer = serve(engine=ScriptedEngine("Forty [1].")).ask(abstention_threshold=threshold)

    assert answer.status_code == 422
