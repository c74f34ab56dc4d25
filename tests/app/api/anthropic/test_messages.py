"""Anthropic's own client against /v1/messages over a socket."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from app.types import Role
from tests.app.api.openai.openai_server import SAYS, Service
from tests.server import ADMIN_KEY

SHIPS = "The keeper counted forty ships in the harbour of Lindau."
QUESTION = "How many ships did the keeper count in the harbour of Lindau?"


@pytest.fixture(scope="module")
def harbour(openai_service: Service) -> str:
    """A collection that says how many ships there are."""
    made = openai_service.http.post("/v1/collections", json={"name": "quay"}).json()["id"]
    openai_service.upload(SHIPS, "quay.txt", collection_id=made)
    return str(made)


@pytest.fixture
def client(openai_service: Service) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=openai_service.url, api_key=ADMIN_KEY, max_retries=0) as client:
        yield client


def asking(harbour: str, content: Any = QUESTION, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"model": f"footnote:{harbour}", "max_tokens": 100, "messages": [message], **fields}


def test_an_answer_is_blocks_with_the_exact_characters_of_their_sources(
    openai_service: Service, client: anthropic.Anthropic, harbour: str
) -> None:
    message = client.messages.create(**asking(harbour))

    assert (message.type, message.role, message.stop_reason) == ("message", "assistant", "end_turn")
    [block] = message.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert block.text == "Forty ships."
    assert block.citations is not None
    [place] = block.citations
    assert isinstance(place, anthropic.types.CitationCharLocation)
    assert (place.document_index, place.document_title) == (0, "quay.txt")
    content = openai_service.http.get(f"/v1/documents/{place.file_id}/content").text
    assert content[place.start_char_index : place.end_char_index] == place.cited_text == SHIPS
    facts = message.model_extra["footnote"] if message.model_extra else {}
    assert (facts["answered"], facts["answer"]) == (True, "Forty ships.[1]")
    assert [one["cited_text"] for one in facts["citations"]] == [SHIPS]


def test_a_stream_accumulates_to_the_same_message(client: anthropic.Anthropic, harbour: str) -> None:
    whole = client.messages.create(**asking(harbour))

    with client.messages.stream(**asking(harbour)) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()

    assert [(block.text, block.citations) for block in streamed.content if block.type == "text"] == [
        (block.text, block.citations) for block in whole.content if block.type == "text"
    ]
    assert (streamed.stop_reason, streamed.model) == (whole.stop_reason, whole.model)
    assert streamed.usage.output_tokens == whole.usage.output_tokens == len(SAYS) + 1
    assert kinds[0] == "message_start"
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_usage_is_what_the_ledger_has(openai_service: Service, client: anthropic.Anthropic, harbour: str) -> None:
    usage = (message := client.messages.create(**asking(harbour))).usage
    rows = openai_service.state.usage.ledger.usage(message.id)

    told = usage.input_tokens + (usage.cache_read_input_tokens or 0)
    assert (told, usage.output_tokens) == (
        sum(row.input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
    )


def test_the_same_question_costs_the_same_as_a_chat_completion(
    openai_service: Service, client: anthropic.Anthropic, harbour: str
) -> None:
    asked = asking(harbour, system="Be brief.")
    turns = [{"role": "system", "content": "Be brief."}, *asked["messages"]]
    chat = {"model": asked["model"], "max_tokens": 100, "messages": turns}
    client.messages.create(**asked)  # the question's vector is cached from here on

    completion = openai_service.http.post("/v1/chat/completions", json=chat).json()
    extra = client.messages.create(**asked).usage.model_extra

    assert extra is not None
    usage, other = extra["footnote"], completion["usage"]
    for told in (usage, other):
        told["prompt_tokens_details"] = None  # what is cached depends on the order
        for call in told["calls"]:
            call["cached_tokens"] = 0
    assert usage == other


def test_an_answer_can_be_sent_back_as_a_turn(
    openai_service: Service, client: anthropic.Anthropic, harbour: str
) -> None:
    first = client.messages.create(**asking(harbour))
    blocks = [block.model_dump() for block in first.content]
    turns = [
        {"role": "user", "content": [{"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": "And where were they?"},
    ]

    client.messages.create(**{**asking(harbour), "messages": turns})

    prompt = "".join(map(chr, openai_service.runner.requests[-1].prompt))
    assert "Forty ships." in prompt
    assert "where were the ships?" in prompt, "the follow-up is searched for by itself"


def test_stop_sequences_and_length_end_it(client: anthropic.Anthropic, harbour: str) -> None:
    stopped = client.messages.create(**asking(harbour, stop_sequences=[" ships"]))
    cut = client.messages.create(**{**asking(harbour), "max_tokens": 5})

    assert [block.text for block in stopped.content if block.type == "text"] == ["Forty"]
    assert (stopped.stop_reason, cut.stop_reason) == ("end_turn", "max_tokens")
    assert cut.usage.output_tokens == 5


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"tools": [{"name": "x", "input_schema": {"type": "object"}}]}, "tools"),
        ({"tool_choice": {"type": "auto"}}, "tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
        ({"container": "c"}, "container"),
        ({"output_config": {"effort": "high"}}, "output_config"),
        ({"extra_body": {"mcp_servers": [{"url": "x"}]}}, "mcp_servers"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    client: anthropic.Anthropic, harbour: str, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=named) as refused:
        client.messages.create(**asking(harbour, **fields))

    body: Any = refused.value.body
    assert (body["error"]["type"], body["param"]) == ("invalid_request_error", named)


def test_an_image_is_refused_by_its_place(client: anthropic.Anthropic, harbour: str) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}

    with pytest.raises(anthropic.BadRequestError, match="'image' is not supported"):
        client.messages.create(**asking(harbour, [image, {"type": "text", "text": "What is this?"}]))


def test_a_wrong_key_an_unknown_model_and_an_empty_question_are_its_clients_errors(
    openai_service: Service, client: anthropic.Anthropic, harbour: str
) -> None:
    wrong = anthropic.Anthropic(base_url=openai_service.url, api_key="fn_wrong", max_retries=0)
    with wrong, pytest.raises(anthropic.AuthenticationError) as unknown:
        wrong.messages.create(**asking(harbour))
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(**{**asking(harbour), "model": "another"})
    with pytest.raises(anthropic.UnprocessableEntityError, match="last message must be the user's"):
        client.messages.create(**asking(harbour, " "))

    body: Any = unknown.value.body
    assert body["error"]["type"] == "authentication_error"


def test_a_bearer_key_serves_and_only_here_is_an_api_key_a_key(openai_service: Service, harbour: str) -> None:
    secret = openai_service.key(Role.READER)
    with anthropic.Anthropic(base_url=openai_service.url, auth_token=secret, api_key=None, max_retries=0) as bearing:
        assert bearing.messages.create(**asking(harbour)).content

    elsewhere = openai_service.http.get("/v1/documents", headers={"Authorization": "", "x-api-key": ADMIN_KEY})
    assert elsewhere.status_code == 401


def test_a_stream_that_fails_ends_with_an_error_event(
    openai_service: Service, client: anthropic.Anthropic, harbour: str
) -> None:
    asked = {**asking(harbour, f"{QUESTION} explode"), "stream": True}
    events = [line for line in openai_service.http.post("/v1/messages", json=asked).text.splitlines() if line]

    assert events[-2] == "event: error"
    told = json.loads(events[-1].removeprefix("data: "))
    assert (told["type"], told["error"]["type"]) == ("error", "overloaded_error")
    with pytest.raises(anthropic.APIStatusError), client.messages.stream(**asking(harbour, f"{QUESTION} explode")) as s:
        list(s)


def test_each_parameter_of_the_clients_types_is_served_or_refused_by_name(
    openai_service: Service, harbour: str
) -> None:
    """A parameter that we have not looked at fails here, and not at a user's."""
    hints = anthropic.types.message_create_params.MessageCreateParamsNonStreaming.__annotations__
    base = anthropic.types.message_create_params.MessageCreateParamsBase.__annotations__
    described = openai_service.http.get("/openapi.json").json()["components"]["schemas"]["MessageRequest"]["properties"]
    for name in {*hints, *base} - set(described):
        answer = openai_service.http.post("/v1/messages", json={**asking(harbour), name: {"type": "x"}})
        assert (answer.status_code, answer.json()["param"]) == (400, name)
