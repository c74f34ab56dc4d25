"""Prices that are missing, and prices that change, named after their case."""

import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from app.types import Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from tests.app.api.bills import answering
from tests.app.api.conftest import client_of
from tests.app.evaluation.application import application
from tests.app.usage.samples import reservation

MODEL = "scripted"
HOUR = 3600


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with application(tmp_path / "data") as state:
        yield state


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    with client_of(state) as client:
        yield client


def ask(client: TestClient) -> dict[str, Any]:
    """An answer the model was asked for; its document is uploaded with the first."""
    text = "The keeper of the lighthouse counted forty ships."
    client.post("/v1/documents", json={"text": text, "filename": "log.txt", "wait": 30})
    response = client.post("/v1/ask", json={"question": "How many ships did the keeper count?"})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert body["usage"]["completion_tokens"] > 0
    return body


def price(client: TestClient, meter: str, amount: str, *, since: int | None = None) -> dict[str, Any]:
    body = {"model": MODEL, "meter": meter, "price_per_million": amount, "effective_from": since}
    response = client.post("/v1/admin/prices", json=body)
    assert response.status_code == 201, response.text
    added: dict[str, Any] = response.json()
    return added


def total(client: TestClient) -> dict[str, Any]:
    """What all completions of the last hour sum to."""
    now = int(time.time())
    params: dict[str, Any] = {"start_time": now - HOUR, "end_time": now + HOUR, "bucket_width": "1d"}
    page = client.get("/v1/admin/usage/completions", params=params).json()
    results = [result for bucket in page["data"] for result in bucket["results"]]  # two around midnight
    counts = {name: sum(result[name] for result in results) for name in ("num_model_requests", "num_unpriced")}
    return {**counts, "cost": sum(Decimal(result["cost"]["value"] or 0) for result in results)}


def chat_cost(state: State, request_id: str) -> int | None:
    """The one completion's cost."""
    (event,) = [event for event in state.usage.ledger.usage(request_id) if event.operation.generates]
    return event.cost_pico


def generated(answer: dict[str, Any]) -> int:
    """The tokens of the answering call."""
    written = answering(answer["usage"])
    return int(written["prompt_tokens"] + written["completion_tokens"])


def rerate(client: TestClient, *, dry_run: bool) -> dict[str, Any]:
    now = int(time.time())
    body = {"start_time": now - HOUR, "end_time": now + HOUR, "reason": "prices came late", "dry_run": dry_run}
    response = client.post("/v1/admin/prices/rerate", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_f2_a_call_whose_model_has_no_price_is_made_and_counted_as_unpriced(client: TestClient, state: State) -> None:
    answer = ask(client)

    assert chat_cost(state, answer["id"]) is None, "never 0"
    assert answer["usage"]["cost"]["value"] is None
    report = total(client)
    assert (report["num_model_requests"], report["num_unpriced"]) == (1, 1)
    assert report["cost"] == 0, "what the priced calls cost"


def test_f2_a_price_for_only_one_of_its_meters_leaves_a_call_unpriced(client: TestClient, state: State) -> None:
    price(client, "input", "1")

    assert chat_cost(state, ask(client)["id"]) is None


def test_f2_a_price_that_comes_later_is_charged_by_adjustment_and_only_when_asked(
    client: TestClient, state: State
) -> None:
    answer = ask(client)
    since = int(time.time()) - HOUR
    price(client, "input", "1", since=since)
    price(client, "output", "2", since=since)
    assert chat_cost(state, answer["id"]) is None
    written = answering(answer["usage"])
    due = written["prompt_tokens"] * 10**6 + written["completion_tokens"] * 2 * 10**6

    foreseen = rerate(client, dry_run=True)
    assert total(client)["num_unpriced"] == 1
    done = rerate(client, dry_run=False)
    again = rerate(client, dry_run=False)

    (model,) = [model for model in done["models"] if model["model"] == MODEL]
    assert (model["num_adjusted"], model["num_newly_priced"]) == (1, 1)
    assert model["difference"]["value"] == f"{due // 10**12}.{due % 10**12:012d}"
    assert foreseen["models"] == done["models"]
    assert again["num_adjusted"] == 0
    assert chat_cost(state, answer["id"]) is None, "the row stays"
    report = total(client)
    assert (report["num_unpriced"], report["num_model_requests"]) == (1, 1), "the past stays counted as it was"
    assert report["cost"] == Decimal(model["difference"]["value"])


def test_f3_a_price_that_changes_while_a_call_runs_is_not_its_price(client: TestClient, state: State) -> None:
    before = price(client, "input", "1")
    price(client, "output", "2")
    ledger = Ledger(state.database, "b", time.time)
    ledger.reserve(reservation(model=MODEL, tenant_id="default"))
    after = price(client, "input", "500")
    price(client, "output", "500")
    ledger.settle("req_1:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=3))

    (event,) = ledger.usage("req_1")
    assert event.cost_pico == 20 * 1_000_000 + 3 * 2_000_000
    with state.database.read() as connection:
        noted = connection.exec_driver_sql("SELECT price_ids FROM usage_event WHERE event_id = 'req_1:1'").scalar_one()
    assert before["id"] in json.loads(noted)
    assert after["id"] not in json.loads(noted)
    assert rerate(client, dry_run=False)["num_adjusted"] == 0, "it has the price of its moment"


def test_f3_history_stays_when_a_price_changes_afterwards(client: TestClient, state: State) -> None:
    price(client, "input", "1")
    price(client, "output", "1")
    first = ask(client)
    tokens = generated(first)
    assert chat_cost(state, first["id"]) == tokens * 10**6
    price(client, "input", "3")
    price(client, "output", "3")
    second = ask(client)

    assert chat_cost(state, second["id"]) == generated(second) * 3 * 10**6
    assert chat_cost(state, first["id"]) == tokens * 10**6
    assert rerate(client, dry_run=False)["num_adjusted"] == 0
    begun = client.get("/v1/admin/prices", params={"model": MODEL}).json()["data"][0]["effective_from"]
    body = {"model": MODEL, "meter": "input", "price_per_million": "9", "effective_from": begun}
    refusal = client.post("/v1/admin/prices", json=body)
    assert refusal.status_code == 409, "nobody gives the past another price"
