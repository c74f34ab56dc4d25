"""The passages that are read: cards while nothing is answered, then a line that opens; a card leads to its passage."""

import json
from typing import TYPE_CHECKING

import pytest

from tests.web.asking import begin
from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import HARBOUR, LOG, QUESTION
from tests.web.test_accessibility import found_in, needs_axe
from tests.web.test_keyboard import focus_comes, walk

if TYPE_CHECKING:
    from playwright.async_api import Page

# The server's stream stops behind its first event until `release` is called: so long the passages are read.
_HOLD = """
() => {
  const real = window.fetch;
  const released = new Promise((release) => { window.release = release; });
  window.fetch = async (...asked) => {
    const response = await real(...asked);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    const text = await response.text();
    const end = text.indexOf("\\n\\n", text.indexOf("event: sources")) + 2;
    const bytes = (part) => new TextEncoder().encode(part);
    const body = new ReadableStream({
      async start(stream) {
        stream.enqueue(bytes(text.slice(0, end)));
        await released;
        stream.enqueue(bytes(text.slice(end)));
        stream.close();
      },
    });
    return new Response(body, { headers: response.headers });
  };
}
"""
_LIST = ".ask-sources ol"


async def reading(page: "Page") -> None:
    """Ask, and wait until the passages are shown that are read; they are read until `answered`."""
    await page.evaluate(_HOLD)
    await begin(page, QUESTION)
    await seen(page, ".ask-source")


async def answered(page: "Page") -> None:
    """Let the answer come."""
    await page.evaluate("window.release()")
    await seen(page, ".ask-how")


async def shown(page: "Page") -> bool:
    """Whether the cards can be seen."""
    visible: bool = await page.locator(_LIST).evaluate("one => one.checkVisibility()")
    return visible


def told(tenant: Tenant) -> list[str]:
    """The lines of each card, as the server tells them."""
    response = tenant.http.post("/v1/ask", json={"question": QUESTION, "stream": True})
    sources = response.text.partition("event: sources\ndata: ")[2].partition("\n\n")[0]
    passages = json.loads(sources)["passages"]
    assert {one["place"] == "" for one in passages} == {True, False}
    return ["\n".join(filter(None, (one["name"], one["place"], one["excerpt"]))) for one in passages]


def upload(tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    tenant.upload("harbour.txt", HARBOUR)


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
async def test_the_passages_are_cards_until_the_answer_begins_and_a_line_then(
    open_page: Opening, tenant: Tenant, width: int
) -> None:
    upload(tenant)
    page = await open_page(tenant, width=width)
    await reading(page)

    turn = page.locator(".ask-turn").last
    cards = turn.locator(".ask-source")
    number = await cards.count()
    line = turn.locator(".ask-sources summary")
    assert number > 1
    assert (await line.inner_text()).strip() == f"Reading {number} passages…"
    assert await page.get_by_role("status").filter(has_text=f"Reading {number} passages…").count() == 1
    assert await cards.all_inner_texts() == told(tenant)
    assert await turn.locator(".ask-waiting").count() == 0
    assert await turn.locator("h2").evaluate(
        "(one) => one.getBoundingClientRect().bottom"
    ) < await cards.first.evaluate("(one) => one.getBoundingClientRect().top")
    found = await found_in(page, "reading", settle=False)

    await answered(page)
    assert not await shown(page)
    assert (await line.inner_text()).strip() == f"{number} passages read"
    await line.click()
    assert await shown(page)
    assert found + await found_in(page, "read") == []


async def test_cards_are_reached_folded_and_opened_by_keyboard(open_page: Opening, tenant: Tenant) -> None:
    upload(tenant)
    page = await open_page(tenant)
    await reading(page)
    await walk(page, "the log.pdf", key="Shift+Tab")
    number = await page.locator(".ask-source").count()
    await answered(page)

    await focus_comes(page, f"{number} passages read")
    assert not await shown(page)
    await page.keyboard.press("Enter")
    await walk(page, "the log.pdf")
    excerpt = await page.locator(":focus .ask-source-excerpt").inner_text()
    await page.keyboard.press("Enter")
    await seen(page, ".passage-panel .pdf-box")
    quote = await page.locator(".passage-panel .quote blockquote").inner_text()
    assert excerpt.removesuffix("…") in " ".join(quote.split())
    await page.keyboard.press("Escape")
    await focus_comes(page, "the log.pdf")


async def test_a_card_that_was_opened_stays_when_the_answer_comes(open_page: Opening, tenant: Tenant) -> None:
    upload(tenant)
    page = await open_page(tenant)
    await reading(page)
    await page.locator(".ask-source", has_text="harbour.txt").first.click()
    await seen(page, ".passage-panel .text-body mark")
    await answered(page)

    assert await shown(page)
    await page.get_by_role("button", name="Close the passage").click()
    await focus_comes(page, "harbour.txt")


async def test_on_a_narrow_screen_a_card_leads_to_the_viewer(open_page: Opening, tenant: Tenant) -> None:
    upload(tenant)
    page = await open_page(tenant, width=390, height=844)
    await reading(page)
    await page.locator(".ask-source", has_text="harbour.txt").first.click()

    await seen(page, ".text-body mark")
    assert "start=" in page.url
    await page.go_back()
    await answered(page)
    assert not await shown(page)
