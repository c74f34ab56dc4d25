"""The raw ledger over HTTP: pages of lines, one call with all that belongs to it, and what is refused."""

import time
from typing import Any

from fastapi.testclient import TestClient

from app.api.schemas.shape import Page
from app.api.schemas.usage_events import LineBody, WholeEventBody
from app.db.tables.usage_columns import Measures
from app.server.state import State
from app.types import Components, DocumentShare, Principal, Role, Settlement, UsageStatus
from tests.app.usage.samples import reservation

EVENTS = "/v1/admin/usage/events"
ADMIN = Principal("default", "root", "key_root", Role.ADMIN)


def settle(state: State, event_id: str, **reserved) -> None:
    state.usage.ledger.reserve(reservation(event_id, tenant_id="default", **reserved))
    state.usage.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=7, delivered_tokens=5))


def listed(client: TestClient, **params: Any) -> Any:
    answer = client.get(EVENTS, params={"start_time": 0, **params})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_page_follows_a_page_until_the_end(client, state):
    for number in range(5):
        settle(state, f"req_{number}:1")

    found, cursor = [], None
    for expected in (2, 2, 1):
        page = listed(client, limit=2, **({"cursor": cursor} if cursor else {}))
        assert len(Page[LineBody].model_validate(page).data) == expected
        found += [line["event_id"] for line in page["data"]]
        cursor = page["next_cursor"]

    assert cursor is None
    assert not page["has_more"]
    assert found == [f"req_{number}:1" for number in range(5)]


def test_a_call_is_listed_as_soon_as_it_is_settled_and_in_local_time_too(client, state):
    before = time.time()
    settle(state, "req_1:1")

    (line,) = listed(client, tz="Asia/Kathmandu", start_time=int(before))["data"]

    assert line["settled_at"].endswith("Z")
    assert line["settled_local"].endswith("+05:45")
    assert line["cost"] == {"value": None, "currency": "usd"}
    assert line["components"] == {"system": 3, "history": 4, "context": 6, "question": 5, "template": 2}


def test_filters_choose_and_are_written_in_every_way_clients_write_them(client, state):
    settle(state, "req_1:1", user_id="ada", model="m1")
    settle(state, "req_2:1", user_id="bob", model="m2")
    settle(state, "req_3:1", user_id="cay", model="m2")

    def ids(**params):
        return [line["request_id"] for line in listed(client, **params)["data"]]

    assert ids(user_ids="ada,bob") == ids(**{"user_ids[]": ["ada", "bob"]}) == ["req_1", "req_2"]
    assert ids(models="m2", user_ids=["cay", "ada"]) == ["req_3"]
    assert ids(request_id="req_2") == ["req_2"]
    assert ids(statuses="adjustment") == ids(operations="rerank") == []


def test_a_call_comes_with_its_documents_prices_and_adjustments(client, state):
    state.usage.prices.add(ADMIN, model="m1", meter="input", price_per_million="2", source="contract")
    state.usage.prices.add(ADMIN, model="m1", meter="output", price_per_million="10", source="contract")
    settle(
        state,
        "req_1:1",
        components=Components(template=2, system=3, history=4, question=5, context=6),
        documents=[DocumentShare("doc_1", 1, 4), DocumentShare("doc_2", 1, 2)],
    )
    corrected = state.usage.adjustments.correct(ADMIN, "req_1:1", Measures(output_tokens=-2), reason="counted twice")

    found = client.get(f"{EVENTS}/req_1:1").json()

    WholeEventBody.model_validate(found)
    assert found["documents"] == [
        {"document_id": "doc_1", "chunks": 1, "tokens": 4},
        {"document_id": "doc_2", "chunks": 1, "tokens": 2},
    ]
    assert sum(one["tokens"] for one in found["documents"]) == found["components"]["context"]
    assert {one["meter"]: one["cost_per_token"]["value"] for one in found["prices"]} == {
        "input": "0.000002000000",
        "output": "0.000010000000",
    }
    assert found["cost"]["value"] == "0.000110000000"  # 20 read, 7 written
    (adjustment,) = found["adjustments"]
    assert (adjustment["adjustment_id"], adjustment["reason"]) == (corrected.adjustment_id, "counted twice")
    assert (adjustment["status"], adjustment["output_tokens"]) == ("adjustment", -2)
    assert adjustment["cost"]["value"] == "-0.000020000000"
    assert found["total_cost"]["value"] == "0.000090000000"
    assert [line["adjustment_id"] for line in listed(client)["data"]] == [None, corrected.adjustment_id]


def test_invalid_query_parameters_are_refused_by_name(client):
    refused: list[tuple[dict[str, Any], str]] = [
        ({"start_time": -1}, "start_time"),
        ({"start_time": 10**18}, "start_time"),
        ({"start_time": 5, "end_time": 5}, "end_time"),
        ({"tz": "Mars/Olympus"}, "tz"),
        ({"limit": 1001}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"statuses": "reserved"}, "statuses"),
        ({"operations": "dream"}, "operations"),
        ({"user_id": "ada"}, "user_id"),
        ({"group_by": "user_id"}, "group_by"),
    ]
    for params, param in refused:
        answer = client.get(EVENTS, params={"start_time": 0, **params})
        assert answer.status_code == 422, params
        assert answer.json()["param"] == param
