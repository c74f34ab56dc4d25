"""Below a root path limits, idempotency, headers and the page are as they are without one, whatever the proxy does."""

import re
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.db.tables.documents import idempotent_request
from app.server.state import State
from tests.app.api.conftest import ADMIN_KEY

PREFIX = "/footnote"
either_proxy = pytest.mark.parametrize("prefix", ["", PREFIX], ids=["stripping", "keeping"])


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    app = create_app(lambda: nullcontext(state), version=state.serving.version, root_path=PREFIX)
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    with TestClient(app, headers=headers, follow_redirects=False) as client:
        yield client


@either_proxy
def test_a_limit_counts_requests_below_the_prefix(client: TestClient, prefix: str):
    client.put("/v1/admin/limits/tenants/default", json={"requests_per_minute": 1})
    documents = [client.post(f"{prefix}/v1/documents", json={"text": "x", "filename": "a.txt"}) for _ in range(2)]

    assert [made.status_code for made in documents] == [202, 429]


@either_proxy
def test_a_secret_is_kept_neither_for_a_repetition_nor_by_a_cache(client: TestClient, state: State, prefix: str):
    headers = {"Idempotency-Key": "k"}
    made = client.post(f"{prefix}/v1/admin/keys", json={"name": "n"}, headers=headers)
    again = client.post(f"{prefix}/v1/admin/keys", json={"name": "n"}, headers=headers)

    assert (made.status_code, again.status_code) == (201, 409)
    assert made.headers["cache-control"] == "no-store"
    with state.database.read() as connection:
        assert connection.execute(sa.select(idempotent_request.c.body)).scalars().all() == [None]


def test_a_repetition_through_another_proxy_is_the_same_request(client: TestClient):
    headers = {"Idempotency-Key": "k"}
    made = client.post(f"{PREFIX}/v1/collections", json={"name": "once"}, headers=headers)
    again = client.post("/v1/collections", json={"name": "once"}, headers=headers)

    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == made.json()


@either_proxy
def test_wrong_keys_are_counted_where_somebody_signs_in(client: TestClient, state: State, prefix: str):
    most = state.settings.failed_logins_per_minute
    del client.headers["Authorization"]
    statuses = [client.post(f"{prefix}/v1/session", json={"key": "fn_wrong"}).status_code for _ in range(most + 1)]

    assert statuses == [401] * most + [429]


@either_proxy
def test_errors_below_the_prefix_have_the_form_of_their_protocol(client: TestClient, prefix: str):
    assert "error" in client.get(f"{prefix}/v1/models/none").json()
    assert "error" not in client.get(f"{prefix}/v1/documents/none").json()
    assert client.put(f"{prefix}/v1/documents").headers["allow"] == "GET, POST"


@either_proxy
@pytest.mark.parametrize("page", ["/", "/docs"])
def test_every_link_of_a_page_leads_to_a_file(client: TestClient, prefix: str, page: str):
    address = client.base_url.join(f"{PREFIX}{page}")  # as the browser has it, in front of the proxy
    answer = client.get(f"{prefix}{page}", headers={"Authorization": ""})
    links = [address.join(link) for link in re.findall(r'(?:src|href)="([^"]+)"', answer.text)]

    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert any(link.path.endswith(".js") for link in links)
    for link in links:
        assert link.path.startswith(f"{PREFIX}/"), link
        found = client.get(prefix + link.path.removeprefix(PREFIX), headers={"Authorization": ""})
        assert found.status_code == 200, link
        assert "assets" not in link.path or "immutable" in found.headers["cache-control"]


def test_the_documentation_names_the_description_below_the_prefix(client: TestClient):
    assert f"'{PREFIX}/openapi.json'" in client.get(f"{PREFIX}/docs").text
    assert client.get(f"{PREFIX}/openapi.json").json()["servers"] == [{"url": PREFIX}]


def test_the_prefix_alone_leads_to_the_page(client: TestClient):
    """Its links are relative: without the slash a browser would look for them beside the prefix."""
    answer = client.get(PREFIX, headers={"Host": "evil.example", "Authorization": ""})

    assert (answer.status_code, answer.headers["location"]) == (308, f"{PREFIX}/")
    assert "x-request-id" in answer.headers
    assert client.get(f"{PREFIX}/").status_code == 200


@pytest.mark.parametrize("path", ["/v1/documents/", f"{PREFIX}/v1/documents/", "/docs/", "/assets", "/healthz/"])
def test_a_slash_too_many_is_404_and_leads_to_no_other_host(client: TestClient, path: str):
    answer = client.get(path, headers={"Host": "evil.example"})

    assert answer.status_code == 404
    assert "location" not in answer.headers
    assert "evil.example" not in answer.text
    assert ("slash" in answer.json()["detail"]) == path.endswith("/")


def test_an_address_that_nothing_is_at_without_its_slash_either_says_only_that(client: TestClient):
    assert client.get("/v1/invented/").json()["detail"] == "There is nothing at this address."


def test_health_is_served_below_the_prefix_without_a_key(client: TestClient):
    assert client.get(f"{PREFIX}/healthz", headers={"Authorization": ""}).status_code == 200
    assert client.get(f"{PREFIX}{PREFIX}/healthz", headers={"Authorization": ""}).status_code == 401
