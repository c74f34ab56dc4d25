"""Overviews of documents over HTTP: a summary by quotation, and questions that were asked of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from app.db.tables.documents import document_version
from app.server.state import State
from app.types import Role
from app.usage.budgets.budgets import Budgets
from app.usage.ledger.ledger import Ledger
from tests.app.answering.retrieving.outlined import index
from tests.app.api.credentials import key_of
from tests.app.api.harbour import ABOUT, BUILT, LINES, QUESTION, Harbour, WaitingReader

Open = Callable[..., Harbour]


@pytest.fixture
def harbours(state: State) -> Iterator[Open]:
    opened: list[Harbour] = []

    def start(**how: Any) -> Harbour:
        harbour = Harbour(state, **how)
        harbour.client.__enter__()
        opened.append(harbour)
        return harbour

    yield start
    for harbour in opened:
        harbour.suggester.close()
        harbour.client.__exit__(None, None, None)


def test_the_overview_says_what_a_document_is_and_quotes_it_exactly(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.overview(document)

    assert (body["object"], body["document_id"], body["version"]) == ("document.overview", document, 1)
    assert (body["title"], body["pages"]) == ("The Aldey ferry", 1)
    assert [(quote["part"], quote["page"]) for quote in body["summary"]] == [
        ("opening", 1), ("heading", 1), ("heading", 1)
    ]  # fmt: skip
    assert [quote["text"] for quote in body["summary"]] == [LINES[1], "The boat", "The fares"]
    content = harbour.client.get(f"/v1/documents/{document}/content").text
    for quote in body["summary"]:
        assert content[quote["start_char"] : quote["end_char"]] == quote["text"]


def test_a_question_is_suggested_that_the_same_server_answers_and_confirms(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    first = harbour.overview(document)
    body = harbour.ready(document)

    assert first["state"] in {"preparing", "ready"}
    content = harbour.client.get(f"/v1/documents/{document}/content").text
    question, about = body["questions"]
    assert (question["question"], question["answer"], question["document_id"]) == (QUESTION, "1987", document)
    assert question["confirmed"]
    assert content[question["start_char"] : question["end_char"]].endswith(BUILT)
    assert (question["page_start"], question["page_end"]) == (1, 1)
    asked = harbour.client.post("/v1/ask", json={"question": QUESTION, "document_ids": [document]}).json()
    assert asked["answered"]
    assert asked["citations"][0]["verified"]
    assert asked["citations"][0]["cited_text"].endswith(BUILT)
    assert (about["question"], about["answer"], about["confirmed"]) == (ABOUT, LINES[1], True)
    asked = harbour.client.post("/v1/ask", json={"question": ABOUT, "document_ids": [document]}).json()
    assert asked["answered"]
    assert all(citation["verified"] for citation in asked["citations"])
    assert LINES[1] in asked["answer"]


def test_every_model_call_is_on_the_ledger_and_made_once_for_a_version(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.ready(document)
    calls = harbour.calls()
    read = len(harbour.reader.passages)
    again = harbour.ready(document)

    assert {call["operation"] for call in calls} == {"embed_query", "judge"}
    assert {call["status"] for call in calls} == {"completed"}
    assert len({call["request_id"] for call in calls}) == 1
    assert [one["question"] for one in again["questions"]] == [QUESTION, ABOUT]
    assert (len(harbour.calls()), len(harbour.reader.passages)) == (len(calls), read)


def test_questions_kept_while_a_request_looked_for_them_are_not_asked_again(
    harbours: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    read = harbour.kept.read

    def read_before(*args: Any, **named: Any) -> Any:
        """What was kept before the questions were known, returned after they were."""
        kept = read(*args, **named)
        monkeypatch.setattr(harbour.kept, "read", read)
        harbour.ready(document)
        return kept

    monkeypatch.setattr(harbour.kept, "read", read_before)
    body = harbour.overview(document)

    assert (body["state"], [one["question"] for one in body["questions"]]) == ("ready", [QUESTION, ABOUT])
    assert len({call["request_id"] for call in harbour.calls()}) == 1


def test_reading_what_is_known_starts_no_search_and_bills_nothing(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    path = f"/v1/documents/{document}/overview?prepare=false"
    before = harbour.client.get(path).json()
    calls = harbour.calls()
    harbour.ready(document)
    after = harbour.client.get(path).json()

    assert (before["state"], before["questions"], calls) == ("unasked", [], [])
    assert (after["state"], [one["question"] for one in after["questions"]]) == ("ready", [QUESTION, ABOUT])


def test_a_question_that_another_document_answers_better_is_not_suggested(harbours: Open) -> None:
    harbour = harbours()
    index(harbour.library, "twin.pdf", "# Twins", BUILT, title="Twins")
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.ready(document)
    twin = harbour.client.get("/v1/documents").json()["data"]

    assert len(twin) == 2
    assert {one["document_id"] for one in body["questions"]} <= {document}


def test_a_document_in_another_language_is_asked_what_it_is_about_which_costs_nothing(harbours: Open) -> None:
    harbour = harbours()
    text = "Die Fähre wurde 1987 von einer Werft in Bergen gebaut und ist der Stolz der Linie."
    document = index(harbour.library, "faehre.txt", text, title=None)
    body = harbour.ready(document)

    assert [(one["question"], one["answer"]) for one in body["questions"]] == [
        ("Worum geht es in diesem Dokument?", text)
    ]
    assert (body["title"], body["kind"]) == ("faehre.txt", "txt")
    assert harbour.calls() == []


def test_a_document_that_says_nothing_gets_no_question(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", "# The Aldey ferry", title="The Aldey ferry")

    assert harbour.ready(document)["questions"] == []


def test_readers_may_read_it_and_other_tenants_and_other_collections_may_not(harbours: Open, state: State) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.client.post("/v1/admin/tenants", json={"id": "other", "name": "Other"})
    elsewhere = state.corpus.collections.create("default", "elsewhere", metadata={}).id
    reader = key_of(state, Role.READER)
    stranger = key_of(state, Role.ADMIN, tenant="other")
    limited = key_of(state, Role.MEMBER, collections=(elsewhere,))

    assert harbour.ready(document, **reader)["questions"]
    for headers in (stranger, limited):
        assert harbour.client.get(f"/v1/documents/{document}/overview", headers=headers).status_code == 404


def test_the_questions_go_with_the_document(harbours: Open, state: State) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.ready(document)
    deleted = harbour.client.delete(f"/v1/documents/{document}")

    assert deleted.status_code == 200
    assert harbour.client.get(f"/v1/documents/{document}/overview").status_code == 404
    with state.database.read() as connection:
        assert connection.execute(sa.select(document_version.c.suggestions)).all() == []


def test_a_document_without_an_indexed_version_has_none(harbours: Open) -> None:
    harbour = harbours()
    created = harbour.library.upload("not read yet", filename="new.txt")

    assert harbour.client.get(f"/v1/documents/{created.id}/overview").status_code == 404


def test_while_models_load_the_summary_is_there_and_the_questions_follow(harbours: Open) -> None:
    harbour = harbours(loaded=False)
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    early = harbour.overview(document)
    harbour.loaded = True

    assert (early["state"], early["questions"], len(early["summary"])) == ("preparing", [], 3)
    assert harbour.ready(document)["questions"]


def test_a_model_that_fails_leaves_the_summary_and_is_tried_again_later(harbours: Open) -> None:
    harbour = harbours(failing=True)
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.ready(document, until="unavailable")

    assert (body["questions"], len(body["summary"])) == ([], 3)
    assert harbour.kept.read(document, tenant_id="default", version=1) is None


def test_a_spent_budget_stops_it_before_a_model_reads(harbours: Open, state: State) -> None:
    ledger = Ledger(state.database, boot_id="boot", observers=(Budgets(),))
    harbour = harbours(ledger=ledger)
    budget = {"limit": 1, "unit": "tokens", "period": "day"}
    created = harbour.client.post("/v1/admin/budgets", json=budget)
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    body = harbour.ready(document, until="unavailable")

    assert created.status_code == 201, created.text
    assert body["questions"] == []
    assert harbour.reader.passages == []


def test_a_question_is_shown_as_soon_as_it_is_found(harbours: Open) -> None:
    reader = WaitingReader("1987", asked="built", waits_at=["built", "opened"])
    harbour = harbours(reader=reader)
    document = index(harbour.library, "ferry.pdf", *LINES, "The pier was opened in 1990.", title="The Aldey ferry")

    about = harbour.suggesting(document, 1)["questions"]
    reader.may["built"].set()
    early = harbour.suggesting(document, 2)["questions"]
    state = harbour.overview(document)["state"]
    reader.may["opened"].set()

    assert [one["question"] for one in about] == [ABOUT]
    assert [one["question"] for one in early] == [QUESTION, ABOUT]
    assert state == "preparing"
    assert harbour.ready(document)["questions"][:1] == early[:1]


def test_what_a_document_is_about_does_not_wait_for_the_drafts_of_another(harbours: Open) -> None:
    reader = WaitingReader("1987", asked="built", waits_at=["built", "opened"])
    harbour = harbours(reader=reader)
    first = index(harbour.library, "ferry.pdf", *LINES, "The pier was opened in 1990.", title="The Aldey ferry")
    other = index(harbour.library, "mill.pdf", "# The mill", LINES[1], title="The mill")
    harbour.suggesting(first, 1)
    harbour.overview(other)
    reader.may["built"].set()  # the next draft of the first waits for the test

    early = harbour.suggesting(other, 1)
    state = harbour.overview(first)["state"]
    reader.may["opened"].set()

    assert [one["question"] for one in early["questions"]] == [ABOUT]
    assert state == "preparing"
    assert [one["question"] for one in harbour.ready(first)["questions"]] == [QUESTION, ABOUT]


def test_closing_ends_the_thread_and_keeps_nothing_that_is_not_whole(harbours: Open) -> None:
    harbour = harbours()
    document = index(harbour.library, "ferry.pdf", *LINES, title="The Aldey ferry")
    harbour.suggester.close()

    assert harbour.overview(document)["state"] == "preparing"
    assert harbour.kept.read(document, tenant_id="default", version=1) is None
