"""A key is created for the user that `user_id` means: its id, or else its display name."""

import pytest

from app.types import Role
from tests.app.api.credentials import key_of


def made_user(client, user_id, name):
    made = client.post("/v1/admin/users", json={"id": user_id, "name": name})
    assert made.status_code == 201, made.text


def made_key(client, **fields):
    return client.post("/v1/admin/keys", json={"name": "laptop", **fields})


def user_ids(client):
    return {user["id"] for user in client.get("/v1/admin/users").json()["data"]}


@pytest.mark.parametrize("text", ["user_ada", "Ada Lovelace", "ada LOVELACE", " Ada Lovelace "])
def test_a_user_is_found_by_id_and_by_name(client, text):
    made_user(client, "user_ada", "Ada Lovelace")
    before = user_ids(client)

    made = made_key(client, user_id=text)

    assert made.status_code == 201, made.text
    assert (made.json()["user_id"], made.json()["user_name"]) == ("user_ada", "Ada Lovelace")
    assert user_ids(client) == before


def test_letters_beyond_ascii_have_two_cases_too(client):
    made_user(client, "user_emilie", "Émilie du Châtelet")

    assert made_key(client, user_id="ÉMILIE DU CHÂTELET").json()["user_id"] == "user_emilie"


def test_an_id_goes_before_a_name(client):
    made_user(client, "ada", "Somebody Else")
    made_user(client, "user_2", "ada")

    assert made_key(client, user_id="ada").json()["user_id"] == "ada"


def test_a_name_of_several_users_is_refused_with_their_ids(client):
    made_user(client, "user_1", "Ada Lovelace")
    made_user(client, "user_2", "ada lovelace")

    refused = made_key(client, user_id="Ada Lovelace")

    assert refused.status_code == 422
    assert "user_1, user_2" in refused.text
    assert "user_id" in refused.text
    assert made_key(client, user_id="user_2").json()["user_id"] == "user_2"


def test_a_disabled_user_does_not_share_the_name(client):
    made_user(client, "user_1", "Ada Lovelace")
    made_user(client, "user_2", "Ada Lovelace")
    assert client.patch("/v1/admin/users/user_1", json={"disabled": True}).status_code == 200

    assert made_key(client, user_id="Ada Lovelace").json()["user_id"] == "user_2"


def test_a_text_that_is_nobodys_is_the_id_of_a_new_user(client):
    assert made_key(client, user_id="ann").json()["user_id"] == "ann"
    assert made_key(client, user_id=" ").json()["user_id"] == " "


def test_the_name_of_a_key_is_no_persons(client):
    made_user(client, "user_ada", "Ada Lovelace")

    assert made_key(client, name="Ada Lovelace").json()["user_id"] == "Ada Lovelace"


def test_a_name_of_another_tenant_is_not_found(client, state):
    made_user(client, "user_ada", "Ada Lovelace")

    made = client.post(
        "/v1/admin/keys",
        json={"name": "laptop", "user_id": "Ada Lovelace"},
        headers=key_of(state, Role.ADMIN, tenant="rival"),
    )

    assert made.json()["user_id"] == "Ada Lovelace"
