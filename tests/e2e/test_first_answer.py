"""From an upload to a cited answer to the bill, over HTTP, with the real models."""

import json
import time
from datetime import UTC, datetime
from typing import Any

import openai
import pytest

from tests.app.api.bills import PROMPT
from tests.server import ADMIN_KEY, Server

REPORT = """# Northwind annual report

## Revenue

Northwind's revenue rose 12 percent to 48 million dollars in 2025. Growth came from the cold chain business.

## People

Zoë Müller became chief financial officer in March 2025. The company employs 310 people in Oslo and Gdańsk.

## Plants

The plant in Oslo closed on 4 May 2025 after a fire destroyed the main turbine hall. 修理には二年かかる。
"""


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    body = server.upload("northwind.md", REPORT.encode(), metadata=json.dumps({"year": 2025, "kind": "report"}))
    assert body["status"] == "indexed", body
    return body


@pytest.fixture(scope="module")
def read(generating: Server) -> dict[str, Any]:
    """The same document on the server whose answers are generated."""
    body = generating.upload("northwind.md", REPORT.encode(), metadata=json.dumps({"year": 2025, "kind": "report"}))
    assert body["status"] == "indexed", body
    return body


def ask(server: Server, question: str, **options: object) -> dict[str, Any]:
    response = server.http.post("/v1/ask", json={"question": question, "max_output_tokens": 48, **options})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def events(server: Server, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    with server.http.stream("POST", "/v1/ask", json={**body, "stream": True}) as response:
        assert response.status_code == 200
        name = ""
        for line in response.iter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                found.append((name, json.loads(line[6:])))
    return found


def assert_exactly_cited(server: Server, answer: dict[str, Any]) -> None:
    assert answer["citations"], answer
    for citation in answer["citations"]:
        content = server.http.get(
            f"/v1/documents/{citation['document_id']}/content",
            params={"start": citation["start_char"], "end": citation["end_char"], "version": citation["version"]},
        )
        assert content.text == citation["cited_text"] != ""
        assert answer["answer"][citation["answer_start"] : citation["answer_end"]] == f"[{citation['index']}]"


def test_an_answer_quotes_and_cites_exact_characters_and_generates_nothing(server, document):
    # Nobody has asked this before, so that the query's vector is not cached and is on the bill.
    answer = ask(server, "When exactly did the Oslo plant close?", document_ids=[document["id"]])
    usage = answer["usage"]

    assert_exactly_cited(server, answer)
    first = answer["quoted_spans"][0]
    quoted = answer["answer"][first["start"] : first["end"]]
    assert "The plant in Oslo closed on 4 May 2025" in quoted
    (mark,) = first["highlights"]
    assert "4 May" in answer["answer"][mark["start"] : mark["end"]]
    assert first["answers"] == answer["answers"]
    assert (usage["completion_tokens"], usage["by_document"]) == (0, {})
    assert sum(usage["components"].values()) == usage["prompt_tokens"] == usage["total_tokens"] > 0
    assert answer["model"] == next(call["model"] for call in usage["calls"] if call["purpose"] == "locate")
    assert {found["purpose"] for found in usage["auxiliary"]} == {"embed_query", "extract", "locate"}
    assert server.metric("footnote_engine_running") == 0


def test_a_generated_answer_cites_exact_characters_and_its_parts_sum_to_the_prompt(generating, read):
    answer = ask(generating, "By how much did Northwind's revenue rise in 2025?", document_ids=[read["id"]])
    usage = answer["usage"]

    assert answer["answered"]
    assert_exactly_cited(generating, answer)
    assert sum(usage["components"].values()) == usage["total_tokens"] > 0
    (written,) = [call for call in usage["calls"] if call["purpose"] == "answer"]
    assert sum(usage["components"][part] for part in PROMPT) == written["prompt_tokens"]
    assert usage["by_document"] == {read["id"]: usage["components"]["context"]}
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_the_administrators_report_shows_the_very_tokens_of_the_answer(generating, read):
    secret = generating.http.post("/v1/admin/keys", json={"name": f"meter-{time.time_ns()}"}).json()
    headers = {"Authorization": f"Bearer {secret['secret']}"}
    # never asked before: a question that was is not embedded again
    body = {"question": f"Who became chief financial officer? ({time.time_ns()})", "max_output_tokens": 16}
    usage = generating.http.post("/v1/ask", json=body, headers=headers).json()["usage"]

    midnight = int(datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp())
    report = generating.http.get(
        "/v1/admin/usage/completions",
        params={"start_time": midnight, "bucket_width": "1d", "group_by": ["user_id", "api_key_id", "model"]},
    ).json()
    (result,) = [
        result for bucket in report["data"] for result in bucket["results"] if result["api_key_id"] == secret["id"]
    ]

    (written,) = [call for call in usage["calls"] if call["purpose"] == "answer"]
    assert result["input_tokens"] == written["prompt_tokens"]
    assert result["output_tokens"] == usage["completion_tokens"]
    assert result["output_delivered_tokens"] == usage["completion_tokens"]
    assert result["components"] == {part: usage["components"][part] for part in PROMPT}
    assert result["user_id"] == secret["user_id"]
    own = generating.http.get("/v1/usage", headers=headers).json()
    assert own["today"]["num_answers"] == 1
    assert own["today"]["completions"]["input_tokens"] == written["prompt_tokens"]
    auxiliary = {found["purpose"]: found["tokens"] for found in usage["auxiliary"]}
    assert own["today"]["embeddings"]["input_tokens"] == auxiliary["embed_query"] + auxiliary["extract"]


@pytest.mark.parametrize("served", ["quotes", "generated"])
def test_a_stream_tells_sources_text_citations_usage_and_done_in_that_order(server, document, generating, read, served):
    answering = server if served == "quotes" else generating
    body: dict[str, Any] = {"question": "When did the plant in Oslo close?", "max_output_tokens": 32}
    whole = ask(answering, body["question"], max_output_tokens=32)
    stream = events(answering, body)
    names = [name for name, _ in stream]

    assert names[0] == "sources"
    assert names[-2:] == ["usage", "done"]
    assert sorted(names, key=["sources", "delta", "citation", "usage", "done"].index) == names
    assert "".join(data["text"] for name, data in stream if name == "delta") == whole["answer"]
    assert [data for name, data in stream if name == "citation"] == whole["citations"]
    # A question that was asked before is not embedded again.
    streamed = dict(stream)["usage"]["components"]
    assert streamed | {"embedding": 0} == whole["usage"]["components"] | {"embedding": 0}
    assert (whole["usage"]["completion_tokens"] > 0) == (served == "generated")


def test_without_evidence_nothing_is_generated(server, document):
    answer = ask(server, "zxqv blorp?", document_ids=["doc_nowhere"])

    assert (answer["answered"], answer["reason"]) == (False, "no_evidence")
    assert answer["usage"]["completion_tokens"] == answer["usage"]["prompt_tokens"] == 0
    assert answer["citations"] == []


def test_a_dry_run_shows_sources_and_budget_and_generates_nothing(generating, read):
    answer = ask(generating, "Who became chief financial officer?", dry_run=True)

    assert answer["usage"]["completion_tokens"] == 0
    assert sum(answer["usage"]["components"].values()) == answer["usage"]["prompt_tokens"] > 0
    (planned,) = [call for call in answer["usage"]["calls"] if call["planned"]]
    assert answer["sources"]["presented"]
    window, reserved = answer["budget"]["context_window"], answer["budget"]["reserved_output"]
    assert answer["budget"]["headroom"] == window - reserved - planned["prompt_tokens"] >= 0


def test_filters_apply_inside_the_search(server, document):
    old = server.upload("older.md", REPORT.replace("2025", "1999").encode(), metadata='{"year": 1999}')
    body = {"query": "revenue of Northwind", "filter": {"year": {"$lt": 2000}}}

    hits = server.http.post("/v1/search", json=body).json()["data"]

    assert {hit["document_id"] for hit in hits} == {old["id"]}
    assert server.http.post("/v1/search", json={**body, "filter": {"year": {"$near": 1}}}).status_code == 422


def test_the_official_openai_client_gets_an_answer_with_annotations(generating, read):
    with openai.OpenAI(base_url=f"{generating.url}/v1", api_key=ADMIN_KEY) as client:
        messages = [
            {"role": "system", "content": "Answer in English."},
            {"role": "user", "content": "Where is Northwind?"},
            {"role": "assistant", "content": "In Oslo and Gdańsk."},
            {"role": "user", "content": "By how much did Northwind's revenue rise in 2025?"},
        ]
        completion = client.chat.completions.create(model="footnote", messages=messages, max_tokens=40)  # type: ignore[arg-type]
        message = completion.choices[0].message

        assert message.content
        assert completion.usage is not None
        assert completion.usage.total_tokens == sum(completion.usage.components.values())  # type: ignore[attr-defined]
        assert completion.usage.components["history"] > 0  # type: ignore[attr-defined]
        for annotation in message.annotations or []:
            fields = annotation.model_dump()
            assert fields["file_id"].startswith("doc_")
            assert message.content[fields["answer_start"] : fields["index"]] == f"[{fields['number']}]"


@pytest.mark.parametrize("served", ["quotes", "generated"])
def test_the_official_openai_client_streams_and_annotations_come_last(server, document, generating, read, served):
    answering = server if served == "quotes" else generating
    with openai.OpenAI(base_url=f"{answering.url}/v1", api_key=ADMIN_KEY) as client:
        stream = client.chat.completions.create(
            model="footnote:default",
            messages=[{"role": "user", "content": "When did the plant in Oslo close?"}],
            max_tokens=32,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    last = [chunk for chunk in chunks if chunk.choices][-1]
    assert text
    assert last.choices[0].finish_reason in {"stop", "length"}
    assert isinstance(last.choices[0].delta.model_dump()["annotations"], list)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == chunks[-1].usage.prompt_tokens + chunks[-1].usage.completion_tokens
    assert (chunks[-1].usage.completion_tokens > 0) == (served == "generated")


def test_an_unsupported_parameter_is_a_400_that_names_it(server, document):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=ADMIN_KEY) as client:
        with pytest.raises(openai.BadRequestError, match="reasoning_effort") as refused:
            client.chat.completions.create(
                model="footnote", messages=[{"role": "user", "content": "Hi"}], reasoning_effort="low"
            )

    assert refused.value.param == "reasoning_effort"


def test_models_are_listed_per_collection(server, document):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=ADMIN_KEY) as client:
        assert {"footnote", "footnote:default"} <= {model.id for model in client.models.list()}
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("gpt-9")


def test_tokens_are_counted_by_the_tokenizers_that_serve(generating, read):
    question = f"Who became chief financial officer? ({time.time_ns()})"
    counted = generating.http.post("/v1/tokens/count", json={"text": question}).json()
    answer = ask(generating, question, dry_run=True)

    assert counted["tokens"] == answer["usage"]["components"]["question"]
    by_embedder = generating.http.post("/v1/tokens/count", json={"text": question, "tokenizer": "embedder"}).json()
    assert by_embedder["tokens"] == answer["usage"]["auxiliary"][0]["tokens"]


def test_a_greedy_answer_repeats_and_a_seed_repeats_a_sampled_one(generating, read):
    question = "Tell me about the plants of Northwind."
    greedy = [ask(generating, question, max_output_tokens=24)["answer"] for _ in range(2)]
    sampled = [
        ask(generating, question, max_output_tokens=24, temperature=0.9, top_p=0.9, seed=7)["answer"] for _ in range(2)
    ]

    assert greedy[0] == greedy[1]
    assert sampled[0] == sampled[1]


def test_the_contracts_own_example_is_accepted_word_for_word(server, document):
    body = {
        "question": "By how much did revenue rise?",
        "collection_ids": [document["collection_id"]],
        "document_ids": None,
        "filter": {"year": {"$gte": 2024}},
        "conversation_id": None,
        "top_k": 8,
        "max_context_tokens": 3000,
        "max_output_tokens": 12,
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 1,
        "on_no_evidence": "refuse",
        "stream": False,
        "dry_run": False,
    }
    answer = server.http.post("/v1/ask", json=body)

    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] <= 12
