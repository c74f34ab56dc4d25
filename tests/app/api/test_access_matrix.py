"""Every public route, for every role and for another tenant. A route that is not in the matrix fails the build."""

import pytest
from fastapi.testclient import TestClient

from app.access.policy import is_public
from app.state import State
from app.types import Role, Settlement, UsageStatus
from tests.app.usage.samples import reservation

# (method, path template): the least role that may call it.
MATRIX = {
    ("POST", "/v1/documents"): Role.MEMBER,
    ("GET", "/v1/documents"): Role.READER,
    ("POST", "/v1/documents/delete"): Role.MEMBER,
    ("GET", "/v1/documents/{document_id}"): Role.READER,
    ("PUT", "/v1/documents/{document_id}"): Role.MEMBER,
    ("PATCH", "/v1/documents/{document_id}"): Role.MEMBER,
    ("DELETE", "/v1/documents/{document_id}"): Role.MEMBER,
    ("POST", "/v1/documents/{document_id}/retry"): Role.MEMBER,
    ("GET", "/v1/documents/{document_id}/versions"): Role.READER,
    ("GET", "/v1/documents/{document_id}/events"): Role.READER,
    ("GET", "/v1/documents/{document_id}/content"): Role.READER,
    ("GET", "/v1/documents/{document_id}/pages/{number}"): Role.READER,
    ("GET", "/v1/documents/{document_id}/chunks"): Role.READER,
    ("GET", "/v1/documents/{document_id}/file"): Role.READER,
    ("GET", "/v1/jobs"): Role.READER,
    ("GET", "/v1/jobs/{job_id}"): Role.READER,
    ("POST", "/v1/jobs/{job_id}/cancel"): Role.MEMBER,
    ("POST", "/v1/collections"): Role.MEMBER,
    ("GET", "/v1/collections"): Role.READER,
    ("GET", "/v1/collections/{collection_id}"): Role.READER,
    ("PATCH", "/v1/collections/{collection_id}"): Role.MEMBER,
    ("DELETE", "/v1/collections/{collection_id}"): Role.MEMBER,
    ("POST", "/v1/collections/{collection_id}/reindex"): Role.MEMBER,
    ("POST", "/v1/conversations"): Role.READER,
    ("GET", "/v1/conversations"): Role.READER,
    ("GET", "/v1/conversations/{conversation_id}"): Role.READER,
    ("DELETE", "/v1/conversations/{conversation_id}"): Role.READER,
    ("POST", "/v1/search"): Role.READER,
    ("POST", "/v1/ask"): Role.READER,
    ("POST", "/v1/requests/{id}/cancel"): Role.READER,
    ("POST", "/v1/chat/completions"): Role.READER,
    ("GET", "/v1/models"): Role.READER,
    ("GET", "/v1/models/{model}"): Role.READER,
    ("POST", "/v1/tokens/count"): Role.READER,
    ("GET", "/v1/usage"): Role.READER,
    ("GET", "/v1/admin/usage/completions"): Role.ADMIN,
    ("GET", "/v1/admin/usage/events"): Role.ADMIN,
    ("GET", "/v1/admin/usage/events/{event_id}"): Role.ADMIN,
    ("GET", "/v1/admin/audit"): Role.ADMIN,
    ("GET", "/v1/admin/usage/embeddings"): Role.ADMIN,
    ("GET", "/v1/admin/usage/rerank"): Role.ADMIN,
    ("GET", "/v1/admin/usage/documents"): Role.ADMIN,
    ("GET", "/v1/admin/costs"): Role.ADMIN,
    ("POST", "/v1/admin/usage/rebuild"): Role.ADMIN,
    ("POST", "/v1/admin/prices"): Role.ADMIN,
    ("GET", "/v1/admin/prices"): Role.ADMIN,
    ("POST", "/v1/admin/prices/rerate"): Role.ADMIN,
    ("POST", "/v1/admin/keys"): Role.ADMIN,
    ("GET", "/v1/admin/keys"): Role.ADMIN,
    ("GET", "/v1/admin/keys/{key_id}"): Role.ADMIN,
    ("PATCH", "/v1/admin/keys/{key_id}"): Role.ADMIN,
    ("DELETE", "/v1/admin/keys/{key_id}"): Role.ADMIN,
    ("POST", "/v1/admin/reconcile"): Role.ADMIN,
    ("POST", "/v1/admin/budgets"): Role.ADMIN,
    ("GET", "/v1/admin/budgets"): Role.ADMIN,
    ("GET", "/v1/admin/budgets/{budget_id}"): Role.ADMIN,
    ("PATCH", "/v1/admin/budgets/{budget_id}"): Role.ADMIN,
    ("DELETE", "/v1/admin/budgets/{budget_id}"): Role.ADMIN,
    ("GET", "/v1/admin/budgets/{budget_id}/windows"): Role.ADMIN,
    ("POST", "/v1/admin/budgets/{budget_id}/reset"): Role.ADMIN,
    ("GET", "/v1/admin/alerts"): Role.ADMIN,
    ("GET", "/v1/admin/usage/reconciliation"): Role.ADMIN,
    ("GET", "/v1/admin/generations"): Role.ADMIN,
    ("POST", "/v1/admin/generations/{generation_id}/confirm"): Role.ADMIN,
    ("POST", "/v1/admin/generations/{generation_id}/rollback"): Role.ADMIN,
}
PUBLIC = {"/healthz", "/readyz", "/metrics"}
BODIES = {
    "/v1/collections": {"name": "made"},
    "/v1/collections/{collection_id}": {"name": "renamed"},
    "/v1/documents": {"text": "Some text.", "filename": "a.txt"},
    "/v1/documents/{document_id}": {"metadata": {}},
    "/v1/documents/delete": {"filter": {"year": 1}},
    "/v1/search": {"query": "x"},
    "/v1/ask": {"question": "x"},
    "/v1/chat/completions": {"model": "footnote", "messages": [{"role": "user", "content": "x"}]},
    "/v1/tokens/count": {"text": "x"},
    "/v1/admin/keys": {"name": "new"},
    "/v1/admin/prices": {"model": "m1", "meter": "input", "price_per_million": "0.15"},
    "/v1/admin/prices/rerate": {"start_time": 0, "end_time": 1, "reason": "x"},
    "/v1/admin/reconcile": {"repair": False},
    "/v1/admin/usage/rebuild": {"start_time": 0, "end_time": 86400},
    "/v1/admin/budgets": {"limit": 1000, "period": "day"},
    "/v1/admin/budgets/{budget_id}": {"limit": 2000},
    "/v1/admin/keys/{key_id}": {"name": "renamed"},
}
REPORTS = {"/v1/admin/costs", *(f"/v1/admin/usage/{of}" for of in ("completions", "embeddings", "rerank", "documents"))}
IDS = {"document_id", "collection_id", "conversation_id", "job_id", "key_id", "budget_id", "event_id"}


def key_of(
    state: State, role: Role, *, tenant: str = "default", collections: tuple[str, ...] | None = None
) -> dict[str, str]:
    _, secret = state.keys.create(
        tenant_id=tenant, user_id=f"{tenant}-{role}", name=role, role=role, collections=collections, expires_at=None
    )
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture
def owned(client: TestClient, state: State) -> dict[str, str]:
    """Ids of one tenant's things."""
    collection = client.post("/v1/collections", json={"name": "private"}).json()
    document = client.post(
        "/v1/documents", json={"text": "Secret.", "filename": "s.txt", "collection_id": collection["id"]}
    ).json()
    key = client.post("/v1/admin/keys", json={"name": "victim"}).json()
    conversation = client.post("/v1/conversations", json={"title": "Secret."}).json()
    budget = client.post("/v1/admin/budgets", json={"limit": 10**9, "period": "day"}).json()
    state.ledger.reserve(reservation("req_owned:1", tenant_id="default"))
    state.ledger.settle("req_owned:1", Settlement(status=UsageStatus.COMPLETED))
    return {
        "collection_id": collection["id"],
        "document_id": document["id"],
        "conversation_id": conversation["id"],
        "job_id": document["job_id"],
        "key_id": key["id"],
        "budget_id": budget["id"],
        "event_id": "req_owned:1",
        "id": "req_1",
        "generation_id": "1",
        "number": "1",
        "model": "footnote",
    }


def call(client: TestClient, method: str, template: str, ids: dict[str, str], headers: dict[str, str]):
    path = template
    for name, value in ids.items():
        path = path.replace("{" + name + "}", value)
    body = BODIES.get(template) if method in {"POST", "PUT", "PATCH"} else None
    if (method, template) == ("PUT", "/v1/documents/{document_id}"):
        body = {"text": "New text.", "filename": "s.txt"}
    params = {"start_time": "0", "end_time": "86400"} if template in REPORTS else None
    return client.request(method, path, json=body, headers=headers, params=params)


def test_the_matrix_names_every_route_and_no_other(client):
    paths = client.get("/openapi.json").json()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}

    assert {path for _, path in routes if is_public(path)} == PUBLIC
    assert {route for route in routes if not is_public(route[1])} == set(MATRIX)


@pytest.mark.parametrize(("method", "template"), MATRIX)
def test_without_a_key_every_route_is_401(client, owned, method, template):
    assert call(client, method, template, owned, {"Authorization": ""}).status_code == 401


@pytest.mark.parametrize(("method", "template"), MATRIX)
def test_a_role_below_the_least_is_403_and_the_least_is_not(client, state, owned, method, template):
    ranks = [Role.READER, Role.MEMBER, Role.ADMIN]
    least = ranks.index(MATRIX[method, template])
    for role in ranks[:least]:
        response = call(client, method, template, owned, key_of(state, role))
        assert response.status_code == 403, role
    if not template.endswith("/events"):  # a stream that waits for a worker this application has not
        assert call(client, method, template, owned, key_of(state, ranks[least])).status_code not in {401, 403}


@pytest.mark.parametrize(
    ("method", "template"), [route for route in MATRIX if any("{" + name + "}" in route[1] for name in IDS)]
)
def test_another_tenants_things_do_not_exist(client, state, owned, method, template):
    response = call(client, method, template, owned, key_of(state, Role.ADMIN, tenant="rival"))

    assert response.status_code == 404
    assert "Secret" not in response.text


@pytest.mark.parametrize(
    ("method", "template"),
    [
        route
        for route in MATRIX
        if "{document_id}" in route[1] or "{collection_id}" in route[1] or "{job_id}" in route[1]
    ],
)
def test_a_key_limited_to_another_collection_does_not_reach_them(client, state, owned, method, template):
    other = client.post("/v1/collections", json={"name": "other"}).json()["id"]

    assert call(client, method, template, owned, key_of(state, Role.MEMBER, collections=(other,))).status_code == 404


def test_lists_show_only_the_callers_tenant(client, state, owned):
    rival = key_of(state, Role.ADMIN, tenant="rival")

    assert client.get("/v1/documents", headers=rival).json()["data"] == []
    assert owned["collection_id"] not in client.get("/v1/collections", headers=rival).text
    assert owned["key_id"] not in client.get("/v1/admin/keys", headers=rival).text


def test_a_revoked_key_is_refused_at_once_and_its_secret_is_nowhere(client, state):
    made = client.post("/v1/admin/keys", json={"name": "short-lived"}).json()
    headers = {"Authorization": f"Bearer {made['secret']}"}
    assert client.get("/v1/usage", headers=headers).status_code == 200

    client.delete(f"/v1/admin/keys/{made['id']}")

    assert client.get("/v1/usage", headers=headers).status_code == 401
    assert made["secret"] not in client.get("/v1/admin/keys").text
    stored = b"".join(path.read_bytes() for path in state.settings.data_dir.glob("footnote.db*"))
    assert made["prefix"].encode() in stored
    assert made["secret"].encode() not in stored
