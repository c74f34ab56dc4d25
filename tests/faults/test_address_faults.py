"""FAULTS.md D12: no address inside the network is fetched, whatever a name or a redirect says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.outbound.web_pages import WebPages
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from tests.app.outbound.test_web_pages import PUBLIC, Names, Wire, answer, redirect
from tests.app.server.stations import state_with
from tests.faults.uploaded import client, client_of, originals, state
from tests.server import ADMIN_KEY

pytestmark = pytest.mark.timeout(300)

__all__ = ["client", "state"]


@pytest.fixture
def bare_state(tmp_path: Path) -> Iterator[State]:
    settings = Settings(data_dir=tmp_path / "data", admin_key=ADMIN_KEY, _env_file=None)
    with build(settings, with_models=False) as state:
        yield state


INTERNAL: dict[str, list[list[str]]] = {
    "localhost": [["127.0.0.1"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "mixed.example": [[PUBLIC, "10.0.0.1"]],
    "inner6.example": [["fd00::1"]],
    "mapped.example": [["::ffff:10.0.0.1"]],
    "nothing.example": [[]],
}


ADDRESSES = [
    "http://127.0.0.1/", "https://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0x7f.1/", "http://0177.0.0.1/", "http://017700000001/", "http://127。0。0。1/", "http://0/", "http://0.0.0.0/",
    "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[fe80::1]/", "http://[fe80::1%25lo]/",
    "http://[fd00::1]/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/", "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://224.0.0.1/",
    "http://255.255.255.255/", "http://localhost/", "http://LOCALHOST./", "http://metadata.google.internal/",
    "http://mixed.example/", "http://inner6.example/", "http://mapped.example/", "http://nothing.example/",
    "http://public.example:22/", "http://public.example:8080/", "http://public.example:0/", "http://public.example:65536/",
    "file:///etc/passwd", "gopher://public.example/", "ftp://public.example/", "dict://public.example/", "unix:///x",
    "javascript:alert(1)", "data:text/plain,x", "//public.example/", "/etc/passwd", "public.example", "http:///", "http://",
    "http://user@public.example/", "http://public.example@127.0.0.1/", "http://127.0.0.1@public.example/",
    "http://public.example\\@127.0.0.1/", "http://@public.example/", "http://public.example\r\nHost: x/", "http://[::1",
    "http://public.example/\0", " http://127.0.0.1/", "http://1.1.1.1.:99999/", "http://" + "a" * 2100 + ".example/",
]  # fmt: skip


def fetching(state: State, names: Names, wire: Wire, **settings: Any) -> TestClient:
    pages = WebPages(resolve=names, backend=wire)
    return client_of(state_with(state, web_pages=pages, settings=state.settings.model_copy(update=settings)))


def test_d12_an_address_that_is_not_public_is_never_connected_to(bare_state):
    wire = Wire()
    kinds = {
        "urn:footnote:problem:url-not-allowed",
        "urn:footnote:problem:url-not-fetched",  # a name that does not resolve
        "urn:footnote:problem:invalid-request",  # the schema's word, for one that is too long
    }
    with fetching(bare_state, Names({**INTERNAL, "public.example": [[PUBLIC]]}), wire) as client:
        for address in ADDRESSES:
            response = client.post("/v1/documents", json={"url": address})

            assert response.status_code == 422, (address, response.text)
            assert response.json()["type"] in kinds, address
            assert wire.connected == [], address


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1/", "http://2130706433/", "http://localhost/x", "//localhost/", "http://[::1]/", "file:///etc/passwd",
     "gopher://public.example/", "http://public.example:22/", "http://a@public.example/", "https://rebinding.example/"],
)  # fmt: skip
def test_d12_a_redirect_to_the_inside_is_not_followed(bare_state, target):
    names = Names({**INTERNAL, "public.example": [[PUBLIC]], "rebinding.example": [["10.0.0.1"]]})
    wire = Wire(redirect(target), answer(b"a secret"))
    with fetching(bare_state, names, wire) as client:
        response = client.post("/v1/documents", json={"url": "http://public.example/"})

    assert response.status_code == 422, response.text
    assert response.json()["type"] == "urn:footnote:problem:url-not-allowed"
    assert wire.connected == [(PUBLIC, 80)]
    assert originals(bare_state.settings.data_dir) == []


def test_d12_a_name_that_answers_differently_next_time_is_asked_once_and_its_answer_connected_to(bare_state):
    names = Names({"rebinding.example": [[PUBLIC], ["127.0.0.1"]]})
    wire = Wire(answer(b"Words."))
    with fetching(bare_state, names, wire) as client:
        response = client.post("/v1/documents", json={"url": "http://rebinding.example/a.txt"})

    assert response.status_code == 202
    assert names.asked == ["rebinding.example"]
    assert wire.connected == [(PUBLIC, 80)]


@pytest.mark.parametrize("framing", ["Content-Length: 10000000000", "Transfer-Encoding: chunked"])
def test_d12_a_body_without_end_is_read_no_further_than_the_cap(bare_state, framing):
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode()
        chunk = b"x" * (1 << 16)
        while True:
            read += 1
            yield b"10000\r\n" + chunk + b"\r\n" if "chunked" in framing else chunk

    with fetching(bare_state, Names({"public.example": [[PUBLIC]]}), Wire(endless()), max_upload_mb=1) as client:
        response = client.post("/v1/documents", json={"url": "http://public.example/"})

    assert response.status_code == 413
    assert read <= 32, "of 64 KiB each, for a cap of 1 MiB"
    assert originals(bare_state.settings.data_dir) == []


def test_d12_it_is_off_unless_an_administrator_turns_it_on(bare_state):
    assert bare_state.settings.web_pages is False
    assert bare_state.corpus.web_pages is None
