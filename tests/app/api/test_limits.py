"""Limits that administrators set: they hold at once, and are in the audit log."""

import pytest

from app.types import Role
from tests.app.api.credentials import key_of

NONE = {"requests_per_minute": None, "tokens_per_minute": None, "concurrent_requests": None}


def test_a_keys_limit_holds_at_once_and_is_gone_at_once(client):
    key = client.post("/v1/admin/keys", json={"name": "busy"}).json()
    caller, path = {"Authorization": f"Bearer {key['secret']}"}, f"/v1/admin/limits/keys/{key['id']}"
    before = client.get(path).json()
    made = client.put(path, json={"requests_per_minute": 1})
    first, second = (client.post("/v1/search", json={"query": "x"}, headers=caller) for _ in range(2))
    listed = client.get("/v1/admin/limits").json()["data"]
    after = client.delete(path).json()
    third = client.post("/v1/search", json={"query": "x"}, headers=caller)
    (removed, set_) = client.get("/v1/admin/audit").json()["data"][:2]

    assert (before["is_default"], {name: before[name] for name in NONE}) == (True, NONE)
    assert made.json() == {
        **before,
        "requests_per_minute": 1,
        "is_default": False,
        "updated_at": made.json()["updated_at"],
    }
    assert [first.status_code, second.status_code, third.status_code] == [503, 429, 503], "this process has no models"
    assert [found["id"] for found in listed] == [key["id"]]
    assert after == before
    assert (set_["action"], removed["action"]) == ("limits.set", "limits.delete")
    assert set_["target"] == key["id"]


def test_a_tenants_limit_is_set_by_the_operator_and_seen_by_its_administrator(client, state):
    rival = key_of(state, Role.ADMIN, tenant="rival")
    path = "/v1/admin/limits/tenants/rival"
    made = client.put(path, json={"tokens_per_minute": 5000, "concurrent_requests": 2}).json()

    assert client.get(path, headers=rival).json() == made
    assert client.put(path, json={}, headers=rival).status_code == 403
    assert client.get("/v1/admin/limits/tenants/default", headers=rival).status_code == 404
    assert client.get("/v1/admin/limits", headers=rival).json()["data"] == [made]
    assert client.put("/v1/admin/limits/tenants/nobody", json={}).status_code == 404


@pytest.mark.parametrize("value", [0, -1, 1.5, "10", True, 1e308, 10**30])
def test_a_limit_that_is_no_number_of_requests_is_422(client, value):
    response = client.put("/v1/admin/limits/tenants/default", json={"requests_per_minute": value})

    assert response.status_code == 422
