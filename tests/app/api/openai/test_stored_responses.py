"""OpenAI's own client stores responses, reads, continues, cancels and deletes them."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from app.types import Role
from tests.app.api.openai.openai_server import SHOWN, Service
from tests.app.api.openai.test_chat_completions import QUESTION, SHIPS
from tests.server import ADMIN_KEY


@pytest.fixture(scope="module")
def harbour(openai_service: Service) -> str:
    """A collection that says how many ships there are."""
    made = openai_service.http.post("/v1/collections", json={"name": "stored"}).json()["id"]
    openai_service.upload(SHIPS, "harbour.txt", collection_id=made)
    return str(made)


@pytest.fixture
def client(openai_service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{openai_service.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
        yield client


def ask(client: Any, harbour: str, question: Any = QUESTION, **fields: Any) -> Any:
    tool = {"type": "file_search", "vector_store_ids": [harbour]}
    return client.responses.create(**{"model": "footnote", "input": question, "tools": [tool], **fields})


def listed(service: Service) -> list[str]:
    return [one["id"] for one in service.http.get("/v1/conversations").json()["data"]]


def prompt(service: Service) -> str:
    return "".join(map(chr, service.runner.requests[-1].prompt))


@pytest.mark.parametrize("stream", [False, True])
def test_a_stored_response_is_read_as_it_was_returned(openai_service, client, harbour, stream):
    before = listed(openai_service)
    include = ["file_search_call.results"]
    made = ask(client, harbour, store=True, include=include, metadata={"team": "blue"}, stream=stream)
    response = list(made)[-1].response if stream else made

    assert response.store is True
    assert client.responses.retrieve(response.id) == response
    assert listed(openai_service) == before, "its conversation is in no list"


@pytest.mark.parametrize("fields", [{}, {"store": False}], ids=str)
def test_a_response_is_not_stored_unless_that_is_asked(client, harbour, fields):
    response = ask(client, harbour, **fields)

    assert response.store is False
    for attempt in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError, match="no such response"):
            attempt(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list(response.id)
    with pytest.raises(openai.NotFoundError):
        ask(client, harbour, previous_response_id=response.id)


def test_a_response_continues_another(openai_service, client, harbour):
    first = ask(client, harbour, store=True)
    second = ask(client, harbour, f"Again: {QUESTION}", previous_response_id=first.id)

    assert SHOWN in prompt(openai_service), "the earlier answer is in the prompt"
    assert (second.previous_response_id, second.store) == (first.id, True)
    third = list(ask(client, harbour, f"Once more: {QUESTION}", previous_response_id=second.id, stream=True))[
        -1
    ].response
    assert prompt(openai_service).count(SHOWN) == 2
    assert client.responses.retrieve(third.id).previous_response_id == second.id
    with pytest.raises(openai.ConflictError, match="continued already"):
        ask(client, harbour, previous_response_id=first.id)


def test_a_response_continues_a_conversation(openai_service, client, harbour):
    conversation = openai_service.http.post("/v1/conversations", json={"title": "Ships"}).json()["id"]
    first = ask(client, harbour, conversation=conversation)
    second = ask(client, harbour, f"Again: {QUESTION}", conversation={"id": conversation})
    turns = openai_service.http.get(f"/v1/conversations/{conversation}").json()["data"]

    assert [turn["request_id"] for turn in turns] == [first.id, second.id]
    assert second.conversation.id == conversation
    assert client.responses.retrieve(second.id) == second
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)
    assert len(openai_service.http.get(f"/v1/conversations/{conversation}").json()["data"]) == 2
    with pytest.raises(openai.NotFoundError):
        ask(client, harbour, conversation="conv_nowhere")


def test_the_input_items_of_a_response_are_listed(client, harbour):
    asked = [
        {"role": "user", "content": "Who counted?"},
        {"role": "assistant", "content": "The keeper."},
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
    ]
    response = ask(client, harbour, asked, store=True)
    newest = list(client.responses.input_items.list(response.id, limit=2))
    oldest = client.responses.input_items.list(response.id, order="asc", limit=1)

    assert [item.content[0].text for item in newest] == [QUESTION, "The keeper.", "Who counted?"], "page after page"
    assert [item.content[0].type for item in newest] == ["input_text", "output_text", "input_text"]
    assert len({item.id for item in newest}) == 3
    assert [item.content[0].text for item in oldest.data] == ["Who counted?"]
    assert oldest.has_more
    [one] = client.responses.input_items.list(ask(client, harbour, store=True).id).data
    assert (one.role, one.content[0].text) == ("user", QUESTION)


def test_a_deleted_response_is_gone(client, harbour):
    response = ask(client, harbour, store=True)
    client.responses.delete(response.id)

    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.delete(response.id)


def test_a_stored_response_that_has_ended_is_returned_by_cancelling(client, harbour):
    response = ask(client, harbour, store=True)

    assert client.responses.cancel(response.id) == response


def test_other_users_and_tenants_see_no_response(openai_service, client, harbour):
    response = ask(client, harbour, store=True)

    for fields in ({"role": Role.MEMBER}, {"role": Role.ADMIN, "tenant": "rival"}):
        other = client.with_options(api_key=openai_service.key(fields["role"], tenant=fields.get("tenant", "default")))
        for attempt in (other.responses.retrieve, other.responses.delete, other.responses.cancel):
            with pytest.raises(openai.NotFoundError):
                attempt(response.id)
        with pytest.raises(openai.NotFoundError):
            other.responses.create(model="footnote", input=QUESTION, previous_response_id=response.id)
    assert client.responses.retrieve(response.id) == response


def test_a_stream_cannot_be_read_again(client, harbour):
    response = ask(client, harbour, store=True)

    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.retrieve(response.id, stream=True)
    assert (raised.value.code, raised.value.param) == ("unsupported_parameter", "stream")


def test_what_cannot_be_stored_is_refused_before_it_is_answered(openai_service, harbour):
    tool = {"type": "file_search", "vector_store_ids": [harbour]}
    body = {"model": "footnote", "input": "Ships\0?", "tools": [tool], "store": True}
    refused = openai_service.http.post("/v1/responses", json=body)
    odd = {**body, "input": QUESTION, "metadata": {"a": "\0 \u2028 🙂"}}
    response = openai_service.http.post("/v1/responses", json=odd).json()

    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "input")
    assert openai_service.http.get(f"/v1/responses/{response['id']}").json()["metadata"] == odd["metadata"]
