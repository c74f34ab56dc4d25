"""The access matrix below a root path: with its prefix, without it, and with what only looks like it."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext

import pytest
from fastapi.testclient import TestClient

from app.access.routes import RouteReach, rule_for
from app.api.application import create_app
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Role
from tests.app.api.access_table import MATRIX, OPERATOR
from tests.app.api.conftest import ADMIN_KEY
from tests.app.api.credentials import key_of
from tests.app.api.test_access_matrix import IDS, RANKS, call

KEPT, STRIPPED, ENCODED = "/footnote", "", "/%66ootnote"
STRANGE = ("/footnote/footnote", "/footnote%2Ffootnote", "//footnote", "/FOOTNOTE", "/footnotes")
NOTHING = {**dict.fromkeys(IDS | {"tenant_id", "id", "model"}, "none"), "generation_id": "9", "number": "1"}
Callers = Mapping[str, dict[str, str]]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    data_dir = tmp_path_factory.mktemp("root-path") / "data"
    with build(Settings(data_dir=data_dir, admin_key=ADMIN_KEY, _env_file=None), with_models=False) as state:
        yield state


@pytest.fixture(scope="module")
def client(state: State) -> Iterator[TestClient]:
    app = create_app(lambda: nullcontext(state), version=state.serving.version, root_path="/footnote")
    with TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"}) as client:
        yield client


@pytest.fixture(scope="module")
def owned(client: TestClient) -> dict[str, str]:
    """Ids of one tenant's things; no test may change them, so all share them."""
    collection = client.post("/v1/collections", json={"name": "Secret."}).json()["id"]
    told = {"text": "Secret.", "filename": "s.txt", "collection_id": collection}
    document = client.post("/v1/documents", json=told).json()
    batch = client.post(f"/v1/vector_stores/{collection}/file_batches", json={"file_ids": [document["id"]]}).json()
    client.post("/v1/admin/tenants", json={"id": "secret", "name": "Secret."})
    return NOTHING | {
        "collection_id": collection,
        "vector_store_id": collection,
        "document_id": document["id"],
        "file_id": document["id"],
        "batch_id": batch["id"],
        "job_id": document["job_id"],
        "key_id": client.post("/v1/admin/keys", json={"name": "Secret."}).json()["id"],
        "tenant_id": "secret",
    }


@pytest.fixture(scope="module")
def callers(state: State) -> Callers:
    """Headers of every kind of caller."""
    return {
        **{str(role): key_of(state, role) for role in RANKS},
        "rival": key_of(state, Role.ADMIN, tenant="rival"),
        "limited": key_of(state, Role.ADMIN, collections=("none",)),
    }


def below(client: TestClient, prefix: str) -> TestClient:
    """The client, whose paths begin with this prefix from now on."""
    client.base_url = f"http://testserver{prefix}"
    return client


@pytest.mark.parametrize("prefix", [STRIPPED, KEPT])
@pytest.mark.parametrize(("method", "template"), MATRIX)
def test_the_prefix_changes_nobodys_access(client, owned, callers, method, template, prefix):
    client, least = below(client, prefix), RANKS.index(MATRIX[method, template])

    assert call(client, method, template, owned, {}).status_code == 401
    for role in RANKS[:least]:
        assert call(client, method, template, owned, callers[role]).status_code == 403, role
    if rule_for(method, template).reach in {RouteReach.TENANT, RouteReach.INSTALLATION}:
        assert call(client, method, template, owned, callers["limited"]).status_code == 403
    if not template.endswith("/events"):  # a stream that waits for a worker this application has not
        assert call(client, method, template, NOTHING, callers[RANKS[least]]).status_code not in {401, 403}


@pytest.mark.parametrize("prefix", [STRIPPED, KEPT, ENCODED])
@pytest.mark.parametrize(("method", "template"), OPERATOR)
def test_below_a_prefix_another_tenants_administrator_is_no_operator(client, owned, callers, method, template, prefix):
    assert call(below(client, prefix), method, template, owned, callers["rival"]).status_code == 403


@pytest.mark.parametrize("prefix", [STRIPPED, KEPT])
@pytest.mark.parametrize(
    ("method", "template"), [route for route in MATRIX if any("{" + name + "}" in route[1] for name in IDS)]
)
def test_below_a_prefix_another_tenants_resources_are_404(client, owned, callers, method, template, prefix):
    response = call(below(client, prefix), method, template, owned, callers["rival"])

    assert response.status_code == 404
    assert "Secret" not in response.text


@pytest.mark.parametrize("prefix", STRANGE)
def test_what_only_looks_like_the_prefix_reaches_no_route(client, owned, callers, prefix):
    client = below(client, prefix)
    for method, template in MATRIX:
        assert call(client, method, template, owned, callers[Role.ADMIN]).status_code == 404, (method, template)
        if rule_for(method, template).reach is RouteReach.INSTALLATION:
            assert call(client, method, template, owned, callers["rival"]).status_code == 404, (method, template)
        assert call(client, method, template, owned, {}).status_code == 401, (method, template)
