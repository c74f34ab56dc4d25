"""The usage routes, as the `openai` package's own types read them."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from openai.types.admin.organization import UsageCompletionsResponse, UsageCostsResponse, UsageEmbeddingsResponse
from pydantic import BaseModel

from app.api.schemas.usage import (
    CompletionsResult,
    CostsResult,
    DocumentsPage,
    EmbeddingsResult,
    JudgeResult,
    ReportPage,
    RerankResult,
    UsageResult,
)
from app.db.answer_citations import AnswerCitationRepository
from app.server.state import State
from app.types import Components, DocumentShare, Operation, Principal, Reservation, Role, Settlement, UsageStatus

ROUTES: dict[str, type[BaseModel]] = {
    "/v1/admin/usage": ReportPage[UsageResult],
    "/v1/admin/usage/completions": ReportPage[CompletionsResult],
    "/v1/admin/usage/embeddings": ReportPage[EmbeddingsResult],
    "/v1/admin/usage/rerank": ReportPage[RerankResult],
    "/v1/admin/usage/judge": ReportPage[JudgeResult],
    "/v1/admin/costs": ReportPage[CostsResult],
    "/v1/admin/usage/documents": DocumentsPage,
}

Spend = Callable[..., None]


@pytest.fixture
def spend(state: State) -> Spend:
    """Writes one settled call."""

    def write(
        event_id: str, *, user_id: str = "u1", operation: Operation = Operation.CHAT, collection: str = ""
    ) -> None:
        components = Components(2, 3, 4, 5, 6) if operation.generates else Components()
        state.usage.ledger.reserve(
            Reservation(
                event_id=event_id,
                request_id=event_id.partition(":")[0],
                operation=operation,
                principal=Principal("default", user_id, "k1", Role.MEMBER),
                endpoint="/v1/ask",
                model="m1",
                tokenizer_revision="r1",
                input_tokens=components.total or 7,
                max_output_tokens=9 if operation.generates else 0,
                components=components,
                documents=(DocumentShare("d1", 1, 5),) if operation.generates else (),
                collection_ids=(collection,) if collection else (),
            )
        )
        state.usage.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED))

    return write


def results(client: TestClient, path: str, **params: Any) -> list[dict[str, Any]]:
    answer = client.get(
        path, params={"start_time": 0, "bucket_width": "1mo", "limit": 36, "page": last(client), **params}
    )
    assert answer.status_code == 200, answer.text
    ROUTES[path].model_validate(answer.json())
    return [result for bucket in answer.json()["data"] for result in bucket["results"]]


def last(client: TestClient) -> str | None:
    """The page of this month: ranges from the beginning of time have many."""
    start = client.get("/v1/usage").json()["month"]["start_time"]
    return f"page_{start}"


def test_every_report_is_read_by_the_openai_package(client: TestClient, spend: Spend) -> None:
    spend("req_1:1", collection="c1")
    spend("req_1:0", operation=Operation.EMBED_QUERY)
    spend("req_1:2", operation=Operation.RERANK)
    spend("req_1:3", operation=Operation.JUDGE)
    asked: dict[str, Any] = {
        "start_time": 0,
        "bucket_width": "1mo",
        "page": last(client),
        "group_by": "project_id,user_id",
    }

    completions = UsageCompletionsResponse.model_validate(
        client.get("/v1/admin/usage/completions", params=asked).json()
    )
    embeddings = UsageEmbeddingsResponse.model_validate(client.get("/v1/admin/usage/embeddings", params=asked).json())
    costs = UsageCostsResponse.model_validate(client.get("/v1/admin/costs", params=asked).json())

    one: Any = completions.data[-1].results[0]
    assert (one.object, one.input_tokens, one.project_id, one.user_id) == (
        "organization.usage.completions.result",
        20,
        "c1",
        "u1",
    )
    other: Any = embeddings.data[-1].results[0]
    assert (other.object, other.input_tokens, other.num_model_requests) == (
        "organization.usage.embeddings.result",
        7,
        1,
    )
    bill: list[Any] = [*costs.data[-1].results]
    assert [(cost.object, cost.project_id) for cost in bill] == [
        ("organization.costs.result", ""),
        ("organization.costs.result", "c1"),
    ]
    (reranked,) = results(client, "/v1/admin/usage/rerank")
    assert reranked["object"] == "organization.usage.rerank.result"
    (judged,) = results(client, "/v1/admin/usage/judge")
    assert (judged["object"], judged["input_tokens"]) == ("organization.usage.judge.result", 7)


def test_lists_are_repeated_or_written_with_brackets_or_commas(client: TestClient, spend: Spend) -> None:
    for number, user in enumerate(("u1", "u2", "u3")):
        spend(f"req_{number}:1", user_id=user)

    filters: list[dict[str, Any]] = [{"user_ids": ["u1", "u3"]}, {"user_ids[]": ["u1", "u3"]}, {"user_ids": "u1,u3"}]
    for params in filters:
        found = results(client, "/v1/admin/usage/completions", **params, **{"group_by[]": ["user_id", "model"]})
        assert [(one["user_id"], one["model"], one["status"]) for one in found] == [
            ("u1", "m1", None),
            ("u3", "m1", None),
        ]
    assert results(client, "/v1/admin/usage/completions", statuses="error") == []


def test_a_page_says_its_zone_and_its_local_times(client: TestClient) -> None:
    page = client.get(
        "/v1/admin/usage/completions",
        params={"start_time": 1_743_202_800, "end_time": 1_743_375_600, "tz": "Europe/Berlin"},
    ).json()

    assert page["tz"] == "Europe/Berlin"
    assert [bucket["start_local"] for bucket in page["data"]] == [
        "2025-03-29T00:00:00+01:00",
        "2025-03-30T00:00:00+01:00",
        "2025-03-31T00:00:00+02:00",
    ]
    assert [bucket["end_time"] - bucket["start_time"] for bucket in page["data"]] == [86_400, 82_800, 3600]


def test_documents_are_listed_with_what_they_took(client: TestClient, spend: Spend) -> None:
    spend("req_1:1")

    page = client.get("/v1/admin/usage/documents", params={"start_time": 0, "order": "asc", "document_ids[]": "d1"})

    DocumentsPage.model_validate(page.json())
    (one,) = page.json()["data"]
    assert (one["document_id"], one["name"], one["num_retrieved"], one["context_tokens"]) == ("d1", "(deleted)", 1, 5)


@pytest.mark.parametrize("accept", ["application/json", "text/csv", "application/x-ndjson"])
def test_documents_that_no_answer_cites_can_be_asked_for(
    client: TestClient, state: State, spend: Spend, accept: str
) -> None:
    spend("req_1:1")
    citations = AnswerCitationRepository(state.database, clock=state.usage.ledger.seconds)
    citations.record("req_2", tenant_id="default", citations={"d2": 3})

    def found(cited: str) -> list[tuple[str, int, int]]:
        params: dict[str, Any] = {"start_time": 0, "cited": cited}
        answer = client.get("/v1/admin/usage/documents", params=params, headers={"Accept": accept})
        assert answer.status_code == 200, answer.text
        match accept:
            case "application/json":
                rows = DocumentsPage.model_validate(answer.json()).model_dump()["data"]
            case "text/csv":
                rows = [*csv.DictReader(io.StringIO(answer.text))]
            case _:
                rows = [json.loads(line) for line in answer.text.splitlines()]
        return [(row["document_id"], int(row["num_cited"]), int(row["num_citations"])) for row in rows]

    assert found("true") == [("d2", 1, 3)]
    assert found("false") == [("d1", 0, 0)]


def test_documents_are_cited_or_not_and_nothing_else(client: TestClient) -> None:
    answer = client.get("/v1/admin/usage/documents", params={"start_time": 0, "cited": "rarely"})

    assert answer.status_code == 422
    assert "cited" in answer.text


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"start_time": 5, "end_time": 5}, "end_time"),
        ({"start_time": 5, "colour": "red"}, "colour"),
        ({"start_time": 5, "limit[]": "3"}, "limit[]"),
        ({"start_time": 5, "page": "page_7"}, "page"),
        ({"start_time": 5, "limit": 0}, "limit"),
    ],
)
def test_what_cannot_be_asked_is_a_422_that_names_it(
    client: TestClient, path: str, params: dict[str, Any], param: str
) -> None:
    answer = client.get(path, params=params)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert param in answer.text


@pytest.mark.parametrize("params", [{"tz": "Mars/Olympus"}, {"group_by": "colour"}, {"group_by": "line_item"}])
def test_zones_and_dimensions_there_are_not_are_refused(client: TestClient, params: dict[str, str]) -> None:
    answer = client.get("/v1/admin/usage/completions", params={"start_time": 5, "end_time": 9, **params})

    assert answer.status_code == 422


def test_a_rebuild_changes_nothing_and_is_written_down(client: TestClient, state: State, spend: Spend) -> None:
    spend("req_1:1")
    before = results(client, "/v1/admin/usage/completions", group_by="user_id")
    today = client.get("/v1/usage").json()["today"]["start_time"]

    answer = client.post("/v1/admin/usage/rebuild", json={"start_time": today, "end_time": today + 86_400})

    assert answer.status_code == 200
    assert answer.json() == {
        "object": "usage.rebuild",
        "start_time": today,
        "end_time": today + 86_400,
        "days": 1,
    }
    assert results(client, "/v1/admin/usage/completions", group_by="user_id") == before
    (entry,), _ = state.access.audit.list(tenant_id="default", action="usage.rebuilt", limit=5)
    assert entry.detail == {"start_time": today, "end_time": today + 86_400, "days": 1}
    assert entry.request_id == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    "body", [{"start_time": 0, "end_time": 10**8}, {"start_time": 0}, {"start_time": 1, "end_time": 2, "all": 1}]
)
def test_a_rebuild_of_too_much_or_of_nothing_known_is_refused(client: TestClient, body: dict[str, int]) -> None:
    assert client.post("/v1/admin/usage/rebuild", json=body).status_code == 422
