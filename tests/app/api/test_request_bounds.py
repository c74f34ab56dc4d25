"""Maxima of requests that are written by hand, or that no schema can say, hold over HTTP."""

import json

import pytest

from app.api.gate.body_limits import MIB
from app.api.openai.schemas.chat import ChatCompletionRequest
from app.api.schemas.bounds import MOST_FIELDS, MOST_ID, MOST_METADATA, MOST_QUESTION, MOST_TEXT
from app.api.schemas.search import SearchRequest

FILE = {"file": ("a.txt", b"Revenue rose.", "text/plain")}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("collection_id", "c" * (MOST_ID + 1)),
        ("metadata", json.dumps({"note": "é" * MOST_METADATA}, ensure_ascii=False)),
        ("metadata", json.dumps({"list": [1] * (MOST_FIELDS + 1)})),
        ("metadata", json.dumps(dict.fromkeys(map(str, range(MOST_FIELDS + 1)), 1))),
    ],
)
def test_a_form_field_above_its_maximum_is_422(client, field, value):
    refused = client.post("/v1/documents", files=FILE, data={field: value})

    assert refused.status_code == 422
    assert field in refused.json()["detail"]


def test_metadata_as_large_as_it_may_be_is_taken(client):
    metadata = {"note": "n" * (MOST_METADATA - 100)}

    assert client.post("/v1/documents", files=FILE, data={"metadata": json.dumps(metadata)}).status_code == 202
    assert (
        client.post("/v1/collections", json={"name": "a", "metadata": {"list": [1] * MOST_FIELDS}}).status_code == 201
    )


@pytest.mark.parametrize("long", ["2" * MIB, "2025-01-01T00:00:00." + "0" * 500_000 + "Z", " " * 500_000])
def test_a_time_is_no_place_for_a_long_text(client, long):
    refused = client.post("/v1/admin/keys", json={"name": "ci", "expires_at": long[: MIB - 100]})

    assert refused.status_code == 422
    assert len(refused.content) < 1000


def test_an_id_in_a_path_that_none_can_have_is_422(client):
    assert client.get(f"/v1/documents/{'d' * (MOST_ID + 1)}").status_code == 422
    assert client.get(f"/v1/documents/{'d' * MOST_ID}").status_code == 404


def test_the_messages_of_a_chat_have_a_maximum_together():
    def chat(*lengths: int) -> ChatCompletionRequest:
        messages = [{"role": "user", "content": [{"type": "text", "text": "a" * length}]} for length in lengths]
        return ChatCompletionRequest.model_validate({"model": "footnote", "messages": messages})

    assert len(chat(MOST_TEXT - 1, 1).messages) == 2
    with pytest.raises(ValueError, match="more than 131072 characters together"):
        chat(MOST_TEXT, 1)


def test_a_query_has_a_maximum():
    assert SearchRequest(query="a" * MOST_QUESTION).query
    with pytest.raises(ValueError, match="at most 32768 characters"):
        SearchRequest(query="a" * (MOST_QUESTION + 1))


@pytest.mark.parametrize(
    "metadata",
    [
        {f"field {number}": 1 for number in range(17)},
        {"n" * 65: 1},
        {"name": "v" * 513},
        {"name": ["v" * 513]},
        {"name": [1] * 17},
    ],
    ids=["fields", "a name", "a value", "a value in a list", "a list"],
)
def test_metadata_of_a_conversation_is_small(client, metadata):
    made = client.post("/v1/conversations", json={"metadata": {"n" * 64: "v" * 512, "list": [None, True, 2.5, "a"]}})
    assert made.status_code == 201

    assert client.post("/v1/conversations", json={"metadata": metadata}).status_code == 422
    assert client.patch(f"/v1/conversations/{made.json()['id']}", json={"metadata": metadata}).status_code == 422
