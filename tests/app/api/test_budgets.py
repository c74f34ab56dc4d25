"""Budgets over HTTP: set, seen, changed by administrators, and met by callers as 429."""

import csv
import io
from dataclasses import replace
from typing import cast

import pytest
from fastapi.testclient import TestClient

from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.api.errors import problem_of
from app.errors import BudgetExceeded
from app.models.extractive import NoEngine
from app.server.state import State
from app.types import Settlement, UsageStatus
from app.usage.budgets.budgets import Budgets
from app.usage.ledger.ledger import Ledger
from app.usage.reports.instants import rfc3339_seconds
from retrieval.search import Search
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch
from tests.app.api.test_extractive import QUESTION, hits
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.app.usage.samples import reservation
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import HashingEmbedder

DAY = {"limit": 1000, "period": "day"}


def make(client: TestClient, **fields: object) -> dict[str, object]:
    response = client.post("/v1/admin/budgets", json={**DAY, **fields})
    assert response.status_code == 201, response.text
    body: dict[str, object] = response.json()
    return body


def spend(state: State, event_id: str = "req_1:1") -> None:
    """120 tokens reserved and 61 settled by the default tenant's user u1."""
    ledger = Ledger(state.database, "boot-1", observers=(Budgets(),))
    ledger.reserve(reservation(event_id, tenant_id="default"))
    ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=41))


def test_a_budget_is_shown_with_what_it_has_taken(client, state):
    made = make(client, tz="Europe/Berlin", thresholds=[100, 80])
    spend(state)
    ledger = Ledger(state.database, "boot-1", observers=(Budgets(),))
    ledger.reserve(reservation("req_2:1", tenant_id="default"))
    body = client.get(f"/v1/admin/budgets/{made['id']}").json()

    assert (made["scope_type"], made["scope_id"], made["thresholds"]) == ("tenant", "default", [80, 100])
    assert (body["limit"], body["used"], body["reserved"], body["remaining"]) == (1000, 61, 120, 819)
    assert body["currency"] is None
    assert body["reset_at"] > body["created_at"]
    assert client.get("/v1/admin/budgets").json()["data"] == [body]


def test_the_budgets_are_a_file_with_what_each_has_taken(client, state):
    make(client, thresholds=[100, 80])
    spend(state)
    make(client, unit="cost", limit="12.50", period="total")
    listed = client.get("/v1/admin/budgets").json()["data"]
    response = client.get("/v1/admin/budgets", headers={"Accept": "text/csv"})

    tokens, money = csv.DictReader(io.StringIO(response.text.removeprefix("\ufeff")))
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert set(tokens) == set(listed[0]) - {"object"}
    assert (tokens["used"], tokens["remaining"], tokens["thresholds"]) == ("61", "939", "80, 100")
    assert tokens["reset_at"] == rfc3339_seconds(listed[0]["reset_at"])
    assert (money["limit"], money["currency"], money["reset_at"]) == (listed[1]["limit"], "usd", "")


def test_money_goes_in_and_out_as_decimal_strings(client):
    made = make(client, unit="cost", limit="25.5", period="total")

    assert (made["limit"], made["remaining"], made["used"]) == ("25.500000000000", "25.500000000000", "0.000000000000")
    assert (made["currency"], made["reset_at"]) == ("usd", None)
    assert make(client, unit="cost", limit="0.000000000001")["limit"] == "0.000000000001"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"limit": "12"}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": 10**16}, "limit"),
        ({"unit": "cost", "limit": 12}, "limit"),
        ({"unit": "cost", "limit": "-1"}, "limit"),
        ({"unit": "cost", "limit": "1e3"}, "limit"),
        ({"unit": "cost", "limit": "9000000"}, "limit"),
        ({"unit": "cost", "limit": "0.0000000000001"}, "limit"),
        ({"thresholds": [0]}, "thresholds.0"),
        ({"thresholds": [1001]}, "thresholds.0"),
        ({"tz": "Mars/Olympus"}, "tz"),
        ({"scope_type": "user"}, "scope_id"),
        ({"scope_id": "another"}, "scope_id"),
        ({"webhook_url": "ftp://x"}, "webhook_url"),
        ({"webhook_url": "http://u:p@example.com/"}, "webhook_url"),
        ({"webhook_url": "http://169.254.169.254/latest"}, "webhook_url"),
        ({"webhook_url": "http://0x7f.1/"}, "webhook_url"),
        ({"webhook_url": "https://localhost/"}, "webhook_url"),
    ],
)
def test_what_cannot_be_a_budget_is_refused_by_name(client, fields, param):
    response = client.post("/v1/admin/budgets", json={**DAY, **fields})

    assert (response.status_code, response.json()["param"]) == (422, param)
    assert client.get("/v1/admin/budgets").json()["data"] == []


def test_a_budget_is_not_changed_to_tell_an_address_inside_and_a_key_is_not_made_with_one(client):
    made = make(client, webhook_url="https://hooks.example/T0")
    inside = {"webhook_url": "http://[::1]/hook"}
    changed = client.patch(f"/v1/admin/budgets/{made['id']}", json=inside)
    key = client.post("/v1/admin/keys", json={"name": "k", "budget": {**DAY, **inside}})

    for refused in (changed, key):
        assert refused.status_code == 422
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.json()["param"] == "webhook_url"
    assert client.get(f"/v1/admin/budgets/{made['id']}").json()["webhook_url"] == "https://hooks.example/T0"
    assert "k" not in [listed["name"] for listed in client.get("/v1/admin/keys").json()["data"]]


@pytest.mark.parametrize("fields", [{"period": "week"}, {"limit": 1.5}, {"limit": True}, {"color": "red"}])
def test_what_is_malformed_is_refused(client, fields):
    assert client.post("/v1/admin/budgets", json={**DAY, **fields}).status_code == 422


@pytest.mark.parametrize("scope_type", ["key", "collection"])
def test_a_budget_is_for_something_that_exists(client, scope_type):
    response = client.post("/v1/admin/budgets", json={**DAY, "scope_type": scope_type, "scope_id": "nothing"})

    assert response.status_code == 404


def test_a_budget_is_raised_reset_and_removed_and_all_of_it_is_on_record(client, state):
    made = make(client)
    spend(state)
    raised = client.patch(f"/v1/admin/budgets/{made['id']}", json={"limit": 2000, "thresholds": []}).json()
    reset = client.post(f"/v1/admin/budgets/{made['id']}/reset").json()
    windows = client.get(f"/v1/admin/budgets/{made['id']}/windows").json()["data"]
    removed = client.delete(f"/v1/admin/budgets/{made['id']}").json()

    assert (raised["limit"], raised["used"]) == (2000, 61)
    assert (reset["series"], reset["used"], reset["remaining"]) == (2, 0, 2000)
    assert [(window["series"], window["used"]) for window in windows] == [(1, 61)]
    assert removed == {"id": made["id"], "object": "budget", "deleted": True}
    assert client.get(f"/v1/admin/budgets/{made['id']}").status_code == 404
    entries, _ = state.access.audit.list(tenant_id="default", limit=10)
    assert [entry.action for entry in entries] == ["budget.delete", "budget.reset", "budget.update", "budget.create"]
    assert all(entry.request_id and entry.target == made["id"] for entry in entries)


def test_a_limit_is_changed_in_its_own_unit(client):
    made = make(client, unit="cost", limit="1")

    assert client.patch(f"/v1/admin/budgets/{made['id']}", json={"limit": 5}).status_code == 422
    changed = client.patch(f"/v1/admin/budgets/{made['id']}", json={"limit": "5"}).json()
    assert changed["limit"] == "5.000000000000"


def test_alerts_are_listed_page_by_page(client, state):
    made = make(client, limit=500, thresholds=[1, 5, 10])
    spend(state)
    first = client.get("/v1/admin/alerts", params={"limit": 2}).json()
    second = client.get("/v1/admin/alerts", params={"limit": 2, "cursor": first["next_cursor"]}).json()

    alerts = [*first["data"], *second["data"]]
    assert sorted(alert["percent"] for alert in alerts) == [1, 5, 10]
    assert {(alert["budget_id"], alert["used"], alert["delivery"]) for alert in alerts} == {(made["id"], 61, "waiting")}
    assert second["has_more"] is False
    assert client.get("/v1/admin/alerts", params={"budget_id": "other"}).json()["data"] == []


def test_everyone_sees_the_budgets_that_can_stop_them(client, state):
    make(client, limit=10**6)
    user = make(client, limit=5000, scope_type="user", scope_id="ada")
    make(client, limit=7000, scope_type="user", scope_id="grace")
    secret = client.post("/v1/admin/keys", json={"name": "ada", "role": "reader"}).json()["secret"]
    own = client.get("/v1/usage", headers={"Authorization": f"Bearer {secret}"}).json()["budgets"]

    assert [budget["limit"] for budget in own] == [10**6, 5000]
    assert own[1]["id"] == user["id"]
    assert "webhook_url" not in own[1], "an administrator's"


def refusal(*, unit: str = "tokens", limit: int = 100, wait_s: float | None = None) -> BudgetExceeded:
    reset_at = None if wait_s is None else 32_503_680_000
    return BudgetExceeded(
        budget_id="budget_1", unit=unit, limit=limit, used=60, reserved=30, reset_at=reset_at, wait_s=wait_s
    )


def test_a_refusal_is_429_with_the_numbers_and_the_time_to_come_back():
    status, body, headers = problem_of(refusal(wait_s=59.2), "req_1")

    assert (status, body["type"]) == (429, "urn:footnote:problem:budget-exceeded")
    members = {name: body[name] for name in ("budget_id", "unit", "limit", "used", "reserved", "reset_at")}
    assert members == {
        "budget_id": "budget_1",
        "unit": "tokens",
        "limit": 100,
        "used": 60,
        "reserved": 30,
        "reset_at": 32_503_680_000,
    }
    assert headers["x-ratelimit-remaining-tokens"] == "10"
    assert headers["Retry-After"] == "60"
    assert headers["x-ratelimit-reset-tokens"] == f"{headers['Retry-After']}s"


def test_a_refusal_for_good_names_no_time():
    _, body, headers = problem_of(refusal(), "req_1")

    assert body["reset_at"] is None
    assert set(headers) == {"x-ratelimit-remaining-tokens"}


def test_a_refusal_in_money_is_in_money():
    _, body, headers = problem_of(refusal(unit="cost", limit=25 * 10**11, wait_s=0.0), "req_1")

    assert (body["limit"], body["used"]) == ("2.500000000000", "0.000000000060")
    assert headers == {"Retry-After": "1"}


def asked(state: State) -> TestClient:
    """The application over a search that finds passages and quotes them; its ledger keeps the budgets."""
    embedder, ledger = HashingEmbedder(max_tokens=64), Ledger(state.database, boot_id="boot", observers=(Budgets(),))
    engine = NoEngine(revision="1", context_window=2000)
    answerer = make_answerer(
        finder=Finder(search=cast(Search, FixedSearch(hits())), vectors=QuestionVectors(embedder)),
        engine=engine,
        tokenizer=LetterTokenizer(),
        contents=state.corpus.contents,
        ledger=ledger,
        limits=ANY_EVIDENCE,
        passage_reader=PassageReader(embedder=embedder),
        quotes=QuotesAs.ONLY,
    )
    running = state_with(state, models=replace(stations(state, engine, embedder=embedder), answerer=answerer))
    return client_of(running)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/ask", {"question": QUESTION}),
        ("/v1/ask", {"question": QUESTION, "stream": True}),
        ("/v1/search", {"query": QUESTION}),
        ("/v1/chat/completions", {"model": "footnote", "messages": [{"role": "user", "content": QUESTION}]}),
    ],
)
def test_a_question_without_room_is_refused_before_a_byte_of_its_answer(state, path, body):
    with asked(state) as client:
        made = make(client, limit=0, thresholds=[100])
        refused = client.post(path, json=body)
        client.patch(f"/v1/admin/budgets/{made['id']}", json={"limit": 10**6})
        admitted = client.post(path, json=body)

    assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
    assert refused.json()["budget_id"] == made["id"]
    assert refused.headers["x-ratelimit-remaining-tokens"] == "0"
    assert admitted.status_code == 200
    if path == "/v1/chat/completions":
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert refused.json()["error"]["code"] == "budget_exceeded"


def test_an_amount_of_tokens_may_be_a_whole_fraction_but_no_long_text(client):
    terms = {"scope_type": "tenant", "period": "total", "unit": "tokens"}

    assert client.post("/v1/admin/budgets", json={**terms, "limit": 95242260.0}).status_code == 201
    assert client.post("/v1/admin/budgets", json={**terms, "limit": "0" * 101}).status_code == 422
