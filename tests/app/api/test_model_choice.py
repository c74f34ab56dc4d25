"""The choice of a generator over HTTP: what is here, and a test of a remote server that changes nothing."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from app.models.installed import OFFERED
from app.outbound.model_servers import ModelServers
from app.server.state import State
from tests.app.api.conftest import client_of
from tests.app.outbound.test_web_pages import PUBLIC, Names, Wire, answer
from tests.app.server.stations import state_with

LIST = answer(json.dumps({"data": [{"id": "acme/m-1", "max_model_len": 4096}]}).encode())
URL = "https://models.example/v1"


@pytest.fixture
def wire() -> Wire:
    return Wire(LIST)


@pytest.fixture
def asking(state: State, wire: Wire) -> Iterator[TestClient]:
    """A client of a server that reaches servers of models by `wire`."""
    servers = ModelServers(resolve=Names({"models.example": [[PUBLIC]]}), backend=wire)
    changed = state_with(state, serving=replace(state.serving, model_servers=servers))
    with client_of(changed) as client:
        yield client


def answered(client: TestClient, **body: object) -> dict[str, object]:
    response = client.post("/v1/admin/models/test-server", json={"url": URL, **body})
    assert response.status_code == 200, response.text
    found: dict[str, object] = response.json()
    return found


def test_a_server_that_speaks_is_told_with_the_settings_to_write(asking, wire, state):
    before = state.settings.model_dump()
    found = answered(asking, key="sk-secret")

    assert found == {
        "object": "server_test",
        "speaks": True,
        "status": 200,
        "models": [{"id": "acme/m-1", "context_window": 4096}],
        "completes": None,
        "api": None,
        "detail": "It speaks OpenAI's protocol.",
        "settings": {
            "FOOTNOTE_REMOTE_URL": URL,
            "FOOTNOTE_REMOTE_MODEL": "acme/m-1",
            "FOOTNOTE_GENERATOR": "acme/m-1",
            "FOOTNOTE_REMOTE_API_KEY": "<the key of the server>",
        },
    }
    assert b"Bearer sk-secret" in bytes(wire.sent)
    assert state.settings.model_dump() == before


def test_a_server_of_chat_completions_needs_no_tokenizer(asking, wire):
    wire.answer_instead([*LIST, *answer(b"{}", status="404 Not Found"), *answer(b'{"choices": [{}]}')])
    found = answered(asking, model="acme/m-1")

    assert (found["completes"], found["api"]) == (True, "chat")
    assert found["settings"] == {
        "FOOTNOTE_REMOTE_URL": URL,
        "FOOTNOTE_REMOTE_MODEL": "acme/m-1",
        "FOOTNOTE_REMOTE_API": "chat",
    }


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://10.0.0.7/v1", "ftp://models.example", "nonsense"])
def test_an_address_that_is_not_allowed_is_refused_by_its_field(asking, wire, url):
    response = asking.post("/v1/admin/models/test-server", json={"url": url})

    assert response.status_code == 422
    assert (response.json()["type"], response.json()["param"]) == ("urn:footnote:problem:url-not-allowed", "url")
    assert wire.connected == []


def test_a_key_that_no_header_can_carry_is_refused(asking):
    response = asking.post("/v1/admin/models/test-server", json={"url": URL, "key": "sk-\n1"})

    assert (response.status_code, response.json()["param"]) == (422, "key")


def test_only_the_operator_tests_servers(client):
    key = client.post("/v1/admin/tenants", json={"id": "acme", "name": "Acme"})
    assert key.status_code == 201
    secret = client.post("/v1/admin/tenants/acme/keys", json={"user_id": "ada"}).json()["secret"]
    theirs = {"Authorization": f"Bearer {secret}"}

    assert client.post("/v1/admin/models/test-server", json={"url": URL}, headers=theirs).status_code == 403
    assert client.get("/v1/admin/models", headers=theirs).status_code == 403


def test_the_generators_of_this_machine_are_listed(client):
    body = client.get("/v1/admin/models").json()

    assert body["object"] == "generators"
    assert body["total_bytes"] >= body["available_bytes"] > 0
    for one in body["installed"]:
        assert one["needed_bytes"] > 0
        assert one["default"] == (one["setting"] == "SmolLM2-135M-Instruct")


def test_what_is_on_offer_has_its_licence_its_size_and_whether_it_fits(client, state):
    listed = client.get("/v1/models/offered")
    assert listed.status_code == 200
    found = listed.json()["data"]

    hub = {one["name"]: one for one in found if one["source"] == "hub"}
    assert {name: one["licence"] for name, one in hub.items()} == {one.id: one.licence for one in OFFERED}
    assert not any(one["installed"] for one in hub.values())
    assert hub["Qwen/Qwen3-1.7B"]["bytes"] == 3_400_000_000 < hub["Qwen/Qwen3-1.7B"]["needed_bytes"]
    room = client.get("/v1/admin/models").json()["available_bytes"]
    assert [one["fits"] for one in hub.values()] == sorted((one["fits"] for one in hub.values()), reverse=True)
    assert not hub["Qwen/Qwen3-32B"]["fits"] or room > hub["Qwen/Qwen3-32B"]["bytes"]


def test_a_generator_of_this_machine_is_on_offer_by_name_and_never_by_its_path(state, tmp_path):
    folder = tmp_path / "own-model"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").write_bytes(b"0" * 1000)
    changed = replace(state, settings=state.settings.model_copy(update={"generator": str(folder)}))
    with client_of(changed) as client:
        found = client.get("/v1/models/offered")

    (own,) = [one for one in found.json()["data"] if one["name"] == "own-model"]
    assert (own["source"], own["licence"], own["bytes"], own["installed"]) == ("machine", None, 1000, True)
    assert str(tmp_path) not in found.text
