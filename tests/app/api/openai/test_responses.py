"""OpenAI's own client against /v1/responses over a socket."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from app.types import Role
from tests.app.api.openai.openai_server import LOGPROB, SAYS, SHOWN, Service
from tests.app.api.openai.test_chat_completions import QUESTION, SHIPS, billed, settled
from tests.server import ADMIN_KEY


@pytest.fixture(scope="module")
def store(openai_service: Service) -> str:
    """A collection that says how many ships there are."""
    made = openai_service.http.post("/v1/collections", json={"name": "responses"}).json()["id"]
    openai_service.upload(SHIPS, "harbour.txt", collection_id=made, metadata={"year": 1856, "tags": ["a"]})
    openai_service.upload("The mill of Lindau ground rye.", "mill.txt", collection_id=made, metadata={"year": 1900})
    return str(made)


@pytest.fixture
def client(openai_service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{openai_service.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
        yield client


def ask(
    client: Any, store: str, question: Any = QUESTION, *, search: dict[str, Any] | None = None, **fields: Any
) -> Any:
    tool = {"type": "file_search", "vector_store_ids": [store], **(search or {})}
    return client.responses.create(**{"model": "footnote", "input": question, "tools": [tool], **fields})


def problem(raised: Any) -> dict[str, Any]:
    found: dict[str, Any] = raised.value.response.json()
    return found


def test_an_answer_cites_files_with_their_exact_ranges(openai_service, client, store):
    response = ask(client, store, metadata={"team": "blue"}, instructions="Be brief.")
    search, message = response.output
    [text] = message.content
    [note] = text.annotations

    assert (response.object, response.status, response.error) == ("response", "completed", None)
    assert response.output_text == text.text == SHOWN
    assert (response.metadata, response.instructions) == ({"team": "blue"}, "Be brief.")
    assert (search.type, search.status, search.queries, search.results) == (
        "file_search_call",
        "completed",
        [QUESTION],
        None,
    )
    assert (note.type, note.filename) == ("file_citation", "harbour.txt")
    assert text.text[: note.index].endswith("[1]")
    cited = note.footnote
    content = client.files.content(note.file_id).text
    assert content[cited["start_char"] : cited["end_char"]] == cited["cited_text"]
    assert (cited["document_id"], cited["answer_end"]) == (note.file_id, note.index)
    usage = response.usage
    assert billed(openai_service, response.id) == (1, usage.input_tokens, usage.output_tokens)
    assert sum(usage.components.values()) == usage.total_tokens == usage.input_tokens + usage.output_tokens


def test_the_same_question_of_chat_completions_has_the_same_bill(openai_service, client, store):
    said = [{"role": "user", "content": "Who counted?"}, {"role": "assistant", "content": "The keeper."}]
    asked = [*said, {"role": "user", "content": f"Once more: {QUESTION}"}]
    chat = client.chat.completions.create(
        model=f"footnote:{store}", messages=[{"role": "system", "content": "Be brief."}, *asked], max_tokens=50
    )
    response = ask(client, store, asked, instructions="Be brief.", max_output_tokens=50)

    def rows(request_id: str) -> list[tuple[object, ...]]:
        found = openai_service.state.usage.ledger.usage(request_id)
        # a question that was asked before is not embedded again
        told = [row for row in found if row.operation != "embed_query"]
        return [(row.operation, row.model, row.status, row.input_tokens, row.output_tokens) for row in told]

    assert response.output_text == chat.choices[0].message.content
    assert rows(response.id) == rows(chat.id) != []
    chat_parts, parts = chat.usage.components, response.usage.components
    assert {**parts, "embedding": 0} == {**chat_parts, "embedding": 0}
    assert response.usage.output_tokens == chat.usage.completion_tokens


def test_without_the_tool_the_models_collections_are_searched(client, store):
    response = ask(client, store, model="footnote:responses", tools=[])
    [message] = response.output

    assert message.type == "message"
    assert [note.filename for note in message.content[0].annotations] == ["harbour.txt"]


def test_found_passages_are_included_where_that_is_asked(client, store):
    include = ["file_search_call.results"]
    results = ask(client, store, include=include).output[0].results
    [one] = ask(client, store, include=include, search={"max_num_results": 1}).output[0].results
    filters = {"type": "gte", "key": "year", "value": 1900}
    filtered = ask(client, store, include=include, search={"filters": filters}).output[0].results

    assert {result.filename for result in results} == {"harbour.txt", "mill.txt"}
    assert results[0].text == one.text == SHIPS
    assert one.attributes == {"year": 1856}, "lists are no attributes"
    assert 0 <= one.score <= 1
    assert [result.filename for result in filtered] == ["mill.txt"]


def test_passages_that_score_less_than_the_threshold_are_not_read(client, store):
    include = ["file_search_call.results"]
    scores = [result.score for result in ask(client, store, include=include).output[0].results]
    ranking = {"ranker": "none", "score_threshold": scores[0]}
    best = ask(client, store, include=include, search={"ranking_options": ranking}).output[0].results

    assert scores[0] > scores[1]
    assert [result.score for result in best] == scores[:1]


def test_sampling_parameters_reach_the_engine(openai_service, client, store):
    ask(client, store, temperature=0.4, top_p=0.9, max_output_tokens=50, extra_body={"seed": 5})
    sampling = openai_service.runner.requests[-1].sampling

    assert (sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed) == (0.4, 0.9, 50, 5)


def test_an_answer_that_is_cut_off_is_incomplete(client, store):
    response = ask(client, store, max_output_tokens=5)
    *_, last = ask(client, store, max_output_tokens=5, stream=True)

    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.output[-1].status == "incomplete"
    assert (last.type, last.response.status) == ("response.incomplete", "incomplete")
    assert last.response.output_text == response.output_text


def test_a_stream_has_the_events_of_the_protocol_in_order(client, store):
    whole = ask(client, store)
    events = list(ask(client, store, stream=True))
    names = [event.type for event in events]
    text = [event for event in events if event.type == "response.output_text.delta"]
    last = events[-1].response

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert list(dict.fromkeys(names)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.output_item.done",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.completed",
    ]
    assert "".join(event.delta for event in text) == whole.output_text == last.output_text
    assert {(event.output_index, event.content_index, event.item_id) for event in text} == {(1, 0, last.output[1].id)}
    [noted] = [event for event in events if event.type == "response.output_text.annotation.added"]
    assert noted.annotation.model_dump() == last.output[1].content[0].annotations[0].model_dump()
    assert [event.item for event in events if event.type == "response.output_item.done"] == last.output
    assert {event.response.id for event in (events[0], events[1], events[-1])} == {last.id}
    # A question that was asked before is not embedded again.
    assert {**last.usage.components, "embedding": 0} == {**whole.usage.components, "embedding": 0}
    same = {"id", "created_at", "completed_at", "output", "usage"}
    assert last.model_dump(exclude=same) == whole.model_dump(exclude=same)


def test_log_probabilities_are_of_the_tokens_as_generated(client, store):
    include = ["message.output_text.logprobs"]
    response = ask(client, store, include=include, top_logprobs=2)
    streamed = ask(client, store, include=include, stream=True, stream_options={"include_obfuscation": True})
    events = [event for event in streamed if event.type == "response.output_text.delta"]
    told = response.output[-1].content[0].logprobs

    assert "".join(entry.token for entry in told) == SAYS
    assert {entry.logprob for entry in told} == {LOGPROB}
    assert {len(entry.top_logprobs) for entry in told} == {2}
    assert "".join(entry.token for event in events for entry in event.logprobs) == SAYS
    assert all((len(event.delta) + len(event.obfuscation)) % 32 == 0 for event in events)


def test_the_stream_helper_and_parse_work(client, store):
    tool = {"type": "file_search", "vector_store_ids": [store]}
    with client.responses.stream(model="footnote", input=QUESTION, tools=[tool]) as stream:
        names = [event.type for event in stream]
        assert stream.get_final_response().output_text == SHOWN
    assert names[-1] == "response.completed"

    class Anything(BaseModel):
        ships: int

    with pytest.raises(ValueError, match="JSON"):  # the scripted model says prose; the schema was asked for
        client.responses.parse(model="footnote", input=QUESTION, tools=[tool], text_format=Anything)


def test_the_async_client_works(openai_service, store):
    async def both() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=f"{openai_service.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
            whole = await ask(client, store)
            stream = await ask(client, store, stream=True)
            streamed = [event.delta async for event in stream if event.type == "response.output_text.delta"]
            return whole.output_text, "".join(streamed)

    assert asyncio.run(both()) == (SHOWN, SHOWN)


def test_the_output_is_sent_back_as_input(openai_service, client, store):
    first = ask(client, store)
    asked = [{"role": "user", "content": QUESTION}, *first.output, {"role": "user", "content": f"Again: {QUESTION}"}]
    second = ask(client, store, asked)
    prompt = "".join(map(chr, openai_service.runner.requests[-1].prompt))

    assert second.output_text == SHOWN
    assert SHOWN in prompt, "the earlier answer is in the prompt"
    assert second.usage.components["history"] > 0


def test_a_question_without_an_answer_in_the_documents_is_not_generated(client, store):
    response = ask(client, store, search={"filters": {"type": "gt", "key": "year", "value": 2000}})

    assert (response.status, response.usage.output_tokens) == ("completed", 0)
    assert response.output_text != SHOWN
    assert response.output[-1].content[0].annotations == []


def test_c12_a_stream_that_fails_ends_with_the_failure_and_what_it_cost(openai_service, client, store):
    *_, last = ask(client, store, f"{QUESTION} explode", stream=True)

    assert (last.type, last.response.status, last.response.error.code) == ("response.failed", "failed", "server_error")
    assert last.response.error.problem["type"] == "urn:footnote:problem:generation-failed"
    assert last.response.usage.output_tokens > 0
    assert settled(openai_service, last.response.id) == ["error"]


def test_an_answer_that_fails_is_the_clients_exception(client, store):
    with pytest.raises(openai.InternalServerError) as raised:
        ask(client, store, f"{QUESTION} explode")

    assert problem(raised)["error"]["code"] == "generation_failed"


@pytest.mark.parametrize("stream", [False, True])
def test_c9_a_prompt_that_does_not_fit_is_refused_with_the_counts(client, store, stream):
    with pytest.raises(openai.UnprocessableEntityError) as raised:
        ask(client, store, max_output_tokens=100_000, stream=stream)

    assert problem(raised)["max_output_tokens"] == 100_000
    assert problem(raised)["error"]["code"] == "context_length_exceeded"


def test_errors_are_the_clients_exceptions(openai_service, client, store):
    with pytest.raises(openai.NotFoundError):
        ask(client, "nowhere")
    with pytest.raises(openai.NotFoundError):
        ask(client, store, model="gpt-9")
    with pytest.raises(openai.BadRequestError, match="reasoning") as raised:
        ask(client, store, reasoning={"effort": "low"})
    assert (raised.value.code, raised.value.param) == ("unsupported_parameter", "reasoning")
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, store, [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}])
    assert raised.value.param == "input.0.content.0.type"
    with pytest.raises(openai.UnprocessableEntityError) as unprocessable:
        ask(client, store, [{"role": "assistant", "content": "Yes."}])
    assert unprocessable.value.param == "input"
    with pytest.raises(openai.UnprocessableEntityError) as unprocessable:
        ask(client, store, search={"filters": {"type": "like", "key": "year", "value": 1}})
    assert problem(unprocessable)["type"] == "urn:footnote:problem:invalid-filter"
    other = openai_service.http.post("/v1/collections", json={"name": "another of responses"}).json()["id"]
    with pytest.raises(openai.UnprocessableEntityError) as unprocessable:
        ask(client, store, model=f"footnote:{other}")
    assert unprocessable.value.param == "model"
    with pytest.raises(openai.AuthenticationError):
        ask(client.with_options(api_key="fn_nobody"), store)
    limited = client.with_options(api_key=openai_service.key(Role.READER, collections=(other,)))
    with pytest.raises(openai.NotFoundError):
        ask(limited, store)


def test_events_are_named_in_the_stream_too(openai_service, store):
    body = {"model": "footnote", "input": QUESTION, "stream": True}
    lines = openai_service.http.post("/v1/responses", json=body).text.splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]

    assert names == [one["type"] for one in data]
    assert names[-1] == "response.completed"
