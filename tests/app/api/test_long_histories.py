"""A long history in a chat request costs little, and keeps nobody else waiting."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from tests.app.api.test_extractive import QUESTION, ask, hits, served

DEADLINE_S = 5


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    with served(state, found=hits()) as client:
        yield client


def chat(client: TestClient, said: str, asked: str) -> Any:
    turns = [("user", said), ("assistant", said), ("user", asked)]
    body = {"model": "footnote", "messages": [{"role": role, "content": text} for role, text in turns]}
    return client.post("/v1/chat/completions", json=body, headers={"Request-Timeout": str(DEADLINE_S)})


@pytest.mark.parametrize("piece", ["Alpha. ", "in Alpha ", "It. ", "[ 1 ", " \t"])
def test_a_history_of_10_000_characters_is_answered_before_the_deadline(client: TestClient, piece: str) -> None:
    started = time.monotonic()
    response = chat(client, (piece * 10_000)[:10_000], "When did it open?")

    assert response.status_code == 200, response.text
    assert time.monotonic() - started < DEADLINE_S


def test_others_are_answered_while_long_histories_are_read(client: TestClient) -> None:
    with ThreadPoolExecutor(4) as clients:
        started = time.monotonic()
        long = [clients.submit(chat, client, "Alpha. " * 1_428, "When did it open?") for _ in range(4)]
        body = ask(client, QUESTION)
        answered_s = time.monotonic() - started

    assert body["answered"]
    assert answered_s < DEADLINE_S
    assert [chat.result().status_code for chat in long] == [200] * 4
