"""Prices over HTTP: decimal strings in and out, the past left alone, calls re-rated when asked twice."""

import time
from typing import Any

from fastapi.testclient import TestClient

from app.server.state import State
from app.types import Components, Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from tests.app.usage.samples import reservation

INPUT = {"model": "m1", "meter": "input", "price_per_million": "0.15"}


def spend(state: State, event_id: str, *, tenant_id: str = "default") -> None:
    """A call settled now, in the books of this application."""
    ledger = Ledger(state.database, "b", time.time)
    ledger.reserve(reservation(event_id, tenant_id=tenant_id))
    ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=2))


def refused(client: TestClient, status: int, **body: Any) -> dict[str, Any]:
    response = client.post("/v1/admin/prices", json={**INPUT, **body})
    assert response.status_code == status, response.text
    problem = response.json()
    assert isinstance(problem, dict)
    return problem


def test_a_price_begins_now_and_is_listed(client, state):
    before = time.time()
    made = client.post("/v1/admin/prices", json={**INPUT, "source": "contract"})

    assert made.status_code == 201
    body = made.json()
    assert before - 0.001 <= body["effective_from"] <= time.time() + 0.001
    assert body == {
        "id": body["id"],
        "object": "price",
        "model": "m1",
        "meter": "input",
        "price_per_million": "0.150000",
        "currency": "usd",
        "effective_from": body["effective_from"],
        "effective_to": None,
        "source": "contract",
        "created_by": body["created_by"],
        "created_at": body["effective_from"],
    }
    assert client.get("/v1/admin/prices").json()["data"] == [body]
    (entry,) = state.access.audit.list(tenant_id="default", action="price.added", limit=9)[0]
    assert entry.request_id == made.headers["X-Request-Id"]


def test_the_moment_a_price_begins_is_given_back_exactly(client):
    body = client.post("/v1/admin/prices", json=INPUT).json()

    def in_force(at: float) -> list[str]:
        return [item["id"] for item in client.get("/v1/admin/prices", params={"at": repr(at)}).json()["data"]]

    assert in_force(body["effective_from"]) == [body["id"]]
    assert in_force(round(body["effective_from"] - 0.000001, 6)) == []


def test_prices_are_listed_page_by_page(client):
    for meter in ("output", "input", "cached_input"):
        client.post("/v1/admin/prices", json={**INPUT, "meter": meter})

    first = client.get("/v1/admin/prices", params={"limit": 2}).json()
    rest = client.get("/v1/admin/prices", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)
    assert [item["meter"] for item in first["data"] + rest["data"]] == ["cached_input", "input", "output"]
    assert [item["meter"] for item in client.get("/v1/admin/prices?meter=output").json()["data"]] == ["output"]
    assert client.get("/v1/admin/prices?model=m2").json()["data"] == []


NO_PRICES: tuple[dict[str, Any], ...] = (
    {"price_per_million": 0.15},
    {"price_per_million": 1},
    {"price_per_million": "-1"},
    {"price_per_million": "NaN"},
    {"price_per_million": "1e-3"},
    {"price_per_million": "0.1234567"},
    {"price_per_million": "1000001"},
    {"price_per_million": None},
    {"meter": "reasoning"},
    {"model": ""},
    {"effective_from": "tomorrow"},
    {"effective_from": "1763600000"},
    {"effective_from": True},
    {"effective_from": -1},
    {"effective_from": 1e300},
    {"source": "s" * 501},
    {"currency": "eur"},
)


def test_what_cannot_be_a_price_is_422_and_names_its_field(client):
    for field in NO_PRICES:
        (name,) = field
        assert refused(client, 422, **field)["param"] == name, field
    assert client.get("/v1/admin/prices").json()["data"] == []


def test_what_cannot_be_listed_is_422(client):
    for query in ("at=nan", "at=-1", "at=x", "meter=colour", "cursor=x", "limit=0"):
        assert client.get(f"/v1/admin/prices?{query}").status_code == 422, query


def test_the_past_is_409_and_a_gap_before_it_is_not(client):
    begun = client.post("/v1/admin/prices", json=INPUT).json()["effective_from"]

    assert refused(client, 201, effective_from=begun - 100)["effective_to"] == begun
    assert "past is not changed" in refused(client, 409, effective_from=begun - 50)["detail"]
    assert "past is not changed" in refused(client, 409, effective_from=begun)["detail"]


def test_a_coming_price_ends_the_one_of_today(client):
    client.post("/v1/admin/prices", json=INPUT)
    tomorrow = int(time.time()) + 86_400
    client.post("/v1/admin/prices", json={**INPUT, "price_per_million": "0.2", "effective_from": tomorrow})

    today, coming = client.get("/v1/admin/prices").json()["data"]
    assert (today["effective_to"], coming["effective_from"], coming["effective_to"]) == (tomorrow, tomorrow, None)
    assert "later price" in refused(client, 409, effective_from=tomorrow - 60)["detail"]


def test_settled_calls_are_rerated_when_told_to(client, state):
    for number in range(3):
        spend(state, f"req_{number}:1")
    spend(state, "req_9:1", tenant_id="rival")
    hour_ago = int(time.time()) - 3600
    for meter, amount in (("input", "1"), ("output", "10")):
        body = {"model": "m1", "meter": meter, "price_per_million": amount, "effective_from": hour_ago}
        assert client.post("/v1/admin/prices", json=body).status_code == 201
    asked = {"start_time": hour_ago, "end_time": hour_ago + 7200, "reason": "late prices"}

    foreseen = client.post("/v1/admin/prices/rerate", json=asked).json()
    assert foreseen["dry_run"] is True
    assert foreseen["difference"] == {"value": "0.000120000000", "currency": "usd"}
    assert foreseen["models"] == [
        {
            "model": "m1",
            "num_calls": 3,
            "num_adjusted": 3,
            "num_newly_priced": 3,
            "num_unpriced": 0,
            "difference": {"value": "0.000120000000", "currency": "usd"},
        }
    ]
    done = client.post("/v1/admin/prices/rerate", json={**asked, "dry_run": False}).json()
    assert {**done, "id": "", "dry_run": True} == {**foreseen, "id": ""}
    again = client.post("/v1/admin/prices/rerate", json={**asked, "dry_run": False}).json()
    assert (again["num_calls"], again["num_adjusted"], again["difference"]["value"]) == (3, 0, "0.000000000000")


def test_a_cheaper_price_is_a_negative_difference(client, state):
    now = int(time.time())
    for meter in ("input", "output"):
        client.post("/v1/admin/prices", json={**INPUT, "meter": meter, "effective_from": now - 60})
    ledger = Ledger(state.database, "b", time.time)
    ledger.reserve(
        Reservation(
            event_id="req_1:1",
            request_id="req_1",
            operation=Operation.CHAT,
            principal=Principal("default", "u1", "k1", Role.MEMBER),
            endpoint="/v1/ask",
            model="m1",
            tokenizer_revision="r1",
            input_tokens=20,
            components=Components(question=20),
        )
    )
    ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, cached_tokens=20))
    client.post(
        "/v1/admin/prices",
        json={"model": "m1", "meter": "cached_input", "price_per_million": "0.05", "effective_from": now - 60},
    )

    asked = {"start_time": now - 60, "end_time": now + 3600, "reason": "discount"}
    assert client.post("/v1/admin/prices/rerate", json=asked).json()["difference"]["value"] == "-0.000002000000"


NO_RERATINGS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"start_time": -1}, "start_time"),
    ({"start_time": "0"}, "start_time"),
    ({"end_time": 0}, "end_time"),
    ({"end_time": 10**18}, "end_time"),
    ({"reason": ""}, "reason"),
    ({"reason": " "}, "reason"),
    ({"dry_run": "false"}, "dry_run"),
    ({"dryrun": False}, "dryrun"),
)


def test_a_rerating_that_cannot_be_is_422_and_names_its_field(client):
    for field, named in NO_RERATINGS:
        response = client.post("/v1/admin/prices/rerate", json={"start_time": 0, "end_time": 1, "reason": "x", **field})
        assert (response.status_code, response.json()["param"]) == (422, named), field
