"""Acceptance cases of access: refusals before any work, other tenants' ids everywhere, revocation on every path."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.access.key_cache import FRESH_SECONDS
from app.db.keys import KeyRepository
from app.ids import new_id
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Role, Settlement, UsageStatus
from tests.app.api.conftest import client_of
from tests.app.usage.samples import reservation

ADMIN_KEY = "fn_test_admin_key_of_the_suite"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    data_dir = tmp_path_factory.mktemp("access") / "data"
    with build(Settings(data_dir=data_dir, admin_key=ADMIN_KEY, _env_file=None), with_models=False) as state:
        yield state


@pytest.fixture(scope="module")
def client(state: State) -> Iterator[TestClient]:
    with client_of(state) as client:
        yield client


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def key_of(state: State, tenant: str, role: Role = Role.ADMIN, **limits: Any) -> dict[str, str]:
    return bearer(
        state.access.keys.create(tenant_id=tenant, user_id=f"{tenant}-user", name="k", role=role, **limits)[1]
    )


@pytest.mark.parametrize("headers", [{"Authorization": ""}, bearer("fn_unknown"), {"Authorization": "Basic eDp5"}])
@pytest.mark.parametrize("body", ["endless", "malformed"])
def test_e1_a_bad_key_is_refused_before_a_byte_of_the_body_is_read(client, headers, body):
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while read < 50 << 20:
            read += 1 << 16
            yield b"x" * (1 << 16)

    if body == "malformed":
        response = client.post("/v1/ask", content=b"{{{", headers=headers)
    else:
        response = client.post("/v1/documents", content=endless(), headers={**headers, "Content-Length": str(50 << 20)})

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert response.headers["Content-Type"] == "application/problem+json"


def test_e1_a_role_is_refused_before_the_body_is_parsed(client, state):
    response = client.post("/v1/admin/keys", content=b"{{{", headers=key_of(state, "default", Role.READER))

    assert response.status_code == 403


class Foreign:
    """One tenant's things, and another's administrator."""

    def __init__(self, client: TestClient, state: State) -> None:
        self.client = client
        self.rival = key_of(state, "rival")
        self.collection = client.post("/v1/collections", json={"name": new_id("private")}).json()["id"]
        upload = {"text": f"Secret {self.collection}.", "filename": "s.txt", "collection_id": self.collection}
        self.document = client.post("/v1/documents", json=upload).json()["id"]
        self.conversation = client.post("/v1/conversations", json={"title": "Secret."}).json()["id"]
        self.key = client.post("/v1/admin/keys", json={"name": "Secret."}).json()["id"]

    def call(self, method: str, path: str, **options: Any) -> Any:
        return self.client.request(method, path, headers=self.rival, **options)


@pytest.fixture
def foreign(client, state) -> Foreign:
    return Foreign(client, state)


IN_BODIES: dict[str, Callable[[Foreign], tuple[str, dict[str, Any]]]] = {
    "upload": lambda it: ("/v1/documents", {"text": "x", "filename": "x.txt", "collection_id": it.collection}),
    "key": lambda it: ("/v1/admin/keys", {"name": "k", "collections": [it.collection]}),
    "budget of a key": lambda it: (
        "/v1/admin/budgets",
        {"limit": 1, "period": "day", "scope_type": "key", "scope_id": it.key},
    ),
    "budget of a collection": lambda it: (
        "/v1/admin/budgets",
        {"limit": 1, "period": "day", "scope_type": "collection", "scope_id": it.collection},
    ),
}


@pytest.mark.parametrize("where", IN_BODIES)
def test_e2_another_tenants_id_in_a_body_does_not_exist(foreign, where):
    path, body = IN_BODIES[where](foreign)

    response = foreign.call("POST", path, json=body)

    assert response.status_code == 404
    assert "Secret" not in response.text


def test_e2_another_tenants_ids_in_filters_find_nothing(foreign):
    listed = foreign.call("GET", "/v1/documents", params={"filter": json.dumps({"tenant_id": "default"})})
    named = foreign.call("GET", "/v1/documents", params={"collection_id": foreign.collection})
    deleted = foreign.call("POST", "/v1/documents/delete", json={"filter": {"id": foreign.document}})

    assert listed.json()["data"] == []
    assert named.status_code == 404
    assert foreign.document not in deleted.text
    assert foreign.client.get(f"/v1/documents/{foreign.document}").status_code == 200


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/conversations", "/v1/admin/users", "/v1/admin/audit"])
def test_e2_another_tenants_cursor_shows_nothing_of_it(client, foreign, path):
    for _ in range(2):
        Foreign(client, client.app.state.footnote)
    client.post("/v1/admin/users", json={"name": "Secret."})
    cursor = client.get(path, params={"limit": 1}).json()["next_cursor"]
    assert cursor is not None

    response = foreign.call("GET", path, params={"cursor": cursor, "limit": 500})

    assert response.status_code in {200, 422}
    assert "Secret" not in response.text
    assert "default" not in response.text


@pytest.mark.parametrize("path", ["/v1/admin/keys", "/v1/collections", "/v1/admin/budgets"])
def test_e2_a_cursor_that_is_another_tenants_id_is_none_of_this_list(foreign, path):
    cursor = foreign.key if path.endswith("keys") else foreign.collection

    assert foreign.call("GET", path, params={"cursor": cursor}).status_code == 422


def test_e2_another_tenants_idempotency_key_is_another_request(client, state):
    answers = []
    for tenant in ("left", "right"):
        headers = {**key_of(state, tenant), "Idempotency-Key": "once"}
        answers.append(client.post("/v1/collections", json={"name": "same"}, headers=headers))

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] != answers[1].json()["id"]
    assert "Idempotent-Replayed" not in answers[1].headers


PATHS = ["/v1/documents", "/v1/usage", "/v1/conversations", "/v1/collections", "/v1/session"]


def test_e10_a_keys_life_from_its_making_to_its_end(client, state):
    made = client.post("/v1/admin/keys", json={"name": "ci", "role": "member", "user_id": "ada"}).json()
    secret = made.pop("secret")
    signed_in = client.post("/v1/session", headers={"Authorization": f"Bearer {secret}"}).cookies["footnote_session"]
    client.cookies.clear()
    cookie = {"Cookie": f"footnote_session={signed_in}", "Authorization": ""}

    def allowed(headers: dict[str, str]) -> set[bool]:
        statuses = set()
        for path in PATHS:
            request = client.build_request("GET", path, headers=headers)
            if not headers["Authorization"]:
                del request.headers["Authorization"]
            statuses.add(client.send(request).status_code == 200)
        return statuses

    assert secret not in client.get("/v1/admin/keys").text
    assert made["prefix"] == secret[: len(made["prefix"])]
    assert allowed(bearer(secret)) == {True}
    assert allowed(cookie) == {True}
    state.usage.ledger.reserve(reservation("req_e10:1", tenant_id="default", user_id="ada", key_id=made["id"]))
    state.usage.ledger.settle("req_e10:1", Settlement(status=UsageStatus.COMPLETED))

    rotated = client.post(f"/v1/admin/keys/{made['id']}/rotate", json={"overlap_s": 60}).json()
    assert (rotated["id"], rotated["rotated_from"]) == (made["id"], made["prefix"])
    assert allowed(bearer(secret)) == allowed(bearer(rotated["secret"])) == {True}
    again = client.post(f"/v1/admin/keys/{made['id']}/rotate", json={"overlap_s": 0}).json()
    assert allowed(bearer(secret)) == allowed(bearer(rotated["secret"])) == allowed(cookie) == {False}

    assert allowed(bearer(again["secret"])) == {True}
    client.delete(f"/v1/admin/keys/{made['id']}")
    assert allowed(bearer(again["secret"])) == {False}
    assert client.get("/v1/admin/usage/events/req_e10:1").json()["user_id"] == "ada"


def test_e10_a_change_by_another_process_counts_within_a_second(client, state):
    key, secret = state.access.keys.create(user_id="u", name="k", role=Role.READER)
    assert client.get("/v1/usage", headers=bearer(secret)).status_code == 200
    elsewhere = KeyRepository(state.database)  # tells this process nothing

    elsewhere.revoke(key.id, tenant_id="default")

    time.sleep(FRESH_SECONDS)
    assert client.get("/v1/usage", headers=bearer(secret)).status_code == 401
    assert FRESH_SECONDS < 1


def test_a_tenant_begins_with_a_key_of_its_own_and_ends_with_all_of_them(client, state):
    made = client.post("/v1/admin/tenants", json={"id": "acme", "name": "Acme"}).json()
    key = client.post("/v1/admin/tenants/acme/keys", json={}).json()
    acme = bearer(key["secret"])
    client.get("/v1/documents", headers=acme)

    assert (made["id"], key["role"], key["user_id"]) == ("acme", "admin", "admin")
    assert client.get("/v1/session", headers=acme).json()["operator"] is False
    assert client.patch("/v1/admin/tenants/acme", json={"disabled": True}).json()["disabled_at"] is not None
    assert client.get("/v1/documents", headers=acme).status_code == 401
    assert client.patch("/v1/admin/tenants/default", json={"disabled": True}).status_code == 409
    assert client.delete("/v1/admin/tenants/acme").status_code == 405


def test_a_key_is_made_with_its_budget_or_not_at_all(client):
    budget = {"limit": 500, "period": "month", "thresholds": [80]}
    made = client.post("/v1/admin/keys", json={"name": "capped", "budget": budget}).json()

    assert (made["budget"]["scope_type"], made["budget"]["scope_id"]) == ("key", made["id"])
    assert client.get(f"/v1/admin/budgets/{made['budget']['id']}").json()["limit"] == 500
    before = client.get("/v1/admin/keys", params={"limit": 500}).json()["data"]
    refused = client.post("/v1/admin/keys", json={"name": "capped", "budget": {**budget, "limit": "1.5"}})
    assert refused.status_code == 422
    assert client.get("/v1/admin/keys", params={"limit": 500}).json()["data"] == before


def test_a_limited_administrator_gives_away_no_more_than_it_has(client, state):
    mine = client.post("/v1/collections", json={"name": "limited"}).json()["id"]
    limited = key_of(state, "default", collections=(mine,))
    free = client.post("/v1/admin/keys", json={"name": "free", "role": "admin"}).json()

    assert client.post("/v1/admin/keys", json={"name": "k"}, headers=limited).status_code == 422
    made = client.post("/v1/admin/keys", json={"name": "k", "collections": [mine]}, headers=limited)
    assert made.status_code == 201
    lifted = client.patch(f"/v1/admin/keys/{made.json()['id']}", json={"collections": None}, headers=limited)
    assert lifted.status_code == 422
    for method, path in (("POST", "/rotate"), ("PATCH", ""), ("DELETE", "")):
        body: dict[str, object] | None = None if method == "DELETE" else {}
        reply = client.request(method, f"/v1/admin/keys/{free['id']}{path}", json=body, headers=limited)
        assert reply.status_code == 404
    assert client.post("/v1/admin/users", json={"id": "x"}, headers=limited).status_code == 403


@pytest.mark.parametrize(
    "expiry",
    [
        {"expires_in": 60, "expires_at": "2999-01-01T00:00:00Z"},
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"expires_at": "2999-01-01T00:00:00"},
        {"expires_in": 1e300},
        {"expires_in": 0},
    ],
)
def test_an_expiry_that_cannot_be_is_refused(client, expiry):
    assert client.post("/v1/admin/keys", json={"name": "k", **expiry}).status_code == 422


def test_an_expiry_is_set_and_lifted(client):
    made = client.post("/v1/admin/keys", json={"name": "k", "expires_at": "2999-01-01T00:00:00+01:00"}).json()
    path = f"/v1/admin/keys/{made['id']}"

    assert made["expires_at"] == "2998-12-31T23:00:00.000Z"
    assert client.patch(path, json={"name": "other"}).json()["expires_at"] == made["expires_at"]
    assert client.patch(path, json={"expires_in": None}).json()["expires_at"] is None


def test_an_administrator_cannot_disable_or_delete_their_own_user(client):
    assert client.patch("/v1/admin/users/admin", json={"disabled": True}).status_code == 409
    assert client.delete("/v1/admin/users/admin").status_code == 409


def test_a_removed_user_is_out_and_its_usage_stays(client, state):
    key = client.post("/v1/admin/keys", json={"name": "k", "user_id": "gone"}).json()
    state.usage.ledger.reserve(reservation("req_gone:1", tenant_id="default", user_id="gone", key_id=key["id"]))
    state.usage.ledger.settle("req_gone:1", Settlement(status=UsageStatus.COMPLETED))

    assert client.delete("/v1/admin/users/gone").json()["disabled_at"] is not None
    assert client.get("/v1/documents", headers=bearer(key["secret"])).status_code == 401
    assert client.get("/v1/admin/usage/events/req_gone:1").json()["user_id"] == "gone"


def test_e10_a_documents_events_end_with_the_key(client, state):
    upload = client.post("/v1/documents", json={"text": "Waits for a worker.", "filename": "w.txt"}).json()
    key, secret = state.access.keys.create(user_id="u", name="k", role=Role.READER)
    with client.stream("GET", f"/v1/documents/{upload['id']}/events", headers=bearer(secret)) as stream:
        assert stream.status_code == 200
        state.access.keys.revoke(key.id, tenant_id="default")
        events = [line for line in stream.iter_lines() if line.startswith("event:")]

    assert events[-1] == "event: error"
