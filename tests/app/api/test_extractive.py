"""Extractive mode over HTTP: the best sentences quoted, nothing generated, and every route still answers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.answering.citing.citation import CONFIRMED
from app.answering.languages.table import languages
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.models.extractive import NoEngine
from app.server.collectors import EngineCollector
from app.server.state import State
from app.types import Operation, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.types import ServingPath
from retrieval.search import Search
from retrieval.types import Hit
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.quoting.test_selection import PASSAGES
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch
from tests.app.server.stations import ANY_EVIDENCE, LIMITS, state_with, stations
from tests.app.telemetry.test_logs import COUNTED, CountingEngine
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import TopicEmbedder, chunk, hit

QUESTION = "Who became chief financial officer of Northwind?"
SAID = "Zoë Müller became chief financial officer of Northwind in March 2024."
OFF_TOPIC = "Which enzyme splits lactose in milk?"


def hits() -> tuple[Hit, ...]:
    return tuple(
        hit(chunk(rank, text, document_id=f"doc_{rank}"), rank=rank)
        for rank, text in enumerate((PASSAGES[1], PASSAGES[0], PASSAGES[2]), start=1)
    )


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    """Searches that always find the three passages; where nothing is evidence, see `unfound`."""
    with served(state, found=hits()) as client:
        yield client


@pytest.fixture
def unfound(state: State) -> Iterator[TestClient]:
    """Searches that find nothing."""
    with served(state, found=()) as client:
        yield client


def served(state: State, *, found: tuple[Hit, ...]) -> TestClient:
    embedder, ledger = TopicEmbedder("Northwind"), Ledger(state.database, boot_id="boot")
    engine = NoEngine(revision="1", context_window=2000)
    answerer = make_answerer(
        finder=Finder(search=cast(Search, FixedSearch(found)), vectors=QuestionVectors(embedder)),
        engine=engine,
        tokenizer=LetterTokenizer(),
        contents=state.corpus.contents,
        ledger=ledger,
        limits=ANY_EVIDENCE if found else LIMITS,
        passage_reader=PassageReader(embedder=embedder),
        quotes=QuotesAs.ONLY,
    )
    running = state_with(state, models=replace(stations(state, engine, embedder=embedder), answerer=answerer))
    running.telemetry.metrics.register(EngineCollector(engine))
    return client_of(running)


def ask(client: TestClient, question: str = QUESTION, **fields: Any) -> Any:
    response = client.post("/v1/ask", json={"question": question, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def events(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n") if block.startswith("event:")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data, *_ in blocks]


def test_the_answer_quotes_a_sentence_and_cites_it(client: TestClient) -> None:
    body = ask(client)

    assert (body["answered"], body["reason"], body["model"]) == (True, None, "hashing")
    assert body["answer"].startswith(f"> {SAID} [1]")
    first, quoted = body["citations"][0], body["quoted_spans"][0]
    assert (first["cited_text"], first["support"], first["document_id"]) == (SAID, 1.0, "doc_1")
    assert first["verified"] == (first["answers"] >= CONFIRMED)
    assert body["answer"][quoted["start"] : quoted["end"]] == SAID
    assert (quoted["highlights"], body["lead"]) == ([], None), "without a reader no words are known"
    assert body["answers"] == first["answers"] == quoted["answers"]
    assert body["answer"][first["answer_start"] : first["answer_end"]] == "[1]"
    assert PASSAGES[1][first["start_char"] : first["end_char"]] == SAID
    assert body["sources"]["cited"][0] == first["chunk_id"] == body["sources"]["presented"][0]
    assert body["abstention"]["stage"] is None


def test_the_bill_has_embedded_tokens_and_no_generated_one(client: TestClient, state: State) -> None:
    body = ask(client)

    rows = Ledger(state.database, boot_id="boot").usage(body["id"])
    usage = body["usage"]
    read = sum(row.input_tokens for row in rows)
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (read, 0, read)
    assert usage["by_document"] == {}
    assert [row.operation for row in rows] == [Operation.EMBED_QUERY, Operation.EMBED_QUERY]
    assert {row.status for row in rows} == {UsageStatus.COMPLETED}
    assert [found["purpose"] for found in usage["auxiliary"]] == ["embed_query", "extract"]
    assert sum(found["tokens"] for found in usage["auxiliary"]) == sum(row.input_tokens for row in rows)
    assert body["budget"] == {"context_window": 2000, "reserved_output": 0, "headroom": 2000}


@pytest.mark.parametrize("form", ["markdown", "text", "json"])
def test_streamed_and_whole_answers_are_equal(client: TestClient, form: str) -> None:
    body = ask(client, format=form)
    streamed = events(client.post("/v1/ask", json={"question": QUESTION, "format": form, "stream": True}).text)

    assert "".join(data["text"] for name, data in streamed if name == "delta") == body["answer"]
    assert [data for name, data in streamed if name == "citation"] == body["citations"]
    assert streamed[0][0] == "sources"
    assert streamed[-1][0] == "done"
    assert streamed[-1][1]["answered"]


def test_json_without_a_schema_names_the_answer_and_its_sources(client: TestClient) -> None:
    body = ask(client, format="json")
    document = json.loads(body["answer"])

    assert document["answer"].startswith(SAID)
    assert document["sources"] == list(dict.fromkeys(citation["index"] for citation in body["citations"]))


def test_sources_that_do_not_answer_are_refused_after_reading_them(client: TestClient) -> None:
    body = ask(client, OFF_TOPIC)

    assert (body["answered"], body["reason"], body["answer"]) == (False, "not_in_sources", "I don't know.")
    assert body["citations"] == []
    assert (body["quoted_spans"], body["lead"]) == ([], None)
    assert body["abstention"]["stage"] == "reader"
    assert body["abstention"]["score"] > body["abstention"]["threshold"]


def test_the_threshold_of_refusing_can_be_asked_for(client: TestClient) -> None:
    assert ask(client, OFF_TOPIC, abstention_threshold=1.0)["answered"]
    assert not ask(client, QUESTION, abstention_threshold=0.0001)["answered"]


def test_a_refusal_is_in_the_questions_language(client: TestClient, unfound: TestClient) -> None:
    asked = "Welches Enzym spaltet die Laktose in der Milch?"
    german = languages()["de"].texts
    note = german.other_language.format(language="English")

    assert ask(client, asked)["answer"] == f"{german.refusal}\n\n{note}"
    assert json.loads(ask(client, asked, format="json")["answer"])["answer"].endswith(note)
    assert ask(unfound, asked)["answer"] == german.no_evidence
    assert json.loads(ask(unfound, asked, format="json")["answer"]) == {
        "answer": german.no_evidence,
        "sources": [],
    }


def test_without_evidence_nothing_is_read(unfound: TestClient) -> None:
    body = ask(unfound)

    assert (body["answered"], body["reason"]) == (False, "no_evidence")
    assert [found["purpose"] for found in body["usage"]["auxiliary"]] == ["embed_query"]


def test_a_dry_run_shows_sources_and_reads_none(client: TestClient) -> None:
    body = ask(client, dry_run=True)

    assert (body["reason"], body["answer"], len(body["sources"]["presented"])) == ("dry_run", "", 3)
    assert [found["purpose"] for found in body["usage"]["auxiliary"]] == ["embed_query"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"on_no_evidence": "answer"}, "on_no_evidence"),
        ({"format": "json", "json_schema": {"type": "string"}}, "json_schema"),
        ({"json_schema": {"type": "string"}}, "json_schema"),
    ],
)
def test_what_needs_a_language_model_is_refused_by_name_and_costs_nothing(
    client: TestClient, state: State, fields: dict[str, Any], param: str
) -> None:
    response = client.post("/v1/ask", json={"question": QUESTION, **fields})

    assert response.status_code == 422
    assert param in response.text
    assert Ledger(state.database, boot_id="boot").usage(response.headers["X-Request-Id"]) == ()


def chat(client: TestClient, **fields: Any) -> Any:
    body = {"model": "footnote", "messages": [{"role": "user", "content": QUESTION}], **fields}
    return client.post("/v1/chat/completions", json=body)


def test_chat_completions_quote_too(client: TestClient) -> None:
    body = chat(client).json()

    (choice,) = body["choices"]
    assert choice["message"]["content"].startswith(f"> {SAID} [1]")
    assert choice["message"]["annotations"][0]["cited_text"] == SAID
    assert body["usage"]["completion_tokens"] == 0


def test_chat_completions_in_json_are_the_answer_or_a_refusal(client: TestClient) -> None:
    form = {"type": "json_object"}
    off_topic = [{"role": "user", "content": OFF_TOPIC}]

    said = chat(client, response_format=form).json()["choices"][0]["message"]
    refused = chat(client, response_format=form, messages=off_topic).json()["choices"][0]["message"]
    named = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string"}}}

    assert json.loads(said["content"])["answer"].startswith(SAID)
    assert (refused["content"], refused["refusal"]) == (None, "I don't know.")
    assert chat(client, response_format=named).status_code == 422


def test_streamed_chat_completions_in_json_are_the_same(client: TestClient) -> None:
    whole = chat(client, response_format={"type": "json_object"}).json()["choices"][0]["message"]["content"]
    lines = chat(client, response_format={"type": "json_object"}, stream=True).text.splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]

    assert "".join(found["choices"][0]["delta"].get("content") or "" for found in chunks) == whole


def respond(client: TestClient, question: str = QUESTION, **fields: Any) -> Any:
    return client.post("/v1/responses", json={"model": "footnote", "input": question, **fields})


def test_responses_in_json_are_the_answer_or_a_refusal(client: TestClient) -> None:
    text = {"format": {"type": "json_object"}}
    named = {"format": {"type": "json_schema", "name": "n", "schema": {"type": "string"}}}

    (said,) = respond(client, text=text).json()["output"][0]["content"]
    (refused,) = respond(client, OFF_TOPIC, text=text).json()["output"][0]["content"]
    unmet = respond(client, text=named)

    assert json.loads(said["text"])["answer"].startswith(SAID)
    assert refused == {"type": "refusal", "refusal": "I don't know."}
    assert (unmet.status_code, unmet.json()["error"]["param"]) == (422, "text.format")


@pytest.mark.parametrize(("question", "kind"), [(QUESTION, "output_text"), (OFF_TOPIC, "refusal")])
def test_streamed_responses_in_json_are_the_same(client: TestClient, question: str, kind: str) -> None:
    text = {"format": {"type": "json_object"}}
    whole = respond(client, question, text=text).json()["output"]
    lines = respond(client, question, text=text, stream=True).text.splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    said = "".join(event["delta"] for event in events if event["type"] == f"response.{kind}.delta")
    last = events[-1]["response"]["output"]

    assert [item["content"] for item in last] == [item["content"] for item in whole]
    assert said == whole[0]["content"][0]["text" if kind == "output_text" else "refusal"]
    assert next(event["type"] for event in events if event["type"].endswith(".done")) == f"response.{kind}.done"


def test_readiness_and_metrics_say_what_computes_the_steps_of_a_model(state: State) -> None:
    path = ServingPath(layout="slabs", kernels="torch", graphs=False, speculation=True, slower=("No compiler.",))
    engine = CountingEngine(replace(COUNTED, path=path))
    running = state_with(state, models=stations(state, engine))
    running.telemetry.metrics.register(EngineCollector(engine))

    with client_of(running) as client:
        ready, metrics = client.get("/readyz").json(), client.get("/metrics").text

    assert ready["checks"]["engine"]["path"] == {
        "device": "cpu",
        "dtype": "float32",
        "layout": "slabs",
        "kernels": "torch",
        "graphs": False,
        "speculation": True,
        "slower": ["No compiler."],
    }
    [line] = [line for line in metrics.splitlines() if line.startswith("footnote_engine_path_info")]
    assert 'fastest="no"' in line and 'layout="slabs"' in line and 'graphs="off"' in line


def test_models_readiness_metrics_and_token_counts_speak_of_no_generator(client: TestClient) -> None:
    model = client.get("/v1/models/footnote").json()
    ready = client.get("/readyz").json()
    counted = client.post("/v1/tokens/count", json={"text": "abc"}).json()

    assert (model["generator"], model["embedder"], model["answers"]) == ("extractive", "hashing", "quotes")
    assert ready["checks"]["engine"]["alive"] and "path" not in ready["checks"]["engine"]
    assert not [reason for reason in ready["reasons"] if reason.startswith("engine")]
    assert "footnote_engine_decode_tokens_total 0.0" in client.get("/metrics").text
    assert counted["model"] == "extractive"
