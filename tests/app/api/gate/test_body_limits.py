"""Every route has a largest body that fits what it reads, and a body above it is refused before it is held."""

import pytest
from fastapi.routing import iter_route_contexts

from app.access.routes import ROUTES, BodyKind, RouteReach, rule_for
from app.api.application import create_app
from app.api.gate.body_limits import JSON_BYTES, KIB, MIB, PUBLIC_BYTES, body_limit, readable_size
from tests.described import openapi_document

FILE_BYTES = 100 * MIB
MULTIPART = {"Content-Type": "multipart/form-data; boundary=x"}


def scope_of(method: str, path: str, content_type: str) -> dict[str, object]:
    return {
        "type": "http",
        "method": method,
        "state": {"route_path": path.replace("{", "").replace("}", "").replace(":path", "")},
        "headers": [(b"content-type", content_type.encode())],
    }


def operations() -> list[tuple[str, str, set[str]]]:
    """Method, path and media types of the body of every route in the OpenAPI document."""
    document = openapi_document()
    return [
        (method.upper(), path, set(operation.get("requestBody", {}).get("content", {})))
        for path, described in document["paths"].items()
        for method, operation in described.items()
    ]


OPERATIONS = operations()


@pytest.mark.parametrize(("method", "path", "media_types"), OPERATIONS)
def test_only_routes_that_take_a_file_have_the_limit_of_files(method, path, media_types):
    limit = body_limit(scope_of(method, path, "multipart/form-data; boundary=x"), file_bytes=FILE_BYTES)

    assert (limit > FILE_BYTES) == ("multipart/form-data" in media_types)
    sent = rule_for(method, path).body is BodyKind.SENT
    assert limit > FILE_BYTES or limit <= (8 if sent else 2) * MIB


@pytest.mark.parametrize("content_type", ["application/json", "multipart/form-data; boundary=x", "text/plain", ""])
def test_every_route_without_a_key_takes_at_most_16_kib(content_type):
    application = create_app(lambda: pytest.fail("nothing is served"), version="0")
    contexts = [route for route in iter_route_contexts(application.routes) if route.methods]
    routes = [(method, str(route.path)) for route in contexts for method in route.methods or ()]
    listed = [
        ("GET" if rule.methods == "*" else rule.methods.split()[0], rule.path)
        for rule in ROUTES
        if rule.reach is RouteReach.PUBLIC
    ]
    public = [(method, path) for method, path in routes if rule_for(method, path).reach is RouteReach.PUBLIC]

    assert ("POST", "/v1/session") in public
    for method, path in (*public, *listed):
        assert body_limit(scope_of(method, path, content_type), file_bytes=FILE_BYTES) <= 16 * KIB, (method, path)


@pytest.mark.parametrize("content_type", [{"Content-Type": "application/json"}, MULTIPART])
@pytest.mark.parametrize("declared", [True, False])
def test_a_route_that_reads_json_refuses_more_than_1_mib_whatever_the_body_calls_itself(client, content_type, declared):
    body = b" " * (JSON_BYTES[BodyKind.JSON] + 1)

    refused = client.post("/v1/conversations", headers=content_type, content=body if declared else iter([body]))

    assert refused.status_code == 413
    assert refused.json()["type"] == "urn:footnote:problem:too-large"


def test_a_file_may_be_larger_than_any_json(client):
    files = {"file": ("a.txt", b"Revenue rose. " * (JSON_BYTES[BodyKind.FILE] // 14 + 1), "text/plain")}

    assert client.post("/v1/documents", files=files).status_code == 202


def test_a_refusal_names_the_limit_in_units_that_people_read(client):
    refused = client.post("/v1/session", content=b"x" * (PUBLIC_BYTES + 1))

    assert refused.status_code == 413
    assert refused.json()["detail"] == "The request body is larger than the limit of 16 KiB."
    assert readable_size(101 * MIB) == "101 MiB"


def test_a_file_that_is_too_large_is_told_the_limit_of_files_in_megabytes(client, state):
    limit = state.settings.max_upload_mb << 20
    declared = {**MULTIPART, "Content-Length": str(limit + (2 << 20))}
    refused = client.post("/v1/documents", headers=declared, content=b"x")

    assert refused.status_code == 413
    assert refused.json()["detail"] == "The file is larger than 104.8 MB, the most that this server takes."


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * (PUBLIC_BYTES + 1), 413),
        (b'{"key": 1}', 422),
        (b'{"key": "fn_guess", "more": 1}', 422),
        (b"not JSON", 422),
        (b'{"key": "fn_guess"}', 401),
    ],
)
def test_a_sign_in_that_cannot_be_read_counts_as_a_failed_one(state, client, body, status):
    del client.headers["Authorization"]
    headers = {"Content-Type": "application/json"}
    limit = state.settings.failed_logins_per_minute

    statuses = {client.post("/v1/session", content=body, headers=headers).status_code for _ in range(limit)}
    refused = client.post("/v1/session", content=body, headers=headers)

    assert statuses == {status}
    assert refused.status_code == 429
    assert refused.json()["limit_name"] == "failed-logins"
