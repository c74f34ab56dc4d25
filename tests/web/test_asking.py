"""Asking in the page: metadata conditions, and stopping a search."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.app.server.embedder_swaps import wait_until
from tests.faults.forked import ForkedServer
from tests.web.asking import ask, begin
from tests.web.conftest import Opening, Tenant
from tests.web.made_documents import AT_LENGTH, HARBOUR, QUESTION
from tests.web.served import begun, held

if TYPE_CHECKING:
    from playwright.async_api import Page


async def condition(page: "Page", number: int, *, field: str, operator: str, value: str) -> None:
    """Fill in a row of the dialog that says where to look."""
    row = page.get_by_role("dialog").get_by_role("group", name=f"Condition {number}")
    await row.get_by_label("Detail").fill(field)
    await row.get_by_label("Condition", exact=True).select_option(operator)
    await row.get_by_label("Value").fill(value)


async def asked(page: "Page", question: str) -> Any:
    """What the page asks the server for, once it is answered."""
    async with page.expect_request("**/v1/ask") as sent:
        await ask(page, question)
    return (await sent.value).post_data_json


def turns(tenant: Tenant, page: "Page") -> list[dict[str, Any]]:
    """What the conversation on the page has kept."""
    conversation = page.url.rpartition("/")[2]
    kept: list[dict[str, Any]] = tenant.http.get(f"/v1/conversations/{conversation}").json()["data"]
    return kept


def cited(turn: dict[str, Any]) -> set[str]:
    return {citation["document_id"] for citation in turn["citations"]}


async def test_a_question_searches_only_documents_that_match_its_conditions(open_page: Opening, tenant: Tenant) -> None:
    ids = {
        year: tenant.upload(f"log of {year}.txt", f"{HARBOUR}\n\nWritten in {year}.", metadata=json.dumps(fields))
        for year, fields in (
            (2019, {"year": 2019, "keeper": "Ann"}),
            (2022, {"year": 2022, "keeper": "Ben"}),
            (2024, {"year": 2024, "keeper": "Ann"}),
        )
    }
    page = await open_page(tenant)
    await page.get_by_role("button", name="Where to look").click()
    dialog = page.get_by_role("dialog")
    for _ in range(2):
        await dialog.get_by_role("button", name="Add a condition").click()
    await condition(page, 1, field="year", operator="gte", value="2022")
    await dialog.get_by_text("Fill in both fields, or this condition is left out.").wait_for(state="detached")
    await condition(page, 2, field="keeper", operator="ne", value="Ben")
    await dialog.get_by_role("button", name="Done").click()
    body = await asked(page, QUESTION)
    assert body["filter"] == {"$and": [{"year": {"$gte": 2022}}, {"keeper": {"$ne": "Ben"}}]}
    shown = page.locator(".ask-question .ask-chip")
    assert await shown.all_inner_texts() == ["year is at least 2022", "keeper is not Ben"]

    await page.get_by_role("button", name="Remove keeper is not Ben").click()
    await page.get_by_role("button", name="Where to look").click()
    await condition(page, 1, field="year", operator="in", value="2019, 1900")
    await dialog.get_by_role("button", name="Done").click()
    body = await asked(page, f"Once more: {QUESTION}")
    assert body["filter"] == {"year": {"$in": [2019, 1900]}}
    assert [cited(turn) for turn in turns(tenant, page)] == [{ids[2024]}, {ids[2019]}]

    await page.locator(".ask-composer").get_by_role("button", name="Remove year is one of 2019, 1900").click()
    assert "filter" not in await asked(page, f"And everywhere: {QUESTION}")


async def test_only_documents_that_are_searched_are_offered_to_look_in(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    broken = {"file": ("broken.pdf", b"%PDF-1.7 and no more")}
    failed = tenant.http.post("/v1/documents", files=broken, data={"wait": "30"}).json()
    assert failed["status"] == "failed"
    page = await open_page(tenant)
    await page.get_by_role("button", name="Where to look").click()
    documents = page.get_by_role("dialog").get_by_role("group", name="Documents")
    await documents.get_by_label("harbour.txt").wait_for()
    assert await documents.get_by_label("broken.pdf").count() == 0


@pytest.fixture
def searching(server: ForkedServer) -> Iterator[Path]:
    """While this file is there, a question with `AT_LENGTH` is not found anything for."""
    file = held(server.data_dir)
    begun(server.data_dir).unlink(missing_ok=True)
    file.touch()
    yield file
    file.unlink(missing_ok=True)


async def test_a_search_is_stopped_before_it_found_anything(
    open_page: Opening, tenant: Tenant, server: ForkedServer, searching: Path
) -> None:
    document = tenant.upload("harbour.txt", HARBOUR)
    overview = f"/v1/documents/{document}/overview"
    wait_until(lambda: tenant.http.get(overview).json()["state"] == "ready")  # whose questions were searched for
    page = await open_page(tenant)

    def hung_up() -> list[str]:
        """How often the server has noticed that somebody asks no more."""
        counted = tenant.http.get("/metrics").text.splitlines()
        return [line for line in counted if 'route="/v1/ask",status="499"' in line]

    def searches() -> list[str]:
        """How the embedding of questions ended."""
        asked = "/v1/admin/usage/events?start_time=0&operations=embed_query"
        return [line["status"] for line in tenant.http.get(asked).json()["data"]]

    before, searched = hung_up(), len(searches())
    await begin(page, f"Who left the harbour, told {AT_LENGTH}?")
    await page.locator(".ask-waiting", has_text="Searching your documents…").wait_for()
    # The page says so as soon as it is asked, and begins a conversation before it asks the server.
    wait_until(begun(server.data_dir).exists)
    await page.get_by_role("button", name="Stop", exact=True).click()
    await page.locator(".ask-note", has_text="You stopped this before an answer was written.").wait_for()
    await page.get_by_role("button", name="Ask", exact=True).wait_for()
    wait_until(lambda: hung_up() != before)
    searching.unlink()

    wait_until(lambda: len(searches()) == searched + 1)  # what had begun is on the bill
    assert turns(tenant, page) == []
    assert tenant.http.get("/v1/usage").json()["today"]["completions"]["output_tokens"] == 0
    turn = await ask(page, QUESTION)
    assert "Forty ships" in await turn.locator(".ask-text").inner_text()
    assert [turn["question"] for turn in turns(tenant, page)] == [QUESTION]
