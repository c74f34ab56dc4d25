"""The reported cost of an answer equals the cost of its request's ledger rows."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from retrieval.ports import Embedder
from retrieval.search import Search
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.bills import answering
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import CountingEmbedder, FixedSearch, ScriptedEngine
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.retrieval.fakes import ranked

QUESTION = {"question": "How many ships?"}


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    models = stations(
        state,
        ScriptedEngine("Two ships [1]."),
        tokenizer=CharacterTokenizer(),
        embedder=cast(Embedder, CountingEmbedder()),
        search=cast(Search, FixedSearch(tuple(ranked("Two ships passed.", "No ship was seen.")))),
        limits=ANY_EVIDENCE,
    )
    with client_of(state_with(state, models=models)) as client:
        yield client


def lines(client: TestClient, request_id: str) -> list[dict[str, Any]]:
    params: dict[str, str | int] = {"start_time": 0, "request_id": request_id}
    found: list[dict[str, Any]] = client.get("/v1/admin/usage/events", params=params).json()["data"]
    return found


def price(client: TestClient, model: object, meter: str, per_million: str) -> None:
    body = {"model": model, "meter": meter, "price_per_million": per_million}
    assert client.post("/v1/admin/prices", json=body).status_code == 201


def test_without_prices_nothing_is_said_to_cost_nothing(client: TestClient) -> None:
    answer = client.post("/v1/ask", json=QUESTION).json()

    assert answer["usage"]["cost"] == {"value": None, "currency": "usd"}
    assert answer["usage"]["num_unpriced"] == len(lines(client, answer["id"])) > 0
    read = client.get("/v1/admin/usage/documents", params={"start_time": 0}).json()["data"]
    assert {(one["context_cost"]["value"], one["cost"]["value"]) for one in read if one["num_retrieved"]} == {
        (None, None)
    }


def test_the_cost_is_that_of_the_rows_and_says_how_many_are_not_in_it(client: TestClient) -> None:
    before = lines(client, client.post("/v1/ask", json=QUESTION).json()["id"])
    generator = next(line["model"] for line in before if line["operation"] == "chat")
    price(client, generator, "input", "0.25")
    price(client, generator, "output", "1.000001")

    usage = client.post("/v1/ask", json={"question": "And costs?"}).json()["usage"]  # no vector is cached for it

    written = answering(usage)
    cost = written["prompt_tokens"] * Decimal("0.25") + written["completion_tokens"] * Decimal("1.000001")
    assert Decimal(usage["cost"]["value"]) == cost / 10**6 > 0
    assert usage["num_unpriced"] == len(before) - 1


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/chat/completions"])
def test_every_way_to_ask_tells_the_same_cost(client: TestClient, path: str) -> None:
    before = lines(client, client.post("/v1/ask", json=QUESTION).json()["id"])
    for line in before:
        if line["operation"] == "chat":
            price(client, line["model"], "input", "3")
            price(client, line["model"], "output", "3")
        else:
            price(client, line["model"], "embedding", "1")
    chat = {"model": "footnote", "messages": [{"role": "user", "content": QUESTION["question"]}]}

    response = client.post(path, json=QUESTION if path == "/v1/ask" else chat)

    usage = response.json()["usage"]
    rows = lines(client, response.headers["X-Request-Id"])
    assert usage["num_unpriced"] == 0
    total = sum((Decimal(row["cost"]["value"]) for row in rows), Decimal())
    assert Decimal(usage["cost"]["value"]) == total > 0
