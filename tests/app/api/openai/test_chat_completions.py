"""OpenAI's own client against /v1/chat/completions over a socket."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from app.types import Role
from tests.app.api.openai.openai_server import LOGPROB, RUNNER_UP, SAYS, SHOWN, Service
from tests.server import ADMIN_KEY

SHIPS = "The keeper counted forty ships in the harbour of Lindau."
QUESTION = "How many ships did the keeper count in the harbour of Lindau?"


@pytest.fixture(scope="module")
def harbour(openai_service: Service) -> str:
    """A collection that says how many ships there are."""
    made = openai_service.http.post("/v1/collections", json={"name": "harbour"}).json()["id"]
    openai_service.upload(SHIPS, "harbour.txt", collection_id=made)
    return str(made)


@pytest.fixture
def client(openai_service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{openai_service.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
        yield client


def ask(client: Any, harbour: str, content: str = QUESTION, **fields: Any) -> Any:
    model = f"footnote:{harbour}"
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": content}], **fields)


def billed(service: Service, request_id: str) -> tuple[int, int, int]:
    """What the ledger has of a request: the number of its chat rows, and the tokens of all its rows, in and out."""
    rows = service.state.usage.ledger.usage(request_id)
    chats = sum(row.operation == "chat" for row in rows)
    return chats, sum(row.input_tokens for row in rows), sum(row.output_tokens for row in rows)


def settled(service: Service, request_id: str) -> list[str]:
    """How a request's answers ended, once none is open: a choice that is cancelled ends a step later."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        rows = service.state.usage.ledger.usage(request_id)
        statuses = [str(row.status) for row in rows if row.operation == "chat"]
        if "reserved" not in statuses:
            return statuses
        time.sleep(0.02)
    raise AssertionError("a call was never settled")


def test_an_answer_cites_a_file_that_can_be_retrieved(openai_service, client, harbour):
    completion = ask(client, harbour)
    message = completion.choices[0].message

    assert message.content == SHOWN
    assert completion.system_fingerprint.startswith("fp_")
    [annotation] = message.annotations
    assert message.content[: annotation.index].endswith("[1]")
    assert client.files.retrieve(annotation.file_id).filename == "harbour.txt"
    assert client.files.content(annotation.file_id).text == SHIPS
    usage = completion.usage
    assert billed(openai_service, completion.id) == (1, usage.prompt_tokens, usage.completion_tokens)


def test_several_choices_are_generated_from_one_search_and_billed_exactly(openai_service, client, harbour):
    before = len(openai_service.runner.requests)
    completion = ask(client, harbour, n=3, seed=11, temperature=0.7)
    requests = openai_service.runner.requests[before:]

    assert [choice.index for choice in completion.choices] == [0, 1, 2]
    assert [choice.message.content for choice in completion.choices] == [SHOWN] * 3
    assert sorted(request.sampling.seed for request in requests) == [11, 12, 13]
    assert len({request.prompt for request in requests}) == 1
    usage = completion.usage
    assert billed(openai_service, completion.id) == (3, usage.prompt_tokens, usage.completion_tokens)
    written = [call for call in usage.calls if call["purpose"] == "answer"]
    assert [call["prompt_tokens"] for call in written] == [len(requests[0].prompt)] * 3
    embeddings = [
        row for row in openai_service.state.usage.ledger.usage(completion.id) if row.operation == "embed_query"
    ]
    assert len(embeddings) <= 1  # a question that is remembered costs nothing


def test_sampling_parameters_reach_the_engine(openai_service, client, harbour):
    ask(
        client,
        harbour,
        temperature=0.4,
        top_p=0.9,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        logit_bias={"65": -100, "66": 3},
        stop=["\n"],
        max_completion_tokens=50,
    )
    sampling = openai_service.runner.requests[-1].sampling

    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (0.4, 0.9, 50)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.5, -0.5)
    assert (sampling.logit_bias, sampling.stop) == (((65, -100.0), (66, 3.0)), ("\n",))


def test_log_probabilities_are_of_the_tokens_as_generated(client, harbour):
    completion = ask(client, harbour, logprobs=True, top_logprobs=2)
    content = completion.choices[0].logprobs.content

    assert "".join(entry.token for entry in content) == SAYS
    assert bytes(byte for entry in content for byte in entry.bytes) == SAYS.encode()
    assert {entry.logprob for entry in content} == {LOGPROB}
    assert [other.logprob for other in content[0].top_logprobs] == [LOGPROB, RUNNER_UP]
    assert math.exp(content[0].logprob) == pytest.approx(0.75)


def test_where_nothing_is_generated_there_are_no_log_probabilities(client, harbour):
    completion = ask(client, harbour, content="Zebra quantum marmalade?", logprobs=True)

    assert completion.choices[0].logprobs is None
    assert completion.usage.completion_tokens == 0


def test_a_stream_says_what_the_whole_answer_says(client, harbour):
    whole = ask(client, harbour)
    options = {"include_usage": True, "include_obfuscation": True}
    chunks = list(ask(client, harbour, stream=True, logprobs=True, stream_options=options))
    choices = [choice for chunk in chunks for choice in chunk.choices]

    assert "".join(choice.delta.content or "" for choice in choices) == SHOWN
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]
    told = [entry.token for choice in choices if choice.logprobs for entry in choice.logprobs.content]
    assert "".join(told) == SAYS
    # A question that was asked before is not embedded again.
    assert {**chunks[-1].usage.components, "embedding": 0} == {**whole.usage.components, "embedding": 0}
    assert {chunk.system_fingerprint for chunk in chunks} == {whole.system_fingerprint}
    for chunk in chunks[:-1]:
        text = chunk.choices[0].delta.content or ""
        assert (len(text) + len(chunk.obfuscation)) % 32 == 0


def test_choices_are_streamed_side_by_side(client, harbour):
    chunks = list(ask(client, harbour, stream=True, n=2, stream_options={"include_usage": True}))
    choices = [choice for chunk in chunks for choice in chunk.choices]

    for index in (0, 1):
        mine = [choice for choice in choices if choice.index == index]
        assert "".join(choice.delta.content or "" for choice in mine) == SHOWN
        assert [choice.finish_reason for choice in mine][-1] == "stop"
    assert chunks[-1].usage.completion_tokens == 2 * (len(SAYS) + 1)


def test_the_stream_helper_and_parse_work(client, harbour):
    model, messages = f"footnote:{harbour}", [{"role": "user", "content": QUESTION}]
    with client.chat.completions.stream(model=model, messages=messages) as stream:
        stream.until_done()
        assert stream.get_final_completion().choices[0].message.content == SHOWN

    class Anything(BaseModel):
        ships: int

    with pytest.raises(ValueError, match="JSON"):  # the scripted model says prose; the schema was asked for
        client.chat.completions.parse(model=model, messages=messages, response_format=Anything)


def test_the_async_client_works(openai_service, harbour):
    async def both() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=f"{openai_service.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
            whole = await ask(client, harbour)
            stream = await ask(client, harbour, stream=True)
            streamed = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return whole.choices[0].message.content, "".join(streamed)

    assert asyncio.run(both()) == (SHOWN, SHOWN)


def test_c9_a_prompt_that_does_not_fit_is_refused_with_the_counts(client, harbour):
    with pytest.raises(openai.UnprocessableEntityError) as raised:
        ask(client, harbour, max_tokens=100_000)

    problem = raised.value.response.json()
    assert problem["type"] == "urn:footnote:problem:context-length-exceeded"
    assert problem["max_output_tokens"] == 100_000 and problem["context_window"] == 8192
    assert problem["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("n", [1, 2])
def test_c12_a_stream_that_fails_ends_with_the_problem_and_what_it_cost(openai_service, harbour, n):
    body = {
        "model": f"footnote:{harbour}",
        "messages": [{"role": "user", "content": f"{QUESTION} explode"}],
        "stream": True,
        "n": n,
    }
    response = openai_service.http.post("/v1/chat/completions", json=body)
    events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    last = json.loads(events[-1])

    assert response.status_code == 200 and "[DONE]" not in events
    assert last["type"] == "urn:footnote:problem:generation-failed"
    assert last["error"]["type"] == "server_error"
    assert last["usage"]["completion_tokens"] > 0
    statuses = settled(openai_service, last["instance"])
    assert "error" in statuses and set(statuses) <= {"completed", "error", "client_abort", "server_abort"}
    assert len(statuses) == n


def test_c12_the_client_raises_where_a_stream_fails(client, harbour):
    with pytest.raises(openai.APIError):
        list(ask(client, harbour, content=f"{QUESTION} explode", stream=True))


def test_errors_are_the_clients_exceptions(openai_service, client, harbour):
    with pytest.raises(openai.NotFoundError):
        ask(client, "nowhere")
    with pytest.raises(openai.BadRequestError, match="verbosity") as raised:
        ask(client, harbour, extra_body={"verbosity": "low"})
    assert (raised.value.code, raised.value.param) == ("unsupported_parameter", "verbosity")
    with pytest.raises(openai.BadRequestError, match="role"):
        client.chat.completions.create(
            model="footnote", messages=[{"role": "tool", "content": "", "tool_call_id": "1"}]
        )
    stranger = client.with_options(api_key="fn_nobody")
    with pytest.raises(openai.AuthenticationError):
        ask(stranger, harbour)
    poor = client.with_options(api_key=openai_service.key(Role.READER, tenant="poor"))
    made = openai_service.http.post("/v1/admin/budgets", json={"tenant_id": "poor", "limit": 1, "period": "day"})
    if made.status_code == 200 or made.status_code == 201:
        with pytest.raises(openai.RateLimitError):
            poor.chat.completions.create(model="footnote", messages=[{"role": "user", "content": QUESTION}])


def test_models_are_listed(client, harbour):
    models = {model.id: model for model in client.models.list()}

    assert {"footnote", "footnote:harbour", "hashing"} <= set(models)
    assert client.models.retrieve("hashing").dimensions == 64
