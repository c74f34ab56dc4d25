"""The administrator's overview over HTTP: outcomes of real answers, its lists, its files, and who may read them."""

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from app.answering.closing import CitationRecord
from app.db.answer_citations import AnswerCitationRepository
from app.errors import StoreUnavailable
from app.server.state import State
from app.types import Role
from app.usage.overview.tables import EXPENSIVE, OVERVIEW, PEOPLE, UNANSWERED, UNUSED
from generation.types import FinishReason
from tests.app.api.conversing import TalkingEngine
from tests.app.api.credentials import key_of
from tests.app.api.test_answer_citations import ASK, CHAT, QUESTION, SAYS, Serve, Served
from tests.app.usage.reports.test_documents_report import add_documents

OVERVIEW_PATH = "/v1/admin/overview"
LISTS = {
    OVERVIEW_PATH: OVERVIEW,
    f"{OVERVIEW_PATH}/unanswered": UNANSWERED,
    f"{OVERVIEW_PATH}/unused-documents": UNUSED,
    f"{OVERVIEW_PATH}/expensive": EXPENSIVE,
    f"{OVERVIEW_PATH}/people": PEOPLE,
}
RANGE: dict[str, Any] = {"start_time": 0, "bucket_width": "1mo"}


@pytest.fixture
def serve(state: State) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(
            *, engine: TalkingEngine | None = None, record: CitationRecord | None = None, quotes: bool = False
        ) -> Served:
            served = Served(
                state,
                engine=engine or TalkingEngine(says=SAYS),
                record=record or AnswerCitationRepository(state.database, clock=state.usage.ledger.seconds),
                quotes=quotes,
            )
            stack.enter_context(served.client)
            return served

        yield start


def read(served: Served, path: str, **params: Any) -> dict[str, Any]:
    start = {} if path.endswith("unused-documents") else {"start_time": now(served) - 86_400}
    response = served.client.get(path, params={**start, **params})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def now(served: Served) -> int:
    return int(served.client.get("/v1/usage").json()["as_of"])


def total(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = read(served, OVERVIEW_PATH)["total"]
    return found


def counts(served: Served) -> dict[str, int]:
    names = ("questions", "answered", "unsure", "refused", "failed", "cancelled", "unknown", "confirmed")
    found = total(served)
    return {name: found[f"num_{name}"] for name in names if found[f"num_{name}"]}


WAYS: dict[str, tuple[str, Mapping[str, object]]] = {
    "ask": ("/v1/ask", ASK),
    "ask, streamed": ("/v1/ask", {**ASK, "stream": True}),
    "chat": ("/v1/chat/completions", CHAT),
    "chat, streamed": ("/v1/chat/completions", {**CHAT, "stream": True}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_ask_counts_once_as_answered_and_confirmed(serve: Serve, way: str) -> None:
    served = serve()

    served.post(*WAYS[way])

    found = total(served)
    assert counts(served) == {"questions": 1, "answered": 1, "confirmed": 1}
    assert found["confirmed_share"] == 1.0
    assert found["num_active_users"] == 1
    assert found["median_seconds"] == found["p95_seconds"] > 0
    assert found["input_tokens"] > 0


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("I don't know.", {"questions": 1, "refused": 1}),
        ("The moon is made of green cheese and honey.", {"questions": 1, "answered": 1}),
    ],
)
def test_refusals_and_unconfirmed_answers_are_told_apart(serve: Serve, says: str, expected: dict[str, int]) -> None:
    served = serve(engine=TalkingEngine(says=says))

    served.post("/v1/ask", ASK)

    assert counts(served) == expected


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [(FinishReason.ERROR, "failed"), (FinishReason.DEADLINE, "failed"), (FinishReason.CANCELLED, "cancelled")],
)
def test_answers_that_did_not_end_well_have_their_outcome(serve: Serve, reason: FinishReason, outcome: str) -> None:
    served = serve(engine=TalkingEngine(says=SAYS, reason=reason))

    served.client.post("/v1/ask", json={**ASK, "stream": True})

    assert counts(served) == {"questions": 1, outcome: 1}


def test_a_dry_run_and_a_request_with_a_fault_are_no_questions(serve: Serve) -> None:
    served = serve()

    served.post("/v1/ask", {**ASK, "dry_run": True})
    assert served.client.post("/v1/ask", json={**ASK, "conversation_id": "conv_none"}).status_code == 404

    assert counts(served) == {}


def test_a_choice_of_answers_is_one_question(serve: Serve) -> None:
    served = serve()

    served.post("/v1/chat/completions", {**CHAT, "n": 3})

    assert counts(served)["questions"] == 1


def test_feedback_is_counted(serve: Serve) -> None:
    served = serve()
    for score in (1, -1, -1):
        request_id = served.client.post("/v1/ask", json=ASK).json()["id"]
        served.client.post(f"/v1/requests/{request_id}/feedback", json={"score": score})

    found = total(served)

    assert (found["num_thumbs_up"], found["num_thumbs_down"]) == (1, 2)


def test_the_lists_name_what_was_not_answered_and_what_was_expensive(serve: Serve, state: State) -> None:
    served = serve(engine=TalkingEngine(says="I don't know."))
    conversation = served.client.post("/v1/conversations", json={}).json()["id"]
    served.post("/v1/ask", {**ASK, "conversation_id": conversation})
    served.post("/v1/ask", ASK)  # outside of a conversation: its text is not kept

    topics = read(served, f"{OVERVIEW_PATH}/unanswered")
    expensive = read(served, f"{OVERVIEW_PATH}/expensive")
    people = read(served, f"{OVERVIEW_PATH}/people")

    assert (topics["num_questions"], topics["num_without_text"], topics["num_topics"]) == (2, 1, 1)
    (topic,) = topics["data"]
    assert "light" in topic["words"]
    assert topic["num_refused"] == 1
    assert topic["examples"][0]["question"] == QUESTION
    assert topic["examples"][0]["conversation_id"] == conversation
    assert read(served, f"{OVERVIEW_PATH}/unanswered", result="unsure")["data"] == []
    assert {one["question"] for one in expensive["data"]} == {QUESTION, None}
    for one in expensive["data"]:
        assert f"{one['context_tokens']:,} tokens of sources were read" in one["why"]
        assert f"below {one['context_tokens']:,}" in one["how_to_lower"]
        assert sum(document["tokens"] for document in one["documents"]) == one["context_tokens"]
        assert sum(part["input_tokens"] for part in one["parts"]) == one["input_tokens"]
    (person,) = people["data"]
    assert person["num_questions"] == 2
    assert person["share"] == 1.0
    assert person["answers_tokens"] == person["input_tokens"] + person["output_tokens"]


def test_documents_that_are_never_cited_are_listed_with_their_size(serve: Serve, state: State) -> None:
    served = serve()
    add_documents(state.database, "acme", ["d1", "d2", "d3"])
    citations = AnswerCitationRepository(state.database, clock=lambda: 1_763_600_000.0)
    citations.record("req_1", tenant_id="acme", citations={"d2": 1})
    headers = key_of(state, Role.ADMIN, tenant="acme")

    def listed(**params: Any) -> list[str]:
        found = served.client.get(f"{OVERVIEW_PATH}/unused-documents", params=params, headers=headers).json()
        return [one["document_id"] for one in found["data"]]

    assert listed() == ["d1", "d3"]
    assert listed(since=1_763_600_000) == ["d1", "d3"]
    assert listed(since=1_763_600_001) == ["d1", "d2", "d3"]
    first = served.client.get(f"{OVERVIEW_PATH}/unused-documents", params={"limit": 1}, headers=headers).json()
    assert (first["data"][0]["bytes"], first["data"][0]["embedding_tokens"], first["has_more"]) == (1, 1, True)
    assert listed(limit=1, page=first["next_page"]) == ["d3"]


@pytest.mark.parametrize("path", LISTS)
def test_every_list_is_a_file_with_the_same_rows(serve: Serve, state: State, path: str) -> None:
    served = serve(engine=TalkingEngine(says="I don't know."))
    conversation = served.client.post("/v1/conversations", json={}).json()["id"]
    served.post("/v1/ask", {**ASK, "conversation_id": conversation})
    body = read(served, path)
    params = {} if path.endswith("unused-documents") else {"start_time": now(served) - 86_400}

    response = served.client.get(path, params=params, headers={"Accept": "text/csv"})

    rows = [*csv.DictReader(io.StringIO(response.text))]
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert tuple(csv.reader(io.StringIO(response.text)).__next__()) == LISTS[path].columns
    assert len(rows) == len([*LISTS[path].rows(body)])
    assert served.client.get(path, params={**params, "limit": 1}, headers={"Accept": "text/csv"}).status_code == 422
    lines = served.client.get(path, params=params, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert len(lines) == len(rows)


def test_the_file_of_the_overview_has_every_figure(serve: Serve) -> None:
    served = serve()
    served.post("/v1/ask", ASK)
    start = now(served) - 86_400

    text = served.client.get(OVERVIEW_PATH, params={"start_time": start}, headers={"Accept": "text/csv"}).text
    body = read(served, OVERVIEW_PATH)

    rows = {row["row"]: row for row in csv.DictReader(io.StringIO(text))}
    assert {*rows} == {"bucket", "total", "before", "month", "month expected"}
    for name in ("num_questions", "num_answered", "num_confirmed", "confirmed_share", "input_tokens", "median_seconds"):
        assert float(rows["total"][name]) == float(body["total"][name])
        assert rows["before"][name] in {"0", ""}


@pytest.mark.parametrize("path", LISTS)
def test_only_administrators_read_their_own_tenants_overview(serve: Serve, state: State, path: str) -> None:
    served = serve(engine=TalkingEngine(says="I don't know."))
    conversation = served.client.post("/v1/conversations", json={}).json()["id"]
    served.post("/v1/ask", {**ASK, "conversation_id": conversation})
    params = {} if path.endswith("unused-documents") else {"start_time": now(served) - 86_400}

    for headers in (key_of(state, Role.MEMBER), key_of(state, Role.ADMIN, collections=("c1",))):
        assert served.client.get(path, params=params, headers=headers).status_code == 403
    rival = served.client.get(path, params=params, headers=key_of(state, Role.ADMIN, tenant="rival"))
    assert rival.status_code == 200
    assert QUESTION not in rival.text
    found = rival.json()
    assert found["total"]["num_questions"] == 0 if "total" in found else found["data"] == []


def test_a_misspelt_parameter_is_refused(serve: Serve) -> None:
    served = serve()

    assert served.client.get(OVERVIEW_PATH, params={**RANGE, "widht": "1d"}).status_code == 422
    assert served.client.get(OVERVIEW_PATH, params={"start_time": 0, "bucket_width": "1h"}).status_code == 422


def test_an_outcome_that_cannot_be_written_does_not_keep_the_answer(serve: Serve) -> None:
    class Unwritable:
        def record(self, request_id: str, **_: object) -> None:
            raise StoreUnavailable

        def newer_versions(self, versions: object, *, tenant_id: str) -> dict[str, int]:
            raise StoreUnavailable

    assert "Two ships" in serve(record=Unwritable()).post("/v1/ask", ASK)
