"""The `highlights` field of search: which sentences of a passage come nearest to what is looked for."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from retrieval.ports import Embedder
from retrieval.search import Search
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import CountingEmbedder, FixedSearch, ScriptedEngine
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.retrieval.fakes import chunk, hit

HITS = (
    hit(chunk(1, "Costs fell 🚢. Revenue rose by a third. Nobody was surprised.", start_char=700)),
    hit(chunk(2, "The harbour is quiet.", document_id="doc_2")),
)


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    models = stations(
        state,
        ScriptedEngine(""),
        tokenizer=CharacterTokenizer(),
        embedder=cast(Embedder, CountingEmbedder()),
        search=cast(Search, FixedSearch(HITS)),
        limits=ANY_EVIDENCE,
    )
    with client_of(state_with(state, models=models)) as client:
        yield client


def search(client: TestClient, **fields: Any) -> Any:
    return client.post("/v1/search", json={"query": "How did revenue develop?", **fields})


def test_highlight_offsets_slice_the_canonical_text(client: TestClient) -> None:
    first, second = search(client, highlights=True).json()["data"]

    (found,) = first["highlights"]
    start, end = found["start_char"] - first["start_char"], found["end_char"] - first["start_char"]
    assert first["text"][start:end] == "Revenue rose by a third."
    assert second["highlights"] == []


def test_highlights_are_empty_unless_requested(client: TestClient) -> None:
    for fields in ({}, {"highlights": False}):
        assert [one["highlights"] for one in search(client, **fields).json()["data"]] == [[], []]


def test_a_highlights_value_that_is_not_a_boolean_is_422(client: TestClient) -> None:
    response = search(client, highlights="perhaps")

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "highlights"
