"""Requests over HTTP as the ledger knows them: their sums equal their calls, and nobody else's are told."""

from typing import Any

from fastapi.testclient import TestClient

from app.api.schemas.requests import LedgerRequestBody, WholeRequestBody
from app.api.schemas.shape import Page
from app.db.answer_citations import AnswerCitationRepository, AnswerOutcome, AnswerResult
from app.db.tables.usage_columns import Measures
from app.server.state import State
from app.types import Principal, Role, Settlement, UsageStatus
from tests.app.api.test_cost import QUESTION, client
from tests.app.usage.samples import reservation

__all__ = ["client"]

REQUESTS = "/v1/admin/requests"
ADMIN = Principal("default", "root", "key_root", Role.ADMIN)


def settle(state: State, event_id: str, *, tenant_id: str = "default", **reserved: Any) -> None:
    state.usage.ledger.reserve(reservation(event_id, tenant_id=tenant_id, **reserved))
    state.usage.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=7, delivered_tokens=5))


def listed(client: TestClient, **params: Any) -> Any:
    answer = client.get(REQUESTS, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_asked_question_is_listed_with_the_sums_of_its_bill(client: TestClient) -> None:
    asked = client.post("/v1/ask", json={**QUESTION, "conversation_id": None}).json()
    page = listed(client)
    whole = client.get(f"{REQUESTS}/{asked['id']}").json()

    (found,) = Page[LedgerRequestBody].model_validate(page).data
    WholeRequestBody.model_validate(whole)
    assert (found.id, found.endpoint) == (asked["id"], "ask")
    assert found.total_tokens == asked["usage"]["total_tokens"] > 0
    assert found.num_model_requests == len(asked["usage"]["calls"]) == len(whole["calls"])
    assert {name: whole[name] for name in page["data"][0]} == page["data"][0]
    assert sum(call["input_tokens"] for call in whole["calls"]) == found.input_tokens
    assert {call["request_id"] for call in whole["calls"]} == {asked["id"]}


def test_later_adjustments_count_and_what_is_only_reserved_does_not(client: TestClient, state: State) -> None:
    state.usage.prices.add(ADMIN, model="m1", meter="input", price_per_million="2", source="contract")
    state.usage.prices.add(ADMIN, model="m1", meter="output", price_per_million="10", source="contract")
    settle(state, "req_1:1")
    state.usage.ledger.reserve(reservation("req_1:2", tenant_id="default"))
    state.usage.adjustments.correct(ADMIN, "req_1:1", Measures(output_tokens=-2), reason="counted twice")

    (found,) = listed(client)["data"]

    assert (found["num_model_requests"], found["num_unsettled"]) == (1, 1)
    assert (found["input_tokens"], found["output_tokens"], found["total_tokens"]) == (20, 5, 25)
    assert found["cost"] == {"value": "0.000090000000", "currency": "usd"}
    assert [call["output_tokens"] for call in client.get(f"{REQUESTS}/req_1").json()["calls"]] == [7, -2]


def test_pages_go_back_in_time_and_filters_choose(client: TestClient, state: State) -> None:
    for number, user in enumerate(("ada", "bob", "ada", "cay", "ada")):
        settle(state, f"req_{number}:1", user_id=user, model=f"m{number}")
    outcomes = AnswerCitationRepository(state.database)
    for number, result in enumerate((AnswerResult.ANSWERED, AnswerResult.REFUSED)):
        ended = AnswerOutcome(
            request_id=f"req_{number}", tenant_id="default", user_id="ada", endpoint="ask", result=result,
            reason="no_evidence", confirmed=True, total_us=410_000,
        )  # fmt: skip
        outcomes.record(ended.request_id, tenant_id="default", citations={}, outcome=ended)

    found, cursor = [], None
    for expected in (2, 2, 1):
        page = listed(client, limit=2, **({"cursor": cursor} if cursor else {}))
        assert len(page["data"]) == expected
        found += [one["id"] for one in page["data"]]
        cursor = page["next_cursor"]

    assert (cursor, found) == (None, [f"req_{number}" for number in (4, 3, 2, 1, 0)])
    assert [one["id"] for one in listed(client, user_ids="bob,cay")["data"]] == ["req_3", "req_1"]
    (refused,) = listed(client, results="refused")["data"]
    assert (refused["id"], refused["result"], refused["reason"]) == ("req_1", "refused", "no_evidence")
    assert (refused["confirmed"], refused["seconds"]) == (True, 0.41)
    assert listed(client, endpoints="embeddings")["data"] == listed(client, end_time=1)["data"] == []


def test_another_tenants_request_is_not_there(client: TestClient, state: State) -> None:
    settle(state, "req_theirs:1", tenant_id="other")

    assert listed(client)["data"] == []
    answer = client.get(f"{REQUESTS}/req_theirs")
    assert (answer.status_code, answer.json()["title"]) == (404, "Not Found")


def test_what_is_unknown_is_refused_by_name(client: TestClient) -> None:
    for params, param in (
        ({"results": "perfect"}, "results"),
        ({"start_time": 5, "end_time": 5}, "end_time"),
        ({"cursor": "x"}, "cursor"),
        ({"limit": 0}, "limit"),
        ({"user_id": "ada"}, "user_id"),
    ):
        answer = client.get(REQUESTS, params=params)
        assert (answer.status_code, answer.json()["param"]) == (422, param)
