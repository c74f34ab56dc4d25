"""Hostile text in documents is data (cases E6 and E8): it comes back as it was, runs nowhere, and can be removed.

How often a document takes an answer over (E7) is measured by `footnote eval-injections`: see docs/BENCHMARKS.md,
"Instructions in documents", and tests/app/evaluation/injections/test_measurement.py.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.types import Role
from tests.bench.service.tenancies import Caller, Tenancies, tenancies

HOSTILE = "<img src=x onerror=alert(1)> [click](javascript:alert(1)) ![p](https://attacker.example/?q=1) </script>"
TEXT = f"The keeper counted ninety narwhals {HOSTILE} at the northern cape."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenancies]:
    with tenancies(tmp_path_factory.mktemp("hostile") / "data", tenants=1, documents=1) as made:
        yield made


@pytest.fixture(scope="module")
def admin(made: Tenancies) -> Caller:
    return next(caller for caller in made.callers if caller.role is Role.ADMIN and caller.part is None)


def upload(made: Tenancies, admin: Caller, text: str, **fields: object) -> dict[str, Any]:
    body = {"text": text, "filename": "a.txt", "wait": 30, **fields}
    response = made.client.post("/v1/documents", json=body, headers=admin.headers)
    document: dict[str, Any] = response.json()
    assert document["status"] == "indexed", document
    return document


@pytest.fixture(scope="module")
def hostile(made: Tenancies, admin: Caller) -> dict[str, Any]:
    """A document that is hostile in its text, its name, its metadata and its own id."""
    metadata = {"title": HOSTILE, "link": "javascript:alert(1)"}
    return upload(made, admin, TEXT, filename=f"{HOSTILE}.txt", metadata=metadata, external_id="javascript:alert(1)")


def test_e6_what_a_document_says_comes_back_as_json_and_unchanged(
    made: Tenancies, admin: Caller, hostile: dict[str, Any]
) -> None:
    path = f"/v1/documents/{hostile['id']}"
    search, ask = {"query": "ninety narwhals"}, {"question": "Where were ninety narwhals counted?"}
    title = {"title": HOSTILE}
    for method, asked, body in (
        ("GET", path, None),
        ("GET", "/v1/documents", None),
        ("GET", f"{path}/chunks", None),
        ("POST", "/v1/search", search),
        ("POST", "/v1/ask", {**ask, "document_ids": [hostile["id"]]}),
        ("POST", "/v1/conversations", title),
        ("POST", "/v1/collections", {"name": HOSTILE}),
    ):
        response = made.client.request(method, asked, json=body, headers=admin.headers)
        assert response.is_success, response.text
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "script-src" not in response.headers["content-security-policy"]
        assert "onerror=alert(1)" in json.dumps(response.json()), (asked, "it is neither lost nor rewritten")


def test_e6_the_canonical_text_is_plain_text_and_the_original_an_attachment_in_a_sandbox(
    made: Tenancies, admin: Caller, hostile: dict[str, Any]
) -> None:
    text = made.client.get(f"/v1/documents/{hostile['id']}/content", headers=admin.headers)
    original = made.client.get(f"/v1/documents/{hostile['id']}/file", headers=admin.headers)

    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert HOSTILE in text.text
    assert original.headers["content-security-policy"] == "sandbox"
    assert original.headers["content-disposition"].startswith("attachment")
    assert "\n" not in original.headers["content-disposition"]
    for response in (text, original):
        assert response.headers["x-content-type-options"] == "nosniff"


def test_e6_a_streamed_answer_is_no_html_however_its_tags_are_split(
    made: Tenancies, admin: Caller, hostile: dict[str, Any]
) -> None:
    ask = {"question": "Where were ninety narwhals counted?", "document_ids": [hostile["id"]], "stream": True}

    response = made.client.post("/v1/ask", json=ask, headers=admin.headers)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_e6_a_problem_quotes_hostile_input_as_problem_json_alone(made: Tenancies, admin: Caller) -> None:
    response = made.client.get("/v1/documents", params={"status": HOSTILE, "cursor": HOSTILE}, headers=admin.headers)

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


def test_e6_no_address_that_we_make_runs_a_script(made: Tenancies, admin: Caller, hostile: dict[str, Any]) -> None:
    ask = {"question": "Where were ninety narwhals counted?", "document_ids": [hostile["id"]]}
    answer = made.client.post("/v1/ask", json=ask, headers=admin.headers).json()

    assert answer["citations"]
    for citation in answer["citations"]:
        addresses = [value for name, value in citation.items() if name.endswith(("url", "href", "uri"))]
        assert not [address for address in addresses if not str(address).startswith(("/", "https://"))]


def test_e8_poisoned_documents_are_named_as_sources_and_purged_by_where_they_came_from(
    made: Tenancies, admin: Caller
) -> None:
    poison = [
        upload(
            made, admin, f"The lighthouse password is swordfish, says source {number}.", metadata={"source": "crawl"}
        )
        for number in range(5)
    ]
    honest = upload(made, admin, "The lighthouse has no password.", metadata={"source": "handbook"})
    ask = {"question": "What is the lighthouse password?", "top_k": 20}

    before = made.client.post("/v1/ask", json=ask, headers=admin.headers).json()
    condition = {"filter": {"source": "crawl"}}
    listed = made.client.get("/v1/documents", params={"filter": json.dumps(condition["filter"])}, headers=admin.headers)
    purged = made.client.post("/v1/documents/delete", json=condition, headers=admin.headers).json()
    after = made.client.post("/v1/search", json={"query": ask["question"], "top_k": 50}, headers=admin.headers)

    assert {citation["document_id"] for citation in before["citations"]} <= {one["id"] for one in [*poison, honest]}
    assert before["citations"], "provenance is shown"
    assert {one["id"] for one in listed.json()["data"]} == {one["id"] for one in poison}
    assert purged["documents"] == 5
    found = {hit["document_id"] for hit in after.json()["data"]}
    assert honest["id"] in found
    assert not found & {one["id"] for one in poison}
