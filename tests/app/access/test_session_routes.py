"""Signing in to the web page, with a key or through a provider."""

from collections.abc import Iterator
from contextlib import nullcontext
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from tests.app.access.provider import CLIENT_ID, CLIENT_SECRET, Provider, serving
from tests.app.server.stations import state_with
from tests.installation import installed

KEY = "fn_test_admin_key_of_the_suite"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving() as provider:
        yield provider


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[State]:
    data_dir: Path = tmp_path_factory.mktemp("sessions") / "data"
    settings = Settings(
        data_dir=installed(data_dir),
        admin_key=KEY,
        oidc_issuer=provider.issuer,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        _env_file=None,
    )
    with build(settings, with_models=False) as state:
        yield state


@pytest.fixture(scope="module")
def app_client(state: State) -> Iterator[TestClient]:
    app = create_app(lambda: nullcontext(state), version=state.serving.version)
    with TestClient(app, follow_redirects=False) as client:
        yield client


@pytest.fixture
def client(app_client: TestClient) -> TestClient:
    app_client.cookies.clear()
    return app_client


def test_a_key_is_exchanged_for_a_cookie_that_scripts_cannot_read(client):
    response = client.post("/v1/session", json={"key": KEY})

    assert response.status_code == 201
    morsel = SimpleCookie(response.headers["Set-Cookie"])["footnote_session"]
    assert (morsel["httponly"], morsel["samesite"], morsel["path"], morsel["secure"]) == (True, "Strict", "/", "")
    assert response.json()["operator"] is True
    assert morsel.value not in response.text
    shown = client.get("/v1/session").json()
    assert shown == response.json()


def test_the_cookie_is_secure_over_https(client):
    response = client.post("https://testserver/v1/session", headers={"Authorization": f"Bearer {KEY}"})

    assert "Secure" in response.headers["Set-Cookie"]


def test_a_signed_in_page_needs_its_token_to_change_anything_and_signs_out(client):
    token = client.post("/v1/session", json={"key": KEY}).json()["csrf_token"]

    assert client.post("/v1/collections", json={"name": "forged"}).json()["type"] == "urn:footnote:problem:csrf"
    made = client.post("/v1/collections", json={"name": "mine"}, headers={"X-Footnote-CSRF": token})
    assert made.status_code == 201
    cookie = client.cookies["footnote_session"]
    assert client.delete("/v1/session", headers={"X-Footnote-CSRF": token}).status_code == 200
    assert client.get("/v1/session", headers={"Cookie": f"footnote_session={cookie}"}).status_code == 401


def test_a_request_with_a_key_has_no_session(client):
    headers = {"Authorization": f"Bearer {KEY}"}

    assert client.get("/v1/session", headers=headers).json()["csrf_token"] is None
    assert client.delete("/v1/session", headers=headers).status_code == 404


@pytest.mark.parametrize("fetches", [False, True])
def test_a_session_says_whether_pages_of_the_web_are_fetched(state: State, fetches: bool) -> None:
    there = state_with(state, settings=state.settings.model_copy(update={"web_pages": fetches}))
    app = create_app(lambda: nullcontext(there), version=state.serving.version)
    with TestClient(app, follow_redirects=False) as client:
        signed_in = client.post("/v1/session", json={"key": KEY}).json()
        told = [client.get("/v1/session").json(), client.get("/v1/session/state").json()["session"]]
        by_key = client.get("/v1/session", headers={"Authorization": f"Bearer {KEY}"}).json()

    assert [one["web_pages"] for one in (signed_in, *told, by_key)] == [fetches] * 4


@pytest.mark.parametrize("body", [{"key": "fn_wrong"}, None])
def test_signing_in_with_a_bad_key_is_401_without_a_cookie(client, body):
    response = client.post("/v1/session", json=body)

    assert response.status_code == 401
    assert "Set-Cookie" not in response.headers


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
@pytest.mark.parametrize("guess", [KEY, "fn_guess"])
def test_a_good_key_in_the_header_is_no_cover_for_guesses_in_the_body(client, scheme, guess):
    headers = {"Authorization": f"{scheme} {KEY}"}
    assert client.get("/v1/session", headers=headers).status_code == 200

    refused = client.post("/v1/session", json={"key": guess}, headers=headers)

    assert refused.status_code == 422
    assert refused.json()["param"] == "key"
    assert "Set-Cookie" not in refused.headers
    assert client.post("/v1/session", headers=headers).status_code == 201


def test_a_proxys_own_password_does_not_keep_anybody_from_signing_in(client):
    headers = {"Authorization": "Basic dXNlcjpwYXNz"}

    assert client.post("/v1/session", json={"key": KEY}, headers=headers).status_code == 201


def test_another_site_signs_nobody_in(client):
    response = client.post("/v1/session", json={"key": KEY}, headers={"Sec-Fetch-Site": "cross-site"})

    assert response.json()["type"] == "urn:footnote:problem:csrf"


def test_two_sessions_with_one_idempotency_key_never_meet(client, state):
    answers = []
    for name in ("one", "two"):
        _, secret = state.access.keys.create(tenant_id=name, user_id="u", name=name, role="member")
        client.cookies.clear()
        token = client.post("/v1/session", json={"key": secret}).json()["csrf_token"]
        headers = {"X-Footnote-CSRF": token, "Idempotency-Key": "the same"}
        answers.append(client.post("/v1/collections", json={"name": "same"}, headers=headers))

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] != answers[1].json()["id"]


def test_behind_a_proxys_path_the_login_comes_back_there(state, provider):
    app = create_app(lambda: nullcontext(state), version=state.serving.version, root_path="/notes")
    with TestClient(app, follow_redirects=False) as proxied:
        begun = proxied.get("/v1/session/oidc/login")
        login = SimpleCookie(begun.headers["Set-Cookie"])["footnote_login"]
        back = provider.authorize(begun.headers["Location"])
        # the proxy takes its path off, so the client's own jar would not send the cookie here
        ended = proxied.get(
            "/v1/session/oidc/callback", params=back, headers={"Cookie": f"footnote_login={login.value}"}
        )

    assert login["path"] == "/notes/v1/session/oidc"
    assert ended.status_code == 303
    removed = [SimpleCookie(header) for header in ended.headers.get_list("Set-Cookie")]
    assert [one["footnote_login"]["path"] for one in removed if "footnote_login" in one] == [login["path"]]


def test_a_provider_signs_somebody_in(client, provider):
    begun = client.get("/v1/session/oidc/login", params={"next": "/there"})
    assert begun.status_code == 303
    login = SimpleCookie(begun.headers["Set-Cookie"])["footnote_login"]
    assert (login["httponly"], login["samesite"]) == (True, "Lax")

    back = client.get("/v1/session/oidc/callback", params=provider.authorize(begun.headers["Location"]))

    assert (back.status_code, back.headers["Location"]) == (303, "/there")
    signed_in = client.get("/v1/session").json()
    assert (signed_in["tenant_id"], signed_in["role"], signed_in["operator"]) == ("default", "reader", False)
    headers = {"X-Footnote-CSRF": signed_in["csrf_token"]}
    assert client.post("/v1/collections", json={"name": "x"}, headers=headers).status_code == 403


def test_an_open_redirect_is_refused(client):
    assert client.get("/v1/session/oidc/login", params={"next": "//evil.example"}).status_code == 422


@pytest.mark.parametrize("params", [{}, {"error": "access_denied", "state": "s"}, {"code": "c", "state": "s"}])
def test_an_oidc_callback_without_a_started_login_is_401(client, params):
    response = client.get("/v1/session/oidc/callback", params=params)

    assert response.status_code == 401
    assert "Set-Cookie" not in response.headers


def test_a_provider_that_is_down_is_a_problem_that_tells_nothing(client, provider):
    begun = client.get("/v1/session/oidc/login")
    back = provider.authorize(begun.headers["Location"])
    provider.failing = True
    try:
        response = client.get("/v1/session/oidc/callback", params=back)
    finally:
        provider.failing = False

    assert response.status_code == 503
    assert "Retry-After" in response.headers
    assert not [word for word in (back["code"], CLIENT_SECRET, "secret trouble", "127.0.0.1") if word in response.text]


def test_who_is_refused_or_signed_out_learns_whether_there_is_a_provider(client, tmp_path):
    def told(of: TestClient) -> list[bool]:
        """What a stranger, a wrong key and somebody who signs out are told."""
        stranger, guess = of.get("/v1/session"), of.post("/v1/session", json={"key": "fn_no_key_of_this_server"})
        assert (stranger.status_code, guess.status_code) == (401, 401)
        token = of.post("/v1/session", json={"key": KEY}).json()["csrf_token"]
        left = of.delete("/v1/session", headers={"X-Footnote-CSRF": token})
        return [response.json()["openid"] for response in (stranger, guess, left)]

    assert told(client) == [True, True, True]
    settings = Settings(data_dir=installed(tmp_path / "data"), admin_key=KEY, _env_file=None)
    with (
        build(settings, with_models=False) as alone,
        TestClient(create_app(lambda: nullcontext(alone), version=alone.serving.version)) as without,
    ):
        assert told(without) == [False, False, False]
