"""Sources that exceed the context over HTTP: dropped by default, summarised where configured."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.answering.answerer import Answerer
from app.answering.generating.summaries import Summariser
from app.answering.question import AnswerDefaults
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.verification.support import QUOTED
from app.db.contents import ContentRepository
from app.errors import NotFound
from app.server.state import State
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.ports import Engine, Observer, Tokenizer
from generation.types import FinishReason, GenerationRequest, ModelInfo
from retrieval.search import Search
from tests.app.answering.answerers import make_answerer
from tests.app.answering.generating.test_summaries import HITS, QUESTION, FinishedStream, SummarisingEngine
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.bills import PROMPT, assert_adds_up
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch
from tests.app.evaluation.application import Unconstrained
from tests.app.server.stations import state_with, stations
from tests.generation.fakes import EOS, LetterTokenizer, ScriptedRunner
from tests.retrieval.fakes import HashingEmbedder

TEXTS = {hit.chunk.document_id: hit.chunk.text for hit in HITS}
ANSWER = "Every ship of the northern line was painted blue. It cost less than red paint would have cost them."


class AnsweringEngine(SummarisingEngine):
    """Summarises, and answers with `ANSWER`."""

    def submit(self, request: GenerationRequest, *, observer: Observer) -> FinishedStream:
        if ":" in request.id:
            return super().submit(request, observer=observer)
        self.requests.append(request)
        return FinishedStream(request, ANSWER, FinishReason.STOP, observer)


def answerer_of(state: State, engine: Engine, tokenizer: Tokenizer, *, summarise: bool) -> Answerer:
    ledger = Ledger(state.database, boot_id="boot")
    return make_answerer(
        finder=Finder(
            search=cast(Search, FixedSearch(tuple(HITS))), vectors=QuestionVectors(HashingEmbedder(max_tokens=64))
        ),
        engine=engine,
        tokenizer=tokenizer,
        contents=ContentRepository(state.database),
        ledger=ledger,
        limits=AnswerDefaults(max_context_tokens=360, max_output_tokens=200, min_evidence=-1.0, max_waiting=4),
        summariser=Summariser(engine=engine, tokenizer=tokenizer) if summarise else None,
    )


@pytest.fixture
def serve(state: State) -> Iterator[Callable[..., TestClient]]:
    with ExitStack() as clients:

        def start(engine: Engine, *, summarise: bool = True) -> TestClient:
            tokenizer = CharacterTokenizer()
            models = replace(
                stations(state, engine, tokenizer=tokenizer),
                answerer=answerer_of(state, engine, tokenizer, summarise=summarise),
            )
            return clients.enter_context(client_of(state_with(state, models=models)))

        yield start


def ask(client: TestClient, **fields: Any) -> Any:
    response = client.post("/v1/ask", json={"question": QUESTION.text, **fields})
    assert response.status_code == 200
    return response.json()


def test_the_bill_shows_the_summaries_beside_an_answer_whose_parts_still_sum(
    serve: Callable[..., TestClient], state: State
) -> None:
    body = ask(serve(AnsweringEngine()))

    rows = Ledger(state.database, boot_id="boot").usage(body["id"])
    (chat,) = (row for row in rows if row.operation is Operation.CHAT)
    rewrites = [row for row in rows if row.operation is Operation.REWRITE]
    usage = body["usage"]
    assert_adds_up(usage, rows)
    assert sum(usage["components"][part] for part in PROMPT) == chat.input_tokens
    assert usage["components"]["completion"] == chat.output_tokens
    assert sum(usage["by_document"].values()) == usage["components"]["context"] == chat.components.context <= 360
    assert usage["by_document"] == {share.document_id: share.tokens for share in chat.documents}
    assert usage["auxiliary"][1] == {
        "purpose": "summarise",
        "tokens": sum(row.input_tokens + row.output_tokens for row in rewrites),
    }
    assert rewrites
    assert {row.status for row in rows} == {UsageStatus.COMPLETED}
    assert body["budget"]["headroom"] == 9000 - 200 - chat.input_tokens


def test_a_summarised_source_is_reported_and_its_citations_open_the_original(
    serve: Callable[..., TestClient],
) -> None:
    engine = AnsweringEngine()
    body = ask(serve(engine))

    summarised = body["sources"]["summarised"]
    assert "chunk_3" in summarised
    assert set(summarised) <= set(body["sources"]["compressed"])
    assert not set(summarised) & {dropped["chunk_id"] for dropped in body["sources"]["dropped"]}
    prompt = CharacterTokenizer().decode(engine.requests[-1].prompt)
    assert ANSWER not in prompt, "the model read a summary of it"
    assert {citation["chunk_id"] for citation in body["citations"]} == {"chunk_3"}
    for citation in body["citations"]:
        text = TEXTS[citation["document_id"]]
        assert citation["cited_text"] == text[citation["start_char"] : citation["end_char"]]
        assert citation["verified"]
        assert citation["support"] >= QUOTED
    assert [citation["cited_text"] for citation in body["citations"]] == [
        "Every ship of the northern line was painted blue.",
        "It cost less than red paint would have cost them.",
    ]


def test_by_default_what_does_not_fit_is_dropped_and_the_generator_asked_once(
    serve: Callable[..., TestClient],
) -> None:
    engine = AnsweringEngine()
    body = ask(serve(engine, summarise=False))

    assert len(engine.requests) == 1
    assert body["sources"]["summarised"] == []
    assert [entry["purpose"] for entry in body["usage"]["auxiliary"]] == ["embed_query"]
    assert {dropped["reason"] for dropped in body["sources"]["dropped"]} == {"budget"}


def test_failing_summaries_leave_the_answer_as_it_is_by_default(serve: Callable[..., TestClient]) -> None:
    failing, dropping = AnsweringEngine(reason=FinishReason.ERROR), AnsweringEngine()
    with_it, without = ask(serve(failing)), ask(serve(dropping, summarise=False))

    assert failing.requests[-1].prompt == dropping.requests[-1].prompt
    assert (with_it["answer"], with_it["sources"]) == (without["answer"], without["sources"])


def test_a_dry_run_generates_no_summary(serve: Callable[..., TestClient]) -> None:
    engine = AnsweringEngine()
    body = ask(serve(engine), dry_run=True)

    assert engine.requests == []
    assert body["sources"]["summarised"] == []


class Gate:
    """Holds the engine's steps until it is opened."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, plan: object) -> None:
        self.reached.set()
        assert self.open.wait(30)


@pytest.mark.parametrize("leave", ["cancel", "disconnect"])
def test_a_request_cancelled_while_it_summarises_leaves_nothing_running(state: State, leave: str) -> None:
    gate = Gate()
    engine = LocalEngine(
        ScriptedRunner(before_step=gate),
        LetterTokenizer(),
        EngineConfig(model="scripted", step_tokens=10_000),
        info=ModelInfo(model="scripted", revision="0", context_window=20_000, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )
    answerer = answerer_of(state, engine, LetterTokenizer(), summarise=True)

    async def scenario() -> None:
        task = asyncio.create_task(answerer.begun(QUESTION))
        assert await asyncio.to_thread(gate.reached.wait, 10)
        with pytest.raises(NotFound):
            answerer.running.cancel("req_1", principal=Principal("other", "u", "k", Role.ADMIN))
        if leave == "cancel":
            answerer.running.cancel("req_1", principal=QUESTION.principal)
            gate.open.set()
            answer = await (await task).whole()
            assert answer.finish_reason == "cancelled"
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gate.open.set()

    asyncio.run(scenario())
    engine.close()
    rows = [row for row in Ledger(state.database, boot_id="boot").usage("req_1") if row.operation.generates]
    assert {row.operation for row in rows} == {Operation.REWRITE}, "no answer is begun"
    assert {row.status for row in rows} == {UsageStatus.CLIENT_ABORT}
