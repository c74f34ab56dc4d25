"""The server refuses invalid requests with the right status, and goes on serving."""

import http.client
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server import Server

PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
)
ROOT = str(Path(__file__).resolve().parents[2])


def refused(response: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    body: dict[str, Any] = response.json()
    assert response.status_code == status, body
    assert response.headers["content-type"] == "application/problem+json"
    assert body["type"] == f"urn:footnote:problem:{slug}"
    assert body["status"] == status
    assert body["instance"] == response.headers["x-request-id"] != ""
    assert "Traceback" not in response.text
    assert ROOT not in response.text
    assert "site-packages" not in response.text
    return body


@pytest.fixture(autouse=True)
def goes_on(server: Server):
    yield
    assert server.http.get("/readyz").status_code == 200


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer fn_wrong", "Basic Zm46", "fn_test"])
def test_a_wrong_key_is_401(server, header):
    headers = {} if header is None else {"Authorization": header}
    response = httpx.get(f"{server.url}/v1/documents", headers=headers, trust_env=False, timeout=60)

    refused(response, 401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path", ["/v1/documents/doc_nope", "/v1/jobs/job_nope", "/v1/collections/col_nope", "/v1/nope"]
)
def test_an_unknown_id_is_404(server, path):
    refused(server.http.get(path), 404, "not-found")


def test_a_question_about_an_unknown_collection_is_404(server):
    refused(server.http.post("/v1/ask", json={"question": "?", "collection_ids": ["col_nope"]}), 404, "not-found")


def test_an_empty_file_is_422(server):
    refused(server.http.post("/v1/documents", files={"file": ("a.txt", b"")}), 422, "unreadable-document")


def test_a_file_above_the_limit_is_413_for_a_client_that_only_writes(server):
    big = b"\0" * (1 << 20)

    def blocks():
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="big.bin"\r\n\r\n'
        for _ in range(200):
            yield big
        yield b"\r\n--b--\r\n"

    response = server.http.post(
        "/v1/documents", content=blocks(), headers={"Content-Type": "multipart/form-data; boundary=b"}
    )
    refused(response, 413, "too-large")


def test_a_declared_size_above_the_limit_is_413_before_the_body(server):
    address = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.putrequest("POST", "/v1/documents")
    connection.putheader("Authorization", server.http.headers["authorization"])
    connection.putheader("Content-Type", "multipart/form-data; boundary=b")
    connection.putheader("Content-Length", str(200 << 20))
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    started = time.monotonic()

    assert connection.getresponse().status == 413
    assert time.monotonic() - started < 5
    connection.close()


def test_a_pdf_named_docx_is_415_and_says_so(server):
    body = refused(server.http.post("/v1/documents", files={"file": ("letter.docx", PDF)}), 415, "unsupported-format")
    assert "PDF" in body["detail"]
    assert ".docx" in body["detail"]


def test_an_image_is_415(server):
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
    refused(server.http.post("/v1/documents", files={"file": ("a.png", png)}), 415, "unsupported-format")


@pytest.mark.parametrize("body", [b"{", b"", b'{"question": NaN}', b"[]", b'"x"', b"\xff\xfe"])
def test_invalid_json_is_422(server, body):
    response = server.http.post("/v1/ask", content=body, headers={"Content-Type": "application/json"})

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "change",
    [
        {"top_k": 0}, {"top_k": 10**9}, {"temperature": -1}, {"temperature": 1e308}, {"temperature": "hot"},
        {"top_p": 0}, {"max_output_tokens": 0}, {"max_output_tokens": 10**30}, {"seed": 10**40}, {"unknown": 1},
        {"question": ""},
        {"collection_ids": "col_1"}, {"filter": {"$where": 1}}, {"mode": "psychic"},
    ],
)  # fmt: skip
def test_a_bad_parameter_is_422_and_names_the_field(server, change):
    response = server.http.post("/v1/ask", json={"question": "Why?", **change})
    body = response.json()

    assert response.status_code == 422
    assert next(iter(change)) in str(body) or "$where" in body["detail"]


@pytest.mark.parametrize("answering", ["server", "generating"])
def test_c9_a_question_longer_than_the_context_window_is_422_with_the_counts(request, answering):
    http = request.getfixturevalue(answering).http
    body = refused(http.post("/v1/ask", json={"question": "why " * 8_192}), 422, "context-length-exceeded")

    assert body["prompt_tokens"] > body["context_window"] == 8192


def test_c9_more_output_than_the_window_holds_is_422(generating):
    refused(
        generating.http.post("/v1/ask", json={"question": "Why?", "max_output_tokens": 9000}),
        422,
        "context-length-exceeded",
    )


def test_openai_routes_carry_openais_error_member(server):
    body = server.http.post(
        "/v1/chat/completions", json={"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]}
    )

    assert body.status_code == 404
    assert body.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..\\..\\x", "a\x00b.txt", "\u202egnp.exe", "x" * 4000, "🙂.txt", "CON", "."]
)
def test_a_hostile_file_name_is_only_metadata(server, name):
    body = server.http.post(
        "/v1/documents", json={"text": f"Text under the name {name!r}.", "filename": name[:1024], "wait": 20}
    ).json()

    assert body["status"] == "indexed", body
    assert "/" not in body["filename"]
    assert "\\" not in body["filename"]
    assert body["filename"].isprintable()


@pytest.mark.parametrize(
    "content",
    [b"--b\r\n", b"no boundary here", b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n'],
)
def test_broken_multipart_is_a_client_error(server, content):
    response = server.http.post(
        "/v1/documents", content=content, headers={"Content-Type": "multipart/form-data; boundary=b"}
    )

    assert response.status_code in {400, 422}
    assert response.headers["content-type"] == "application/problem+json"
