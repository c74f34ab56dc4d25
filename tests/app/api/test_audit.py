"""The audit log records each administrative act that succeeded."""

import csv
import io
import json

import pytest

from app.types import Role
from tests.app.api.credentials import key_of
from tests.app.server.embedder_swaps import GatedEmbedder, served


def acts(client, **params):
    answer = client.get("/v1/admin/audit", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_life_of_a_key_is_in_the_log_without_its_secret(client):
    made = client.post("/v1/admin/keys", json={"name": "ci", "role": "reader"})
    key = made.json()
    client.patch(f"/v1/admin/keys/{key['id']}", json={"role": "member"})
    client.patch(f"/v1/admin/keys/{key['id']}", json={"role": "member"})
    client.delete(f"/v1/admin/keys/{key['id']}")
    client.delete(f"/v1/admin/keys/{key['id']}")

    found = acts(client)["data"]

    assert [act["action"] for act in found] == ["key.revoked", "key.changed", "key.created"]
    assert {act["target"] for act in found} == {key["id"]}
    assert found[2]["detail"] | {"name": "ci", "role": "reader"} == found[2]["detail"]
    assert found[1]["detail"]["before"]["role"] == "reader"
    assert found[1]["detail"]["after"]["role"] == "member"
    assert found[2]["request_id"] == made.headers["x-request-id"]
    assert key["secret"] not in client.get("/v1/admin/audit").text


def test_the_log_is_a_file_with_the_changes_as_json(client):
    made = client.post("/v1/admin/keys", json={"name": "=ci", "role": "reader"}).json()
    client.delete(f"/v1/admin/keys/{made['id']}")
    listed = acts(client)["data"]
    as_csv = client.get("/v1/admin/audit", headers={"Accept": "text/csv"})
    chosen = client.get("/v1/admin/audit", params={"action": "key.created"}, headers={"Accept": "application/x-ndjson"})

    rows = list(csv.DictReader(io.StringIO(as_csv.text.removeprefix("\ufeff"))))
    assert [row["id"] for row in rows] == [one["id"] for one in listed]
    assert set(rows[0]) == set(listed[0]) - {"object"}
    assert [json.loads(row["detail"]) for row in rows] == [one["detail"] for one in listed]
    assert not any(row["target_name"].startswith("=") for row in rows), "no formula for a spreadsheet"
    assert [json.loads(line)["action"] for line in chosen.text.splitlines()] == ["key.created"]
    assert made["secret"] not in as_csv.text


def test_what_was_refused_is_not_in_the_log(client):
    assert client.post("/v1/admin/keys", json={"name": "x", "role": "king"}).status_code == 422
    assert client.delete("/v1/admin/keys/key_nobody").status_code == 404

    assert acts(client)["data"] == []


def test_a_repair_is_in_the_log_and_a_look_is_not(client):
    client.post("/v1/admin/reconcile", json={"repair": False})
    assert acts(client)["data"] == []

    client.post("/v1/admin/reconcile", json={"repair": True})
    assert [act["action"] for act in acts(client)["data"]] == ["reconciliation.repaired"]


def test_acts_can_be_chosen_and_come_page_by_page(client):
    keys = [client.post("/v1/admin/keys", json={"name": f"k{number}"}).json()["id"] for number in range(3)]
    client.delete(f"/v1/admin/keys/{keys[0]}")

    first = acts(client, action="key.created", limit=2)
    second = acts(client, action="key.created", limit=2, cursor=first["next_cursor"])

    assert [act["target"] for act in first["data"] + second["data"]] == keys[::-1]
    assert second["next_cursor"] is None
    assert client.get("/v1/admin/audit", params={"cursor": "x"}).status_code == 422


def test_another_tenants_acts_are_not_shown(client, state):
    client.post("/v1/admin/keys", json={"name": "ours"})

    rival = client.get("/v1/admin/audit", headers=key_of(state, Role.ADMIN, tenant="rival"))

    assert rival.json()["data"] == []


@pytest.mark.parametrize(
    ("act", "action", "target"), [("confirm", "generation.retired", "1"), ("rollback", "generation.rolled_back", "1")]
)
def test_what_is_done_with_an_embedder_from_before_is_in_the_log(tmp_path, act, action, target):
    old, new = GatedEmbedder(dim=64), GatedEmbedder(dim=96)
    with served(tmp_path / "data", old) as application:
        application.upload("Ships pass the lighthouse.")
    with served(tmp_path / "data", new, old) as application:
        application.swapped()
        assert application.http.post(f"/v1/admin/generations/2/{act}").is_success
        application.swapped()
        (found,) = acts(application.http)["data"]

    assert (found["action"], found["target"], found["detail"]["model"]) == (action, target, "hashing")
