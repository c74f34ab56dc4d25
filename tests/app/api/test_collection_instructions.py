"""Collections say how a language model is to word answers from them."""

import pytest
from fastapi.testclient import TestClient

from app.api.collections import MOST_INSTRUCTIONS


def test_instructions_are_kept_shown_and_changed(client: TestClient) -> None:
    made = client.post("/v1/collections", json={"name": "contracts", "instructions": "Answer in two sentences."}).json()
    path = f"/v1/collections/{made['id']}"

    assert client.get(path).json()["instructions"] == made["instructions"] == "Answer in two sentences."
    client.patch(path, json={"name": "agreements"}).raise_for_status()
    assert client.get(path).json()["instructions"] == "Answer in two sentences."
    assert client.patch(path, json={"instructions": ""}).json()["instructions"] == ""
    assert client.post("/v1/collections", json={"name": "letters"}).json()["instructions"] == ""


@pytest.mark.parametrize("instructions", ["a" * (MOST_INSTRUCTIONS + 1), "a\0b", 7])
def test_instructions_that_cannot_be_kept_are_422(client: TestClient, instructions: object) -> None:
    refused = client.post("/v1/collections", json={"name": "contracts", "instructions": instructions})

    assert refused.status_code == 422
