"""Administrators invite people by links; whoever opens one first is a person with a key, signed in."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.access.cookie import COOKIE
from app.api.application import create_app
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Role
from tests.app.api.conftest import ADMIN_KEY, client_of
from tests.app.api.credentials import key_of
from tests.app.outbound.smtp_server import smtp_server
from tests.installation import installed

INVITATION = {"name": "Ada Lovelace", "role": "member"}
NOT_VALID = "urn:footnote:problem:invitation-not-valid"


@pytest.fixture
def stranger(state: State) -> Iterator[TestClient]:
    """A browser of somebody without a key."""
    with TestClient(create_app(lambda: nullcontext(state), version="0")) as client:
        yield client


def invite(client: TestClient, **fields: Any) -> dict[str, Any]:
    response = client.post("/v1/admin/invitations", json=INVITATION | fields)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body | {"token": body["link"].rpartition("/")[2]}


def accept(stranger: TestClient, token: str, **headers: str) -> Any:
    return stranger.post("/v1/invitations/accept", json={"token": token}, headers=headers)


def actions(client: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/admin/audit").json()["data"]
    return found


def test_a_link_makes_a_person_a_key_and_a_session(client, stranger):
    made = invite(client)
    assert made["link"].startswith("http://testserver/#/invitation/")
    assert (made["status"], made["kind"], made["mail"], made["user_id"]) == ("open", "invitation", "off", None)

    response = accept(stranger, made["token"])

    assert response.status_code == 201, response.text
    assert response.headers["Cache-Control"] == "no-store"
    session, key = response.json()["session"], response.json()["key"]
    assert (session["user_name"], session["role"], session["tenant_id"]) == ("Ada Lovelace", "member", "default")
    assert stranger.get("/v1/session").json() == session
    assert stranger.cookies[COOKIE] not in response.text
    with_key = client.get("/v1/session", headers={"Authorization": f"Bearer {key['secret']}"}).json()
    assert (with_key["user_id"], with_key["user_name"]) == (session["user_id"], "Ada Lovelace")
    assert client.get(f"/v1/admin/users/{session['user_id']}").json()["name"] == "Ada Lovelace"
    listed = client.get(f"/v1/admin/keys/{key['id']}").json()
    assert (listed["name"], listed["user_name"]) == ("browser", "Ada Lovelace")
    read = client.get(f"/v1/admin/invitations/{made['id']}").json()
    assert (read["status"], read["user_id"]) == ("accepted", session["user_id"])


def test_only_its_creation_shows_the_link_and_nothing_is_in_the_audit_log(client, stranger):
    made = invite(client)
    accept(stranger, made["token"])

    shown = "".join(
        client.get(path).text
        for path in ("/v1/admin/invitations?open=false", f"/v1/admin/invitations/{made['id']}", "/v1/admin/audit")
    )

    assert made["id"] in shown
    assert made["token"] not in shown


def test_the_audit_log_says_who_invited_and_who_came(client, stranger):
    made, other = invite(client), invite(client, name="Bob")
    accept(stranger, made["token"])
    client.delete(f"/v1/admin/invitations/{other['id']}")

    found = {act["action"]: act for act in actions(client)}

    assert found.keys() == {"invitation.created", "invitation.accepted", "invitation.revoked"}
    accepted = found["invitation.accepted"]
    assert (accepted["user_name"], accepted["target"], accepted["target_name"]) == (
        "Ada Lovelace",
        made["id"],
        "Ada Lovelace",
    )
    assert found["invitation.revoked"]["target_name"] == "Bob"
    assert found["invitation.revoked"]["user_name"] == "admin"


def test_a_used_a_revoked_and_an_unknown_token_are_refused_alike(client, stranger):
    used, revoked = invite(client), invite(client)
    accept(stranger, used["token"])
    stranger.cookies.clear()
    client.delete(f"/v1/admin/invitations/{revoked['id']}")

    refused = [
        stranger.post(f"/v1/invitations/{act}", json={"token": token})
        for act in ("accept", "preview")
        for token in (used["token"], revoked["token"], "no-such-token", "x" * 200)
    ]

    assert {(response.status_code, response.json()["type"]) for response in refused} == {(404, NOT_VALID)}
    assert len({response.json()["detail"] for response in refused}) == 1
    assert not [response for response in refused if "Set-Cookie" in response.headers]


def test_a_preview_says_who_invites_to_what_and_uses_nothing(client, stranger, state):
    papers = client.post("/v1/collections", json={"name": "papers"}).json()["id"]
    client.patch("/v1/admin/tenants/default", json={"name": "House of Learning"})
    state.access.users.update(
        "admin", tenant_id="default", name="Grace", record=lambda connection, target, detail: None
    )
    made = invite(client, collections=[papers], role="reader")

    for _ in range(2):
        seen = stranger.post("/v1/invitations/preview", json={"token": made["token"]}).json()
        assert {
            name: seen[name] for name in ("kind", "name", "invited_by_name", "tenant_name", "role", "collections")
        } == {
            "kind": "invitation",
            "name": "Ada Lovelace",
            "invited_by_name": "Grace",
            "tenant_name": "House of Learning",
            "role": "reader",
            "collections": ["papers"],
        }
    assert accept(stranger, made["token"]).json()["session"]["collections"] == [papers]


def test_another_site_accepts_nothing_in_this_browser(client, stranger):
    made = invite(client)

    for act in ("preview", "accept"):
        forged = stranger.post(
            f"/v1/invitations/{act}", json={"token": made["token"]}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert forged.json()["type"] == "urn:footnote:problem:csrf"
    assert accept(stranger, made["token"]).status_code == 201


def test_a_large_body_is_refused(stranger):
    for act in ("preview", "accept"):
        assert stranger.post(f"/v1/invitations/{act}", content=b"x" * (17 << 10)).status_code == 413


@pytest.mark.parametrize("act", ["preview", "accept"])
def test_guesses_are_limited_as_failed_sign_ins_also_beside_a_good_key(tmp_path: Path, act: str) -> None:
    settings = Settings(
        data_dir=installed(tmp_path / "data"), admin_key=ADMIN_KEY, failed_logins_per_minute=3, _env_file=None
    )
    with build(settings, with_models=False) as state, client_of(state) as client:
        assert client.get("/v1/session").status_code == 200  # its key is exempt from here on
        guesses = [client.post(f"/v1/invitations/{act}", json={"token": f"guess-{n}"}) for n in range(5)]
        still = client.get("/v1/session").status_code

    assert [response.status_code for response in guesses] == [404, 404, 404, 429, 429]
    assert int(guesses[-1].headers["Retry-After"]) >= 1
    assert still == 200


def test_a_budget_comes_with_the_key(client, stranger):
    made = invite(client, budget={"limit": 1000, "period": "month"})
    assert client.get("/v1/admin/budgets").json()["data"] == []

    key = accept(stranger, made["token"]).json()["key"]

    (budget,) = client.get("/v1/admin/budgets").json()["data"]
    assert (budget["scope_type"], budget["scope_id"], budget["limit"]) == ("key", key["id"], 1000)
    assert key["budget"]["id"] == budget["id"]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"role": "king"},
        {"expires_in": 31 * 86_400},
        {"expires_in": 1},
        {"email": "ada"},
        {"email": "ada@example.org\r\nBcc: eve@example.org"},
        {"email": f"{'a' * 250}@example.org"},
        {"budget": {"limit": -1, "period": "month"}},
        {"budget": {"limit": 1, "period": "month", "tz": "Nowhere/Land"}},
    ],
)
def test_what_cannot_be_is_refused_at_once(client, fields):
    assert client.post("/v1/admin/invitations", json=INVITATION | fields).status_code == 422
    assert client.get("/v1/admin/invitations?open=false").json()["data"] == []


def test_a_collection_that_is_not_there_is_404(client):
    response = client.post("/v1/admin/invitations", json=INVITATION | {"collections": ["col_nowhere"]})

    assert response.status_code == 404


def test_another_tenant_sees_and_revokes_nothing(client, state):
    made = invite(client)
    rival = key_of(state, Role.ADMIN, tenant="rival")

    assert client.get("/v1/admin/invitations", headers=rival).json()["data"] == []
    for method in ("GET", "DELETE"):
        path = f"/v1/admin/invitations/{made['id']}"
        assert client.request(method, path, headers=rival).status_code == 404
    assert client.post("/v1/admin/users/admin/sign-in-link", json={}, headers=rival).status_code == 404


def test_a_retry_makes_no_second_invitation(client):
    headers = {"Idempotency-Key": "once"}
    first, again = (client.post("/v1/admin/invitations", json=INVITATION, headers=headers) for _ in range(2))

    assert (first.status_code, again.status_code) == (201, 409)
    assert again.json()["type"] == "urn:footnote:problem:answer-not-kept"
    assert len(client.get("/v1/admin/invitations").json()["data"]) == 1


def test_a_sign_in_link_gives_its_person_a_key_like_the_one_they_lost(client, stranger):
    collection = client.post("/v1/collections", json={"name": "papers"}).json()["id"]
    client.post("/v1/admin/users", json={"id": "bob", "name": "Bob"})
    client.post("/v1/admin/keys", json={"name": "old", "user_id": "bob", "role": "reader", "collections": [collection]})

    made = client.post("/v1/admin/users/bob/sign-in-link", json={}).json()
    signed_in = accept(stranger, made["link"].rpartition("/")[2]).json()["session"]

    assert (made["kind"], made["name"], made["role"], made["user_id"]) == ("sign_in", "Bob", "reader", "bob")
    assert (signed_in["user_id"], signed_in["user_name"], signed_in["collections"]) == ("bob", "Bob", [collection])
    found = [act["action"] for act in actions(client)][:2]
    assert found == ["sign_in_link.used", "sign_in_link.created"]


def test_a_sign_in_link_needs_a_role_where_no_key_tells_it(client):
    client.post("/v1/admin/users", json={"id": "bob"})
    key = client.post("/v1/admin/keys", json={"name": "old", "user_id": "bob", "role": "admin"}).json()
    client.delete(f"/v1/admin/keys/{key['id']}")

    refused = client.post("/v1/admin/users/bob/sign-in-link", json={})

    assert (refused.status_code, refused.json()["param"]) == (422, "role")
    made = client.post("/v1/admin/users/bob/sign-in-link", json={"role": "reader"})
    assert (made.status_code, made.json()["name"], made.json()["role"]) == (201, "bob", "reader")
    assert client.post("/v1/admin/users/nobody/sign-in-link", json={}).status_code == 404


@contextmanager
def mailing(tmp_path: Path, port: int) -> Iterator[TestClient]:
    settings = Settings(
        data_dir=installed(tmp_path / "data"),
        admin_key=ADMIN_KEY,
        smtp_url=f"smtp://127.0.0.1:{port}",
        smtp_from="footnote@example.org",
        _env_file=None,
    )
    with build(settings, with_models=False) as state, client_of(state) as client:
        yield client


def test_an_invitation_is_mailed_where_there_is_a_server_for_it(tmp_path):
    with smtp_server() as box, mailing(tmp_path, box.port) as client:
        silent = invite(client)
        made = invite(client, name="Ada\nBcc: eve@example.org", email="ada@example.org")
        box.refusals = ["550 nobody"]
        failed = invite(client, email="nobody@example.org")
        listed = client.get("/v1/admin/invitations").json()["data"]
        used = accept(client, failed["token"])

    assert [one["mail"] for one in (silent, made, failed)] == ["off", "sent", "failed"]
    assert [one["mail"] for one in listed] == ["failed", "sent", "off"]
    assert used.status_code == 201, "the link works whether or not it was mailed"
    (letter,) = box.letters
    assert (letter["To"], letter["Bcc"]) == ("ada@example.org", None)
    text = letter.get_content()
    assert made["link"] in text
    assert text.startswith("Hello Ada Bcc: eve@example.org,")


def test_without_a_mail_server_nothing_is_mailed(client):
    assert invite(client, email="ada@example.org")["mail"] == "off"


def test_the_page_asks_whether_it_is_signed_in_without_a_refusal(client, stranger):
    nobody = stranger.get("/v1/session/state")
    assert (nobody.status_code, nobody.headers["Cache-Control"]) == (200, "no-store")
    assert nobody.json() == {"object": "session.state", "signed_in": False, "session": None, "openid": False}
    assert stranger.get("/v1/session/state", headers={"Cookie": f"{COOKIE}=x"}).json() == nobody.json()
    assert client.get("/v1/session/state").json() == nobody.json(), "a key in the header is no session"

    session = accept(stranger, invite(client)["token"]).json()["session"]

    told = stranger.get("/v1/session/state").json()
    assert (told["signed_in"], told["session"]) == (True, session)


def test_a_key_has_its_last_use_and_what_it_spent(client, state):
    key = client.post("/v1/admin/keys", json={"name": "laptop", "user_id": "bob"}).json()
    assert client.get(f"/v1/admin/keys/{key['id']}").json()["last_used_at"] is None
    client.get("/v1/usage", headers={"Authorization": f"Bearer {key['secret']}"})

    state.access.last_uses.flush()

    (listed,) = [one for one in client.get("/v1/admin/keys").json()["data"] if one["id"] == key["id"]]
    assert listed["last_used_at"] is not None
    assert (listed["month"]["input_tokens"], listed["month"]["cost"], listed["month"]["currency"]) == (0, None, "usd")


def test_acts_are_told_with_names(client, state):
    client.post("/v1/admin/users", json={"id": "bob", "name": "Bob"})
    key = client.post("/v1/admin/keys", json={"name": "laptop", "user_id": "bob"}).json()
    client.post("/v1/admin/budgets", json={"limit": 1, "period": "day", "scope_type": "user", "scope_id": "bob"})
    client.put(f"/v1/admin/limits/keys/{key['id']}", json={"requests_per_minute": 1})
    client.delete(f"/v1/admin/keys/{key['id']}")

    told = [(act["action"], act["target_name"], act["target_user_name"]) for act in actions(client)]

    assert told == [
        ("key.revoked", "laptop", "Bob"),
        ("limits.set", "laptop", "Bob"),
        ("budget.create", "Bob", None),
        ("key.created", "laptop", "Bob"),
        ("user.created", "Bob", None),
    ]


def test_an_administrators_own_conversations_are_apart(client, state):
    bob = key_of(state, Role.READER)
    client.post("/v1/conversations", json={"title": "mine"})
    client.post("/v1/conversations", json={"title": "his"}, headers=bob)

    def titles(**params: str) -> list[str]:
        return [one["title"] for one in client.get("/v1/conversations", params=params).json()["data"]]

    assert (titles(), titles(owner="me"), titles(owner="others")) == (["his", "mine"], ["mine"], ["his"])
    assert client.get("/v1/conversations", params={"owner": "me"}, headers=bob).json()["data"][0]["title"] == "his"
    assert client.get("/v1/conversations", params={"owner": "others"}, headers=bob).json()["data"] == []
    assert client.get("/v1/conversations", params={"owner": "x"}).status_code == 422
