"""Every route, for every role and another tenant, with a key and a session. One not in the matrix fails the build."""

import json
import re
from collections.abc import Callable, Iterator, Mapping

import pytest
from fastapi.testclient import TestClient

from app.access.routes import RouteReach, is_public, rule_for
from app.ids import new_id
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Principal, Role, Settlement, Turn, UsageStatus
from tests.app.api.access_table import MATRIX, OPERATOR, PUBLIC, UNDESCRIBED
from tests.app.api.conftest import ADMIN_KEY, client_of
from tests.app.api.credentials import key_of, session_of
from tests.app.usage.samples import reservation

BODIES = {
    "/v1/collections": {"name": "made"},
    "/v1/collections/{collection_id}": {"name": "renamed"},
    "/v1/documents": {"text": "Some text.", "filename": "a.txt"},
    "/v1/documents/{document_id}": {"metadata": {}},
    "/v1/documents/delete": {"filter": {"year": 1}},
    "/v1/conversations/{conversation_id}": {"shared": True},
    "/v1/watches": {"question": "x"},
    "/v1/watches/{watch_id}": {"paused": True},
    "/v1/tables": {"questions": ["x"]},
    "/v1/search": {"query": "x"},
    "/v1/ask": {"question": "x"},
    "/v1/requests/{id}/feedback": {"score": 1},
    "/v1/chat/completions": {"model": "footnote", "messages": [{"role": "user", "content": "x"}]},
    "/v1/messages": {"model": "footnote", "max_tokens": 8, "messages": [{"role": "user", "content": "x"}]},
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "/v1/responses": {"model": "footnote", "input": "x"},
    "/v1/embeddings": {"model": "footnote", "input": "x"},
    "/v1/vector_stores": {"name": "made"},
    "/v1/vector_stores/{vector_store_id}": {"name": "renamed"},
    "/v1/vector_stores/{vector_store_id}/search": {"query": "x"},
    "/v1/vector_stores/{vector_store_id}/files": {"file_id": "doc_x"},
    "/v1/vector_stores/{vector_store_id}/files/{file_id}": {"attributes": {}},
    "/v1/vector_stores/{vector_store_id}/file_batches": {"file_ids": ["doc_x"]},
    "/v1/tokens/count": {"text": "x"},
    "/v1/admin/keys": {"name": "new"},
    "/v1/admin/keys/{key_id}/rotate": {"overlap_s": 0},
    "/v1/admin/users": {"id": "new"},
    "/v1/admin/users/{user_id}": {"name": "renamed"},
    "/v1/admin/users/{user_id}/sign-in-link": {"role": "reader"},
    "/v1/admin/invitations": {"name": "Secret."},
    "/v1/admin/models": {"model": "no model"},
    "/v1/admin/models/test-server": {"url": "http://127.0.0.1/v1"},
    "/v1/admin/tenants": {"id": "made", "name": "Made"},
    "/v1/admin/tenants/{tenant_id}": {"name": "Renamed"},
    "/v1/admin/tenants/{tenant_id}/keys": {},
    "/v1/admin/prices": {"model": "m1", "meter": "input", "price_per_million": "0.15"},
    "/v1/admin/prices/rerate": {"start_time": 0, "end_time": 1, "reason": "x"},
    "/v1/admin/reconcile": {"repair": False},
    "/v1/admin/usage/rebuild": {"start_time": 0, "end_time": 86400},
    "/v1/admin/budgets": {"limit": 10**9, "period": "day"},
    "/v1/admin/budgets/{budget_id}": {"limit": 2 * 10**9},
    "/v1/admin/limits/keys/{key_id}": {"requests_per_minute": 1000},
    "/v1/admin/limits/tenants/{tenant_id}": {"requests_per_minute": 1000},
    "/v1/admin/keys/{key_id}": {"name": "renamed"},
}
REPORTS = {
    "/v1/admin/costs",
    "/v1/admin/overview",
    *(f"/v1/admin/overview/{of}" for of in ("unanswered", "expensive", "people")),
    *(f"/v1/admin/usage/{of}" for of in ("completions", "embeddings", "rerank", "documents")),
}
PARAMS = {f"/v1/documents/{{document_id}}/{of}": {"start": "0", "end": "1", "q": "x"} for of in ("boxes", "find")} | {
    "/v1/documents/{document_id}/compare": {"version": "1"}
}
OPENAI_IDS = {"vector_store_id", "file_id", "batch_id", "response_id"}
IDS = {
    "document_id",
    "collection_id",
    "conversation_id",
    "watch_id",
    "table_id",
    "job_id",
    "key_id",
    "budget_id",
    "event_id",
    "user_id",
    "invitation_id",
    "vector_store_id",
    "file_id",
    "batch_id",
} | OPENAI_IDS
RANKS = [Role.READER, Role.MEMBER, Role.ADMIN]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    """One application for the whole matrix: every call has things of its own."""
    data_dir = tmp_path_factory.mktemp("matrix") / "data"
    with build(
        Settings(data_dir=data_dir, admin_key=ADMIN_KEY, watches_per_key=10_000, tables_per_key=10_000, _env_file=None),
        with_models=False,
    ) as state:
        yield state


@pytest.fixture(scope="module")
def client(state: State) -> Iterator[TestClient]:
    with client_of(state) as client:
        yield client


class Owned(Mapping[str, str]):
    """Ids of one tenant's things by their parameters, each made when it is asked for first."""

    def __init__(self, client: TestClient, state: State) -> None:
        self._client, self._state = client, state
        self._mark = new_id("own").replace("_", "-")
        self._ids = {"addition_id": "mod_1", "id": "req_1", "generation_id": "1", "number": "1", "model": "footnote"}
        self._makers: dict[str, Callable[[], dict[str, str]]] = {
            **dict.fromkeys(("collection_id", "vector_store_id"), self._collection),
            **dict.fromkeys(("document_id", "file_id", "job_id"), self._document),
            "batch_id": self._batch,
            "key_id": lambda: {"key_id": self._posted("/v1/admin/keys", name="victim")},
            "budget_id": lambda: {"budget_id": self._posted("/v1/admin/budgets", limit=10**9, period="day")},
            "invitation_id": lambda: {"invitation_id": self._posted("/v1/admin/invitations", name="Secret.")},
            "conversation_id": lambda: {"conversation_id": self._posted("/v1/conversations", title="Secret.")},
            "watch_id": lambda: {"watch_id": self._posted("/v1/watches", question="Secret?")},
            "table_id": self._table,
            "user_id": lambda: {"user_id": self._posted("/v1/admin/users", id=self._mark, name="Secret.")},
            "tenant_id": lambda: {"tenant_id": self._posted("/v1/admin/tenants", id=self._mark, name="Secret.")},
            "response_id": self._response,
            "event_id": self._event,
        }

    def __getitem__(self, name: str) -> str:
        if name not in self._ids:
            self._ids |= self._makers[name]()
        return self._ids[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._ids, **self._makers})  # in the same order each time, which a set has not

    def __len__(self) -> int:
        return len({**self._ids, **self._makers})

    def _posted(self, path: str, **body: object) -> str:
        made = self._client.post(path, json=body)
        assert made.is_success, made.text
        return str(made.json()["id"])

    def _collection(self) -> dict[str, str]:
        made = self._posted("/v1/collections", name=self._mark)
        return {"collection_id": made, "vector_store_id": made}

    def _document(self) -> dict[str, str]:
        told = {"text": f"Secret. {self._mark}", "filename": "s.txt", "collection_id": self["collection_id"]}
        made = self._client.post("/v1/documents", json=told).json()
        return {"document_id": made["id"], "file_id": made["id"], "job_id": made["job_id"]}

    def _batch(self) -> dict[str, str]:
        path = f"/v1/vector_stores/{self['collection_id']}/file_batches"
        return {"batch_id": self._posted(path, file_ids=[self["document_id"]])}

    def _table(self) -> dict[str, str]:
        documents = [self["document_id"]]
        return {"table_id": self._posted("/v1/tables", questions=["Secret?"], document_ids=documents)}

    def _response(self) -> dict[str, str]:
        asked = new_id("req")
        turn = Turn(request_id=asked, question="Secret?", standalone=None, answer="", answered=True, citations=())
        asker = f"{self._mark}-asks"  # another than `user_id` is: asking puts its user among the users
        owner = Principal("default", asker, asker, Role.MEMBER)
        told = json.dumps({"response": {"id": "Secret."}, "input": []})
        self._state.history.responses.begin(owner, turn, told)
        return {"response_id": asked}

    def _event(self) -> dict[str, str]:
        ledger, call_id = self._state.usage.ledger, f"{self._mark}:1"
        ledger.reserve(reservation(call_id, tenant_id="default"))
        ledger.settle(call_id, Settlement(status=UsageStatus.COMPLETED))
        return {"event_id": call_id}


@pytest.fixture(scope="module")
def everything(client: TestClient, state: State) -> None:
    """One of each thing, so that no list is empty."""
    assert all({**Owned(client, state)}.values())


@pytest.fixture
def owned(client: TestClient, state: State, everything: None) -> Owned:
    return Owned(client, state)


def call(client: TestClient, method: str, template: str, ids: Mapping[str, str], headers: dict[str, str]):
    path = template
    for name in re.findall(r"{(\w+)}", template):
        path = path.replace("{" + name + "}", ids.get(name, "{" + name + "}"))
    body = BODIES.get(template) if method in {"POST", "PUT", "PATCH"} else None
    if (method, template) == ("PUT", "/v1/documents/{document_id}"):
        body = {"text": "New text.", "filename": "s.txt"}
    params = {"start_time": "0", "end_time": "86400"} if template in REPORTS else PARAMS.get(template)
    request = client.build_request(method, path, json=body, headers=headers, params=params)
    if "Authorization" not in headers:
        del request.headers["Authorization"]
    return client.send(request)


def test_the_matrix_names_every_route_and_no_other(client):
    paths = client.get("/openapi.json").json()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}

    assert {(method, path) for method, path in routes if is_public(path, method)} == PUBLIC
    assert routes - PUBLIC == set(MATRIX) - UNDESCRIBED


@pytest.mark.parametrize(("method", "template"), MATRIX)
def test_e1_without_a_key_every_route_is_401(client, method, template):
    assert call(client, method, template, {}, {}).status_code == 401


@pytest.mark.parametrize(("method", "template"), MATRIX)
def test_a_role_below_the_least_is_403_and_the_least_is_not(client, state, owned, method, template):
    least = RANKS.index(MATRIX[method, template])
    for role in RANKS[:least]:
        response = call(client, method, template, owned, key_of(state, role))
        assert response.status_code == 403, role
    if not template.endswith("/events"):  # a stream that waits for a worker this application has not
        assert call(client, method, template, owned, key_of(state, RANKS[least])).status_code not in {401, 403}


@pytest.mark.parametrize(("method", "template"), MATRIX)
def test_a_session_has_the_access_of_its_role_and_needs_its_csrf_token(client, state, owned, method, template):
    least = RANKS.index(MATRIX[method, template])
    if least:
        assert call(client, method, template, owned, session_of(state, RANKS[least - 1])).status_code == 403
    if template.endswith("/events"):
        return
    signed_in = session_of(state, RANKS[least])
    if method not in {"GET", "HEAD"}:
        forged = call(client, method, template, owned, {"Cookie": signed_in["Cookie"]})
        assert (forged.status_code, forged.json()["type"]) == (403, "urn:footnote:problem:csrf")
    assert call(client, method, template, owned, signed_in).status_code not in {401, 403}


@pytest.mark.parametrize("with_session", [False, True])
@pytest.mark.parametrize(("method", "template"), OPERATOR)
def test_installation_wide_routes_are_403_for_other_tenants_and_limited_keys(
    client, state, owned, method, template, with_session
):
    sign_in = session_of if with_session else key_of
    rival = sign_in(state, Role.ADMIN, tenant="rival")
    limited = key_of(state, Role.ADMIN, collections=(owned["collection_id"],))

    for headers in (rival, limited):
        response = call(client, method, template, owned, headers)
        assert response.status_code == 403
        assert "Secret" not in response.text


def test_the_route_table_names_the_operators_routes_and_no_other():
    assert {route for route in MATRIX if rule_for(*route).reach is RouteReach.INSTALLATION} == OPERATOR


@pytest.mark.parametrize(
    ("method", "template"), [route for route in MATRIX if any("{" + name + "}" in route[1] for name in IDS)]
)
def test_e2_another_tenants_resources_are_404(client, state, owned, method, template):
    response = call(client, method, template, owned, key_of(state, Role.ADMIN, tenant="rival"))

    assert response.status_code == 404
    assert "Secret" not in response.text


@pytest.mark.parametrize(
    ("method", "template"),
    [
        route
        for route in MATRIX
        if any("{" + name + "}" in route[1] for name in ("document_id", "collection_id", "job_id", *OPENAI_IDS))
    ],
)
def test_a_key_limited_to_another_collection_does_not_reach_them(client, state, owned, method, template):
    other = client.post("/v1/collections", json={"name": f"other-{owned['document_id']}"}).json()["id"]

    assert call(client, method, template, owned, key_of(state, Role.MEMBER, collections=(other,))).status_code == 404


def test_lists_show_only_the_callers_tenant(client, state, owned):
    rival = key_of(state, Role.ADMIN, tenant="rival")

    assert client.get("/v1/documents", headers=rival).json()["data"] == []
    assert owned["collection_id"] not in client.get("/v1/collections", headers=rival).text
    assert owned["key_id"] not in client.get("/v1/admin/keys", headers=rival).text


def test_e10_a_revoked_key_is_refused_at_once_and_its_secret_is_nowhere(client, state):
    made = client.post("/v1/admin/keys", json={"name": "short-lived"}).json()
    headers = {"Authorization": f"Bearer {made['secret']}"}
    assert client.get("/v1/usage", headers=headers).status_code == 200

    client.delete(f"/v1/admin/keys/{made['id']}")

    assert client.get("/v1/usage", headers=headers).status_code == 401
    assert made["secret"] not in client.get("/v1/admin/keys").text
    stored = b"".join(path.read_bytes() for path in state.settings.data_dir.glob("footnote.db*"))
    assert made["prefix"].encode() in stored
    assert made["secret"].encode() not in stored
