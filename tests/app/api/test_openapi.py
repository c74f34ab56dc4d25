"""The OpenAPI document is complete: it is what /docs shows."""

from collections.abc import Iterator
from typing import Any


def schemas(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from document["components"]["schemas"].items()


def test_every_field_of_every_body_is_described(client):
    document = client.get("/openapi.json").json()
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
        if not schema.get("description") and not name.startswith(("Page_", "Bucket_", "ReportPage_"))
    ] == []


def test_every_failure_is_documented_as_a_problem(client):
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
            for status, response in operation["responses"].items():
                if int(status) >= 400 and path != "/readyz":
                    assert list(response["content"]) == ["application/problem+json"], (method, path, status)


def test_every_operation_and_parameter_is_described(client):
    bare = []
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
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
