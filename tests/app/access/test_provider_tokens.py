"""Access tokens of an OpenID provider at /mcp: those for this server count, all others do not."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

pytest.importorskip("mcp", reason="the extra `mcp`")

from app.access.openid import open_id
from app.access.provider_tokens import ProviderKeys
from app.api.application import create_app
from app.errors import ProviderUnavailable
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from tests.app.access.provider import CLIENT_ID, CLIENT_SECRET, KEY, STRANGER, Provider, serving
from tests.app.api.credentials import key_of
from tests.installation import installed

ADMIN = "fn_test_admin_key_of_the_suite"
RESOURCE = "https://footnote.example.org/mcp"
METADATA = "https://footnote.example.org/.well-known/oauth-protected-resource"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving() as provider:
        yield provider


@contextmanager
def application(data_dir: Path, provider: Provider, *, mcp_url: str = "") -> Iterator[tuple[State, TestClient]]:
    settings = Settings(
        data_dir=installed(data_dir),
        admin_key=ADMIN,
        oidc_issuer=provider.issuer,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        mcp_url=mcp_url,
        _env_file=None,
    )
    with build(settings, with_models=False) as state:
        with TestClient(create_app(lambda: nullcontext(state), version="0")) as client:
            yield state, client


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[tuple[State, TestClient]]:
    with application(tmp_path_factory.mktemp("tokens") / "data", provider, mcp_url=RESOURCE) as served:
        yield served


@pytest.fixture
def client(served: tuple[State, TestClient]) -> TestClient:
    return served[1]


def ask(client: TestClient, token: str, path: str = "/mcp", **message: object) -> Any:
    headers = {
        b"Authorization": f"Bearer {token}".encode("latin-1"),
        b"Accept": b"application/json, text/event-stream",
    }
    return client.post(path, json={**LIST, **message}, headers=headers)


def test_a_token_for_this_server_is_its_users(served: tuple[State, TestClient], provider: Provider) -> None:
    state, client = served
    token = provider.access_token(["https://other.example", RESOURCE], email="ada@example.org", email_verified=True)
    listed = ask(client, token).json()["result"]["tools"]
    usage = ask(client, token, method="tools/call", params={"name": "usage", "arguments": {}}).json()["result"]

    assert "ingest" not in {tool["name"] for tool in listed}, "the provider's users are readers"
    user = state.access.users.get(usage["structuredContent"]["user_id"], tenant_id="default")
    assert user.name == "ada@example.org"


LIES: dict[str, dict[str, Any]] = {
    "another audience": {"aud": "https://other.example/mcp"},
    "our client's id, as an ID token has": {"aud": CLIENT_ID},
    "no audience": {"aud": None},
    "an odd audience": {"aud": {"a": RESOURCE}},
    "a part of the address": {"aud": "https://footnote.example.org"},
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "expired": {"exp": int(time.time()) - 3600},
    "no end": {"exp": None},
    "from the future": {"nbf": int(time.time()) + 3600},
    "nobody": {"sub": ""},
    "no subject": {"sub": None},
    "no text": {"sub": 7},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_does_not_hold_is_refused_with_the_place_to_get_one(
    client: TestClient, provider: Provider, lie: str
) -> None:
    response = ask(client, provider.access_token(RESOURCE, **LIES[lie]))

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == f'Bearer resource_metadata="{METADATA}"'


def forged(header: dict[str, object], claims: dict[str, object], signature: str) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims)]
    return ".".join([*parts, signature])


def test_forged_tokens_are_refused(client: TestClient, provider: Provider) -> None:
    claims: dict[str, object] = {
        "iss": provider.issuer,
        "sub": "s-1",
        "aud": RESOURCE,
        "exp": int(time.time()) + 60,
    }
    good = provider.access_token(RESOURCE)
    for token in (
        provider.access_token(RESOURCE, key=STRANGER),
        forged({"alg": "none", "kid": "k1"}, claims, ""),
        forged({"alg": "HS256", "kid": "k1"}, claims, "c2ln"),
        forged({"alg": "RS256", "kid": {"a": 1}}, claims, "c2ln"),
        good[:-4] + "AAAA",
        "eyJ.eyJ.",
        "eyJé.a.b",
        f"{good}.{good}",
    ):
        assert ask(client, token).status_code == 401, token


def test_a_token_counts_at_the_resource_alone_and_keys_count_there_too(
    served: tuple[State, TestClient], provider: Provider
) -> None:
    _, client = served
    token = provider.access_token(RESOURCE)

    assert client.get("/v1/documents", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert ask(client, token, path="/v1/search").status_code == 401
    assert ask(client, ADMIN).status_code == 200


def test_a_disabled_user_is_refused(served: tuple[State, TestClient], provider: Provider) -> None:
    _, client = served
    provider.subject = "s-2"
    token = provider.access_token(RESOURCE)
    usage = ask(client, token, method="tools/call", params={"name": "usage", "arguments": {}}).json()["result"]
    user_id = usage["structuredContent"]["user_id"]
    disabled = client.patch(
        f"/v1/admin/users/{user_id}", json={"disabled": True}, headers={"Authorization": f"Bearer {ADMIN}"}
    )
    refused = ask(client, token)
    provider.subject = "s-1"

    assert disabled.status_code == 200
    assert refused.status_code == 401


def test_the_metadata_name_the_provider_where_its_tokens_are_accepted(client: TestClient, provider: Provider) -> None:
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        assert client.get(path).json() == {
            "resource": RESOURCE,
            "resource_name": "Footnote",
            "bearer_methods_supported": ["header"],
            "authorization_servers": [provider.issuer],
        }


def test_without_an_address_of_its_own_the_server_takes_keys_alone(tmp_path: Path, provider: Provider) -> None:
    with application(tmp_path / "data", provider) as (state, client):
        refused = ask(client, provider.access_token("http://testserver/mcp"))
        keyed = ask(client, key_of(state, state.access.keys.list(tenant_id="default")[0].role)["Authorization"][7:])
        metadata = client.get("/.well-known/oauth-protected-resource").json()
        odd = client.post("/mcp", headers={"Host": 'a"b'})

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == (
        'Bearer resource_metadata="http://testserver/.well-known/oauth-protected-resource"'
    )
    assert keyed.status_code == 200
    assert metadata["resource"] == "http://testserver/mcp"
    assert "authorization_servers" not in metadata
    assert odd.headers["www-authenticate"].count('"') in {0, 2}


@pytest.mark.parametrize(
    "address", ["footnote.example.org/mcp", "https://a b/mcp", 'https://a"/mcp', "https://a.org/x"]
)
def test_an_address_that_is_none_is_refused_at_the_start(address: str) -> None:
    with pytest.raises(ValidationError, match="FOOTNOTE_MCP_URL"):
        Settings(mcp_url=address, _env_file=None)


def test_keys_are_read_again_for_a_new_one_and_kept_while_the_provider_is_away(provider: Provider) -> None:
    settings = Settings(oidc_issuer=provider.issuer, oidc_client_id=CLIENT_ID, _env_file=None)
    openid, now = open_id(settings), [0.0]
    assert openid is not None
    keys = ProviderKeys(openid, clock=lambda: now[0])
    provider.failing = True
    try:
        assert keys.due("k1")
        with pytest.raises(ProviderUnavailable):
            keys.read()
        assert not keys.due("k1"), "it is not asked at once again"
    finally:
        provider.failing = False
    now[0] = 21
    keys.read()
    kept = keys.kept

    assert kept == (provider.issuer, {"keys": [KEY.as_dict(private=False)]})
    assert not keys.due("k2")
    now[0] = 42
    assert not keys.due("k1")
    assert not keys.due(None)
    assert keys.due("k2"), "a key that is not among them"
    now[0] = 700
    assert keys.due("k1"), "they are old"
    provider.failing = True
    try:
        keys.read()
    finally:
        provider.failing = False
    assert keys.kept == kept
