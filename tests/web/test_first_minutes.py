"""The first minutes: a sample to try, what a document is, suggested questions, pasted text, files dropped anywhere."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.made_documents import CLAIM, LOG, QUESTION
from tests.web.test_accessibility import found_in, needs_axe

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

TEXT = "The keeper's letter of May\n" + "It rained for a week, and the road to the tower could not be used. " * 6
NEXT = "Which way did the wind come from?"
PASTE = """text => {
    const data = new DataTransfer();
    data.setData('text/plain', text);
    document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def names(tenant: Tenant) -> list[str]:
    listed = tenant.http.get("/v1/documents").json()["data"]
    return [one["filename"] for one in listed]


async def test_an_empty_installation_says_what_it_reads_and_offers_a_sample(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant)
    await seen(page, "h1", "Start with a document")
    await page.get_by_text("Footnote reads: PDF, Word, PowerPoint").wait_for()
    await page.get_by_role("button", name="Try it with a sample").click()
    await page.get_by_role("link", name="Open The Aldey ferry.md").wait_for()
    await page.get_by_text("Your document is ready.").wait_for()
    card = page.get_by_role("article", name="The Aldey ferry")
    await card.wait_for()

    assert names(tenant) == ["The Aldey ferry.md"]
    assert await card.locator(".overview-head span").inner_text() == "MD"
    assert "A guide for passengers" in await card.locator("blockquote").inner_text()
    assert "The line · Timetable · Fares" in await card.inner_text()
    await page.get_by_role("link", name="Ask", exact=True).click()
    await seen(page, "h1", "Ask about what is in your documents")
    await card.wait_for()


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_first_rows_of_a_table_are_shown_as_a_table(open_page: Opening, tenant: Tenant, width: int) -> None:
    rows = "".join(f"Pier {number},{number} metres of oak and iron\n" for number in range(1, 9))
    tenant.upload("piers.csv", f"Pier,Length\n{rows}")
    page = await open_page(tenant, width=width)
    card = page.get_by_role("article", name="piers")
    await card.get_by_role("columnheader", name="Length").wait_for()

    shown = await card.locator("td:visible").all_inner_texts()
    assert shown[:2] == ["Pier 1", "1 metres of oak and iron"]
    assert 2 < len(shown) < 16, "the first of the eight"
    table, quoted = [await card.locator(part).bounding_box() for part in ("table", "blockquote")]
    assert table is not None and quoted is not None
    assert table["height"] <= quoted["height"] and table["width"] <= quoted["width"], "none is cut off"


async def suggesting(page: "Page", *questions: str, confirmed: bool = True) -> None:
    """Has every overview suggest these questions."""

    async def answer(route: "Route") -> None:
        response = await route.fetch()
        body = await response.json()
        place = {"document_id": body["document_id"], "start_char": 0, "end_char": 1, "page_start": 1, "page_end": 1}
        told = [{**place, "question": one, "answer": "Forty", "confirmed": confirmed} for one in questions]
        await route.fulfill(response=response, body=json.dumps({**body, "state": "ready", "questions": told}))

    await page.route(re.compile(r"/v1/documents/[^/]+/overview"), answer)


async def test_one_click_on_a_suggested_question_asks_it_of_its_document(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page()
    await suggesting(page, QUESTION)
    await page.get_by_label("API key").fill(tenant.key)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("button", name=QUESTION).click()
    turn = page.locator(".ask-turn")
    await turn.locator(".ask-how").wait_for()

    assert CLAIM in await turn.locator(".ask-text").inner_text()
    assert "the log.pdf" in await turn.inner_text()
    assert await page.locator(".overview-card").count() == 0
    await page.wait_for_url("**/#/c/*")


async def test_below_an_answer_stands_what_its_documents_also_answer(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    await suggesting(page, QUESTION, NEXT)
    await ask(page, QUESTION)
    suggested = page.get_by_role("region", name="Your documents also answer")
    await suggested.get_by_role("button", name=NEXT).wait_for()
    assert await suggested.get_by_role("button").count() == 1, "what was asked is not offered again"
    conversation = page.url

    await suggested.get_by_role("button", name=NEXT).click()
    await seen(page, ".ask-turn:last-of-type h2", NEXT)
    await seen(page, ".ask-turn:last-of-type .ask-how", timeout=30_000)
    assert "the log.pdf" in await page.locator(".ask-turn").last.locator(".ask-question").inner_text()
    assert (page.url, await page.locator(".ask-turn").count()) == (conversation, 2)
    assert await suggested.count() == 0, "all are asked"


@pytest.mark.parametrize(("confirmed", "width"), [(True, 1280), (False, 1280), (False, 390)])
async def test_a_suggestion_says_where_its_answer_was_not_confirmed(
    open_page: Opening, tenant: Tenant, confirmed: bool, width: int
) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(width=width)
    await suggesting(page, QUESTION, confirmed=confirmed)
    await page.get_by_label("API key").fill(tenant.key)
    await page.get_by_role("button", name="Sign in").click()
    suggested = page.get_by_role("button", name=QUESTION)
    await suggested.wait_for()

    assert ("not confirmed" in await suggested.inner_text()) is not confirmed
    over = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert over <= 0
    lefts = "card => [...card.querySelectorAll('h3, button')].map((one) => one.getBoundingClientRect().left)"
    heading, button = await page.locator(".overview-card").evaluate(lefts)
    assert heading == button, "in line with the title"


async def test_a_long_text_can_be_pasted_on_the_documents_screen(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/documents")
    await seen(page, "h3", "No documents yet")
    await page.evaluate(PASTE, "a short one is left alone")
    await page.evaluate(PASTE, TEXT)
    await page.get_by_role("link", name="Open The keeper's letter of May.txt").wait_for()

    assert names(tenant) == ["The keeper's letter of May.txt"]


async def fetching(page: "Page", tenant: Tenant, **pages: str) -> None:
    """Has the server fetch these pages of the web: their addresses' last parts, and their texts. It has no others."""

    async def session(route: "Route") -> None:
        response = await route.fetch()
        body = await response.json()
        body["session"]["web_pages"] = True
        await route.fulfill(response=response, json=body)

    async def fetch(route: "Route") -> None:
        is_json = route.request.headers.get("content-type", "").startswith("application/json")
        sent: Any = route.request.post_data_json if is_json else {"url": ""}
        url = str(sent["url"])
        text = pages.get(url.rpartition("/")[2])
        if text is None:
            await route.fallback()  # this server fetches none
            return
        made = tenant.http.post("/v1/documents", json={"text": text, "filename": f"{url.rpartition('/')[2]}.txt"})
        await route.fulfill(status=made.status_code, json=made.json())

    await page.route("**/v1/session/state", session)
    await page.route("**/v1/documents", fetch)
    await page.reload()


@needs_axe
async def test_an_address_is_fetched_where_the_server_does_that(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/documents")
    await fetching(page, tenant, ropes="The first page is about ropes.", sails="The second is about sails.")
    await page.get_by_role("button", name="Paste text or link").click()
    dialog = page.get_by_role("dialog", name="Add a text or a page of the web")
    await dialog.get_by_label("The text, or an address").fill("https://harbour.example/ropes")
    violations = await found_in(page, "an address")
    assert await dialog.evaluate("one => one.scrollWidth <= one.clientWidth"), "nothing is cut off"
    await dialog.get_by_role("button", name="Add it").click()
    await page.get_by_role("link", name="Open ropes.txt").wait_for()
    await dialog.wait_for(state="detached")

    await page.evaluate(PASTE, "https://harbour.example/sails")
    assert await dialog.get_by_label("The text, or an address").input_value() == "https://harbour.example/sails"
    await dialog.get_by_role("button", name="Add it").click()
    await page.get_by_role("link", name="Open sails.txt").wait_for()
    assert sorted(names(tenant)) == ["ropes.txt", "sails.txt"]
    assert violations == []


async def test_an_address_that_is_not_fetched_stays_to_be_changed(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    window.excuse("the server responded with a status of 422")
    page = await open_page(tenant, "#/documents")
    await fetching(page, tenant)
    await page.get_by_role("button", name="Paste text or link").click()
    field = page.get_by_label("The text, or an address")
    await field.fill("https://harbour.example/none")
    await page.get_by_role("button", name="Add it").click()
    await page.get_by_role("alert").get_by_text("does not fetch web pages").wait_for()

    assert await field.input_value() == "https://harbour.example/none"
    await field.fill("Ropes\nare made of hemp.")
    await page.get_by_role("button", name="Add it").click()
    await page.get_by_role("link", name="Open Ropes.txt").wait_for()
    assert names(tenant) == ["Ropes.txt"]


async def test_a_server_that_fetches_nothing_offers_no_addresses(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/documents")
    await seen(page, "h3", "No documents yet")
    await page.evaluate(PASTE, "https://harbour.example/ropes")

    assert await page.get_by_role("dialog").count() == 0
    assert await page.get_by_role("button", name="Paste text", exact=True).count() == 1


async def test_a_text_can_be_added_by_a_button(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/documents")
    await page.get_by_role("button", name="Paste text").click()
    await page.get_by_label("The text").fill("Short\nand added all the same.")
    await page.get_by_role("button", name="Add it").click()
    await page.get_by_role("link", name="Open Short.txt").wait_for()

    assert await page.locator("dialog").count() == 0
    assert names(tenant) == ["Short.txt"]


async def test_files_are_taken_on_a_screen_that_is_about_something_else(
    open_page: Opening, tenant: Tenant, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The first paper is about ropes.")
    page = await open_page(tenant, "#/usage")
    await seen(page, "h1", "Usage")
    devtools = await page.context.new_cdp_session(page)
    held = {"items": [], "files": [str(tmp_path / "a.txt")], "dragOperationsMask": 1}

    async def drag(kind: str) -> None:
        await devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 640, "y": 500, "data": held})

    await drag("dragEnter")
    await page.get_by_text("Drop files or folders here").wait_for()
    await drag("dragOver")  # only enters what has come under the pointer
    await drag("drop")
    await page.get_by_role("link", name="Open a.txt").wait_for()

    assert names(tenant) == ["a.txt"]
    assert page.url.endswith("#/documents")
