"""app.outbound.model_servers: what a server of models answers, and which addresses are asked at all."""

import json

import pytest

from app.errors import UrlNotAllowed
from app.outbound.model_servers import ModelServers, ServedModel
from tests.app.outbound.test_web_pages import PUBLIC, Names, Wire, answer, redirect

INSIDE = "10.0.0.7"
NAMES = {"models.example": [[PUBLIC], [PUBLIC]], "gpu.internal": [[INSIDE], [INSIDE]]}
LIST = answer(json.dumps({"data": [{"id": "m-1", "max_model_len": 4096}, {"id": "m-2"}, {"id": 3}, {}]}).encode())


def servers(wire: Wire, hosts: str = "", configured: str = "") -> ModelServers:
    return ModelServers(hosts=hosts, configured=configured, resolve=Names(dict(NAMES)), backend=wire)


def test_a_server_that_speaks_lists_its_models():
    wire = Wire(LIST)
    found = servers(wire).test("https://models.example/v1/", key="sk-1")

    assert (found.speaks, found.status, found.completes) == (True, 200, None)
    assert found.models == (ServedModel("m-1", 4096), ServedModel("m-2"))
    head = bytes(wire.sent)
    assert head.startswith(b"GET /v1/models HTTP/1.1\r\n")
    assert b"Authorization: Bearer sk-1" in head
    assert "sk-1" not in repr(found)


def test_a_model_that_is_not_listed_is_not_asked():
    found = servers(Wire(LIST)).test("https://models.example/v1", model="m-9")

    assert (found.speaks, found.completes, found.detail) == (True, None, "It does not list this model.")


def replies(*answers: tuple[str, object]) -> list[bytes]:
    """The list of models, then answers by status and body, all on one connection."""
    return [*LIST, *(piece for status, body in answers for piece in answer(json.dumps(body).encode(), status=status))]


CHOICES = {"choices": [{"text": "a"}]}


@pytest.mark.parametrize(
    ("answers", "completes", "api", "detail"),
    [
        ([("200 OK", CHOICES)], True, "completions", "completes prompts of this model"),
        ([("404 Not Found", {}), ("200 OK", CHOICES)], True, "chat", "so no tokenizer is needed here"),
        ([("200 OK", {"error": "no"}), ("200 OK", CHOICES)], True, "chat", "answers messages"),
        ([("400 Bad Request", {}), ("401 Unauthorized", {})], False, None, "but answered 401 when it was asked for"),
    ],
)
def test_a_model_is_asked_for_a_token_by_numbers_and_else_by_messages(answers, completes, api, detail):
    wire = Wire(replies(*answers))
    found = servers(wire).test("https://models.example/v1", model="m-1")

    assert (found.speaks, found.completes, found.api) == (True, completes, api)
    assert detail in found.detail
    asked = bytes(wire.sent)
    assert b"POST /v1/completions HTTP/1.1" in asked
    assert (b"POST /v1/chat/completions HTTP/1.1" in asked) is (len(answers) == 2)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"<html>hello</html>", "does not list models"),
        (b"[" * 5000, "does not list models"),
        (b'{"data": []}', "does not list models"),
        (b"x" * (2 << 20), "does not list models"),
    ],
)
def test_something_else_does_not_speak(body, detail):
    found = servers(Wire(answer(body))).test("https://models.example/v1")

    assert not found.speaks
    assert detail in found.detail


def test_a_redirect_is_not_followed():
    wire = Wire(redirect("http://gpu.internal/v1/models"))
    found = servers(wire).test("https://models.example/v1")

    assert not found.speaks
    assert wire.connected == [(PUBLIC, 443)]


@pytest.mark.parametrize(
    "url",
    [
        "http://gpu.internal/v1",
        "http://gpu.internal:8000/v1",
        "http://127.0.0.1/v1",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/v1",
        "https://models.example:8000/v1",
        "file:///etc/passwd",
        "http://user:secret@models.example/v1",
    ],
)
def test_an_address_that_nobody_allowed_is_never_connected_to(url):
    wire = Wire(LIST)

    with pytest.raises(UrlNotAllowed) as refused:
        servers(wire, hosts="gpu.internal:9000").test(url)
    assert wire.connected == []
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("hosts", "configured"), [("gpu.internal:8000", ""), ("", "http://gpu.internal:8000/v1")], ids=["named", "in use"]
)
def test_an_address_that_is_allowed_may_be_inside(hosts, configured):
    wire = Wire(LIST)

    assert servers(wire, hosts, configured).test("http://gpu.internal:8000/v1").speaks
    assert wire.connected == [(INSIDE, 8000)]


def test_a_server_that_is_not_there_is_said_to_be():
    found = servers(Wire()).test("https://nowhere.example/v1")

    assert (found.speaks, found.status) == (False, None)
    assert found.detail
