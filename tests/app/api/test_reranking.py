"""The `rerank` field of search and ask: what it does, what it costs, and where it is refused."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
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
from tests.retrieval.fakes import ranked

TEXTS = ("revenue rose", "revenue fell at last", "costs")


class LongestFirst:
    """Implements `Reranker`: the longer a passage, the better; a word is a token."""

    model = "longest"
    revision = "1"

    def count_tokens(self, query: str, passages: Sequence[str]) -> int:
        return sum(len(query.split()) + len(passage.split()) for passage in passages)

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        return [len(passage) / 100 for passage in passages]


@pytest.fixture
def serve(state: State) -> Iterator[Callable[..., TestClient]]:
    with ExitStack() as clients:

        def start(*, reranker: LongestFirst | None) -> TestClient:
            models = stations(
                state,
                ScriptedEngine(""),
                tokenizer=CharacterTokenizer(),
                embedder=cast(Embedder, CountingEmbedder()),
                search=cast(Search, FixedSearch(tuple(ranked(*TEXTS)))),
                reranker=reranker,
                limits=ANY_EVIDENCE,
            )
            return clients.enter_context(client_of(state_with(state, models=models)))

        yield start


def search(client: TestClient, **fields: Any) -> Any:
    return client.post("/v1/search", json={"query": "revenue", **fields})


def ask(client: TestClient, **fields: Any) -> Any:
    return client.post("/v1/ask", json={"question": "revenue?", "dry_run": True, **fields})


def assert_usage(usage: dict[str, Any], *, embedding: int, rerank: int) -> None:
    assert (usage["embedding_tokens"], usage["rerank_tokens"]) == (embedding, rerank)
    assert usage["total_tokens"] == embedding + rerank
    calls = {call["purpose"]: (call["model"], call["prompt_tokens"]) for call in usage["calls"]}
    ranked = {"rerank": ("longest", rerank)} if rerank else {}
    assert calls == {"embed_query": ("counting", embedding), **ranked}


@pytest.mark.parametrize("fields", [{}, {"rerank": True}, {"rerank": None}])
def test_where_there_is_a_reranker_it_orders_the_hits_and_shows_its_scores_and_tokens(
    serve: Callable[..., TestClient], fields: dict[str, object]
) -> None:
    body = search(serve(reranker=LongestFirst()), **fields).json()

    assert [hit["text"] for hit in body["data"]] == ["revenue fell at last", "revenue rose", "costs"]
    assert [hit["scores"]["rerank"] for hit in body["data"]] == [0.2, 0.12, 0.05]
    assert_usage(body["usage"], embedding=len("revenue"), rerank=3 + 7)


@pytest.mark.parametrize(
    ("reranker", "fields"), [(None, {}), (None, {"rerank": False}), (LongestFirst(), {"rerank": False})]
)
def test_without_one_or_by_request_the_searchs_order_stands(
    serve: Callable[..., TestClient], reranker: LongestFirst | None, fields: dict[str, object]
) -> None:
    body = search(serve(reranker=reranker), **fields).json()

    assert [hit["text"] for hit in body["data"]] == list(TEXTS)
    assert {hit["scores"]["rerank"] for hit in body["data"]} == {None}
    assert_usage(body["usage"], embedding=len("revenue"), rerank=0)


@pytest.mark.parametrize("send", [search, ask])
def test_insisting_where_there_is_none_is_a_problem_that_names_the_field(
    serve: Callable[..., TestClient], send: Callable[..., Any]
) -> None:
    response = send(serve(reranker=None), rerank=True)

    assert response.status_code == 422
    problem = response.json()
    assert (problem["type"], problem["param"]) == ("urn:footnote:problem:invalid-request", "rerank")
    assert "FOOTNOTE_RERANKER" in problem["detail"]


def test_an_answers_bill_and_timings_show_the_reranking(serve: Callable[..., TestClient]) -> None:
    client = serve(reranker=LongestFirst())

    with_it, without = ask(client).json(), ask(client, rerank=False).json()

    assert with_it["usage"]["auxiliary"] == [
        {"purpose": "embed_query", "tokens": len("revenue?")},
        {"purpose": "rerank", "tokens": 3 + 7},
    ]
    assert without["usage"]["auxiliary"] == [], "its vector is cached"
    assert with_it["timings_ms"]["rerank"] > 0
    assert without["timings_ms"]["rerank"] == 0
