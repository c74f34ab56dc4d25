"""POST /v1/chat/completions in JSON: the content is the engine's text, verbatim, and nothing else."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from generation.constraints import ConstraintCompiler
from generation.ports import Observer
from generation.tokenizer import ChatTokenizer
from generation.types import (
    CitationMarkers,
    Completion,
    Delta,
    FinishReason,
    GenerationRequest,
    JsonSchema,
    ModelInfo,
    Timings,
)
from retrieval.ports import Embedder, Vectors
from retrieval.search import Search
from retrieval.types import EmbedderInfo, Hit, Scope, SearchMode
from tests.app.answering.generating.test_footnote_writer import CONTENT, SOURCES
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import client_of
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.generation.tiny import tiny_tokenizer

DOCUMENT = '{"claim": "Revenue rose 12 percent. [1] [9]",\n "parts": [1, 7]}'
SCHEMA = {"type": "object", "properties": {"claim": {"type": "string"}}, "required": ["claim"]}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "claim", "schema": SCHEMA, "strict": True}}


class ScriptedStream:
    def __init__(self, request: GenerationRequest, says: str, observer: Observer) -> None:
        self._request, self._says, self._observer = request, says, observer

    async def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        for at in range(0, len(self._says), 5):
            yield Delta(self._says[at : at + 5], 5)
        completion = Completion(
            id=self._request.id,
            text=self._says,
            token_ids=tuple(map(ord, self._says)),
            finish_reason=FinishReason.STOP,
            prompt_tokens=len(self._request.prompt),
            cached_tokens=0,
            delivered_tokens=len(self._says),
            timings=Timings(queue_ms=0.0, first_token_ms=1.0, total_ms=2.0),
        )
        self._observer.finish(completion)
        yield completion

    def close(self) -> None:
        """Nothing runs."""


class ScriptedEngine(IdleEngine):
    """Says one text whatever is asked; compiles what is asked of its output as the real one does."""

    def __init__(self, says: str) -> None:
        tokenizer = ChatTokenizer(tiny_tokenizer())
        self.says = says
        self._compiler = ConstraintCompiler(tokenizer, eos_ids=tokenizer.eos_ids, vocab_size=tokenizer.vocab_size)
        self.requests: list[GenerationRequest] = []
        self.info = ModelInfo(model="scripted", revision="0", context_window=9000, device="cpu", dtype="float32")

    def submit(self, request: GenerationRequest, *, observer: Observer) -> ScriptedStream:
        if request.constraint is not None:
            self._compiler.compile(request.constraint)
        self.requests.append(request)
        return ScriptedStream(request, self.says, observer)


class FixedSearch:
    """Finds the same hits whatever is asked."""

    def __init__(self, hits: tuple[Hit, ...]) -> None:
        self._hits = hits

    def search(
        self, question: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        vector()
        return self._hits


class CountingEmbedder:
    info = EmbedderInfo(model="counting", revision="0", dim=4, max_tokens=64)

    def count_tokens(self, text: str) -> int:
        return len(text)

    def count_query(self, text: str) -> int:
        return len(text)

    def embed_query(self, text: str) -> Vectors:
        return np.full(4, 0.5, dtype=np.float32)


class Service:
    """The application over a scripted engine and a fixed search."""

    def __init__(self, client: TestClient, engine: ScriptedEngine) -> None:
        self._client, self.engine = client, engine

    def ask(self, **fields: Any) -> Any:
        body = {"model": "footnote", "messages": [{"role": "user", "content": "How did revenue do?"}], **fields}
        headers = {"Content-Type": "application/json"}
        return self._client.post("/v1/chat/completions", content=json.dumps(body), headers=headers)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Any request."""
        return self._client.post(path, json=body)

    def answer(self, **fields: Any) -> Any:
        """The same question of /v1/ask."""
        return self._client.post("/v1/ask", json={"question": "How did revenue do?", **fields})


@pytest.fixture
def serve(state: State) -> Iterator[Callable[..., Service]]:
    clients = []

    def start(*, says: str = DOCUMENT, found: bool = True) -> Service:
        engine = ScriptedEngine(says)
        hits = tuple(source.hit for source in SOURCES) if found else ()
        models = stations(
            state,
            engine,
            tokenizer=CharacterTokenizer(),
            embedder=cast(Embedder, CountingEmbedder()),
            search=cast(Search, FixedSearch(hits)),
            limits=ANY_EVIDENCE,
        )
        running = state_with(state, models=models)
        client = client_of(running)
        clients.append(client.__enter__())
        return Service(client, engine)

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("form", "schema"), [({"type": "json_object"}, {"type": "object"}), (JSON_SCHEMA, SCHEMA)], ids=["object", "schema"]
)
def test_a_json_answer_is_the_engines_text_without_footnotes(serve, form, schema):
    service = serve()
    answer = service.ask(response_format=form).json()
    (request,) = service.engine.requests

    assert answer["choices"][0]["message"] == {
        "role": "assistant",
        "content": DOCUMENT,
        "refusal": None,
        "annotations": [],
    }
    assert isinstance(request.constraint, JsonSchema)
    assert json.loads(request.constraint.schema) == schema
    assert request.constraint.schema in CharacterTokenizer().decode(request.prompt)


def test_a_json_answer_streams_verbatim(serve):
    text = serve().ask(response_format=JSON_SCHEMA, stream=True).text
    chunks = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]

    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == DOCUMENT


@pytest.mark.parametrize("fields", [{}, {"response_format": {"type": "text"}}, {"response_format": None}])
def test_prose_is_held_to_the_markers_of_presented_sources(serve, fields):
    service = serve(says="Revenue rose 12 percent to 48 million dollars in 2025 [1].")
    message = service.ask(**fields).json()["choices"][0]["message"]
    (request,) = service.engine.requests

    assert "[1]" in message["content"]
    assert [note["number"] for note in message["annotations"]] == [1]
    assert request.constraint == CitationMarkers(1), "two chunks that touch are one source"


def test_the_engine_is_told_whose_sequence_it_is_and_where_the_sources_stand(serve):
    service = serve()
    service.ask()
    (request,) = service.engine.requests
    text = CharacterTokenizer().decode

    assert [text(request.prompt[start:stop]).strip() for start, stop in request.sources] == [CONTENT.strip()]
    assert request.salt == "default"
    assert request.user


def test_without_evidence_a_json_answer_is_a_refusal_instead_of_a_sentence(serve):
    service = serve(found=False)
    message = service.ask(response_format=JSON_SCHEMA).json()["choices"][0]["message"]
    prose = service.ask().json()["choices"][0]["message"]

    assert message["content"] is None
    assert message["refusal"] == prose["content"]
    assert prose["refusal"] is None

    streamed = service.ask(response_format=JSON_SCHEMA, stream=True).text
    deltas = [
        json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
        for line in streamed.splitlines()
        if line.startswith("data: {")
    ]
    assert not any(delta.get("content") for delta in deltas)
    assert "".join(delta.get("refusal", "") for delta in deltas) == message["refusal"]


@pytest.mark.parametrize(
    ("form", "status", "says"),
    [
        ("json", 422, "response_format"),
        ({"type": "yaml"}, 422, "response_format"),
        ({"type": "json_schema"}, 422, "json_schema"),
        ({"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}, 422, "name"),
        ({"type": "json_schema", "json_schema": {"name": "a"}}, 422, "schema"),
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": [1]}}, 422, "schema"),
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "objekt"}}}, 422, "objekt"),
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": {"const": "\ud800"}}}, 422, "Unicode"),
        ({"type": "json_object", "shema": {}}, 400, "shema"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_form_that_cannot_be_met_is_refused_by_name(serve, form, status, says):
    response = serve().ask(response_format=form)
    problem = response.json()

    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert says in problem["detail"] + str(problem["error"]["param"])
    assert problem["error"]["param"].startswith("response_format")
    assert problem["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/chat/completions", "/v1/responses"])
def test_a_schema_that_cannot_be_enforced_names_the_requests_own_field(serve, path):
    schema = {"type": "objekt"}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/ask": {"question": "x", "format": "json", "json_schema": schema},
        "/v1/chat/completions": {
            "model": "footnote",
            "messages": [{"role": "user", "content": "x"}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        },
        "/v1/responses": {
            "model": "footnote",
            "input": "x",
            "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}},
        },
    }
    fields = {"/v1/ask": "json_schema", "/v1/chat/completions": "response_format", "/v1/responses": "text.format"}
    for stream in (False, True):
        response = serve().post(path, {**bodies[path], "stream": stream})

        assert (response.status_code, response.json()["param"]) == (422, fields[path])
