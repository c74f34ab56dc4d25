"""The OpenAPI document is complete: it is what /docs shows."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.access.routes import is_public
from tests.described import openapi_document


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The description alone; nothing runs."""
    return openapi_document()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, there in document["paths"].items():
        for method, operation in there.items():
            yield method.upper(), path, operation


def schemas(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from document["components"]["schemas"].items()


def test_every_field_of_every_body_is_described(document):
    bare = [
        f"{name}.{field}"
        for name, schema in schemas(document)
        for field, details in schema.get("properties", {}).items()
        if "description" not in details and "$ref" not in details  # a reference is described where it leads
    ]

    assert bare == []
    assert [
        name
        for name, schema in schemas(document)
        if not schema.get("description") and not name.endswith("_")  # a list of things, each described
    ] == []


def test_every_failure_is_documented_as_a_problem(document):
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) >= 400 and path != "/readyz":
                assert list(response["content"]) == ["application/problem+json"], (method, path, status)


def test_every_operation_documents_the_failures_that_come_before_its_route(document):
    for method, path, operation in operations(document):
        public = is_public(path, method)
        expected = set() if public else {"401", "403", "429", "503"}
        if "requestBody" in operation:
            expected |= {"400", "408", "413", "422"}
        if method == "POST" and not public:
            expected |= {"400", "409", "422"}

        assert expected <= operation["responses"].keys(), (method, path)
        session: dict[str, list[str]] = {"session": []} if method.upper() == "GET" else {"session": [], "csrf": []}
        assert operation["security"] == ([] if public else [{"key": []}, session]), (method, path)


def test_the_ways_to_authenticate_are_those_the_server_reads(document):
    schemes = document["components"]["securitySchemes"]

    assert schemes.keys() == {"key", "session", "csrf"}
    assert (schemes["session"]["in"], schemes["session"]["name"]) == ("cookie", "footnote_session")
    assert (schemes["csrf"]["in"], schemes["csrf"]["name"]) == ("header", "X-Footnote-CSRF")


def test_every_answer_documents_its_name_and_every_refusal_when_to_come_back(document):
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            assert response["headers"]["X-Request-Id"]["required"], (method, path, status)
            if status in {"429", "503"} and path != "/readyz":
                assert "Retry-After" in response["headers"], (method, path, status)


def test_every_stream_describes_its_events(document):
    described = {
        (method, path): response["content"]["text/event-stream"]["itemSchema"]["properties"]
        for method, path, operation in operations(document)
        for response in operation["responses"].values()
        if "text/event-stream" in response.get("content", {})
    }

    assert set(described) == {
        ("POST", "/v1/ask"), ("POST", "/v1/chat/completions"), ("POST", "/v1/messages"), ("POST", "/v1/responses"),
        ("GET", "/v1/documents/{document_id}/events"),
    }  # fmt: skip
    assert {"done", "error"} <= set(described["POST", "/v1/ask"]["event"]["enum"])


def test_operations_have_names_of_their_own(document):
    names = [operation["operationId"] for _, _, operation in operations(document)]

    assert len(set(names)) == len(names)


def test_no_address_asks_for_null(document):
    for method, path, operation in operations(document):
        for parameter in operation.get("parameters", []):
            assert {"type": "null"} not in parameter["schema"].get("anyOf", []), (method, path, parameter["name"])


def test_every_example_fits_its_field(document):
    wrong = []
    for name, schema in schemas(document):
        for field, details in schema.get("properties", {}).items():
            validator = Draft202012Validator({**details, "components": document["components"]})
            wrong += [f"{name}.{field}: {one!r}" for one in details.get("examples", []) if not validator.is_valid(one)]

    assert wrong == []


def test_whole_bounds_are_written_exactly(document):
    seed = document["components"]["schemas"]["AskRequest"]["properties"]["seed"]["anyOf"][0]

    assert json.dumps([seed["minimum"], seed["exclusiveMaximum"]]) == f"[{-(2**63)}, {2**63}]"


def test_every_reference_leads_somewhere(document):
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(target := node.get("$ref"), str):
                yield target
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    known = {f"#/components/schemas/{name}" for name, _ in schemas(document)}

    assert set(references(document)) - known == set()


def test_every_operation_and_parameter_is_described(document):
    bare = []
    for method, path, operation in operations(document):
        if not operation.get("summary") or not operation.get("description"):
            bare.append(f"{method} {path}")
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "query" and "description" not in parameter:
                bare.append(f"{method} {path} {parameter['name']}")

    assert bare == []


def test_the_documentation_page_needs_nothing_from_elsewhere(client):
    page = client.get("/docs").text

    assert "http://" not in page.replace("http://testserver", "")
    assert "https://" not in page
    assert client.get("/docs/static/swagger-ui-bundle.js").status_code == 200


def test_health_needs_no_key(client):
    assert client.get("/healthz", headers={"Authorization": ""}).json()["status"] == "ok"
    assert client.get("/readyz", headers={"Authorization": ""}).status_code == 503  # no models here
    assert "footnote_http_requests_total" in client.get("/metrics", headers={"Authorization": ""}).text


def test_every_reference_leads_to_a_schema(document):
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))

    assert named <= set(document["components"]["schemas"])
    assert {"SourcesEventBody", "DoneBody"} <= set(named)  # of an event, whose body FastAPI does not see
