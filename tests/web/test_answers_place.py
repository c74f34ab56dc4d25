"""The place of an answer: questions changed where they stand, refusals, deleted documents, budgets, passages."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.ingestion.office_files import docx_bytes
from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.made_documents import CLAIM, HARBOUR, LOG, QUESTION
from tests.web.test_accessibility import found_in, needs_axe

if TYPE_CHECKING:
    from playwright.async_api import Page, Request

HANDBOOK = f"""<html><body><h1>Handbook of the harbour</h1>
<p>{"The keeper reads this every morning before the lamps are put out. " * 6}</p>
<h2>3 Ships</h2><p>{CLAIM} {"The keeper stood at the window and wrote. " * 8}</p>
<ul><li>Wear a coat</li><li>Bring a lantern</li></ul>
<table><tr><th>When</th><th>Ships</th></tr><tr><td>dawn</td><td>forty</td></tr><tr><td>noon</td><td>two</td></tr></table>
</body></html>"""


async def bodies(page: "Page") -> list[dict[str, Any]]:
    """What the page asks the server from now on."""
    asked: list[dict[str, Any]] = []

    def note(request: "Request") -> None:
        if request.url.endswith("/v1/ask"):
            asked.append(request.post_data_json or {})

    page.on("request", note)
    return asked


async def test_a_question_is_changed_where_it_stands_and_asked_as_a_new_turn(
    open_page: Opening, tenant: Tenant
) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    first = await ask(page, QUESTION)
    asked = await bodies(page)
    await first.get_by_role("button", name="Change this question and ask it again").click()
    field = page.get_by_label("Your question, changed")
    assert await field.input_value() == QUESTION
    await page.keyboard.press("Escape")
    await field.wait_for(state="detached")
    await first.get_by_role("button", name="Change this question and ask it again").click()
    await field.fill("Who counted every lantern?")
    await page.keyboard.press("Enter")
    await seen(page, ".ask-turn:last-of-type h2", "Who counted every lantern?")
    await seen(page, ".ask-turn:last-of-type .ask-how", timeout=30_000)

    assert await page.locator(".ask-turn").count() == 2
    assert QUESTION in await page.locator(".ask-turn h2").first.inner_text(), "what was asked stays"
    [body] = asked
    assert body["question"] == "Who counted every lantern?"
    assert "standalone" not in body


async def test_what_was_searched_for_is_changed_and_asked_standing_alone(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    await ask(page, QUESTION)
    second = await ask(page, "And at noon?")
    said = second.locator(".ask-answer > .ask-editable p")
    assert (await said.inner_text()).startswith("Searched for: “")
    asked = await bodies(page)
    await second.get_by_role("button", name="Change what is searched for and ask again").click()
    await page.get_by_label("Change what is searched for and ask again").fill("And at dusk?")
    await second.get_by_role("button", name="Ask", exact=True).click()
    await seen(page, ".ask-turn:last-of-type h2", "And at dusk?")
    await seen(page, ".ask-turn:last-of-type .ask-how", timeout=30_000)

    [body] = asked
    assert (body["question"], body["standalone"]) == ("And at dusk?", True)
    conversation = page.url.rpartition("/")[2]
    kept = tenant.http.get(f"/v1/conversations/{conversation}").json()["data"]
    assert [turn["question"] for turn in kept] == [QUESTION, "And at noon?", "And at dusk?"]
    assert kept[1]["standalone_question"] is not None
    assert kept[2]["standalone_question"] is None, "it was asked as it stands"
    assert "Searched for" not in await page.locator(".ask-turn").last.inner_text()


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
async def test_a_refusal_begins_with_what_the_documents_say(open_page: Opening, tenant: Tenant, width: int) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant, width=width)
    turn = await ask(page, "What does the log say about the moon in the harbour?")
    await turn.get_by_text("I could not word an answer; your documents say:").wait_for()
    best = turn.locator(".ask-best blockquote")
    assert "harbour" in await best.inner_text()
    box = await best.bounding_box()
    title = await turn.locator(".ask-refusal-title").bounding_box()
    assert box is not None
    assert title is not None
    why = await turn.get_by_text("this can be mistaken").bounding_box()
    assert why is not None
    assert title["y"] < box["y"] < why["y"], "the sentence stands first"
    assert await turn.locator("h2").count() == 1
    assert await found_in(page, "refusal") == []


async def test_a_deleted_documents_quotes_are_marked_as_gone(open_page: Opening, tenant: Tenant) -> None:
    document = tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    # The page asks last what the cited document can be asked next: a browser complains where it is gone by then.
    async with page.expect_response("**/overview?prepare=false"):
        turn = await ask(page, QUESTION)
    assert await turn.get_by_text("Document deleted").count() == 0
    assert tenant.http.delete(f"/v1/documents/{document}").status_code in {200, 202, 204}
    await page.reload()
    await seen(page, ".ask-turn .badge", "Document deleted")

    turn = page.locator(".ask-turn").last
    assert await turn.locator(".badge.good").count() == 0, "nobody can confirm it any more"
    mark = turn.get_by_role("link", name="Footnote 1: harbour.txt, document deleted")
    assert await mark.count() == 1
    await mark.hover()
    card = await page.get_by_role("tooltip").inner_text()
    assert "is deleted" in card
    assert "Click to see it" not in card


def zone_amid_month() -> str:
    """A time zone whose month does not end soon: a refusal offers to try again where its budget begins again soon."""
    now = datetime.now(UTC)
    return "UTC" if (now + timedelta(hours=1)).month == now.month else "Pacific/Honolulu"


@needs_axe
@pytest.mark.parametrize("role", ["member", "admin"])
async def test_a_budget_that_ran_out_says_what_how_much_and_whom_to_ask(
    open_page: Opening, tenant: Tenant, window: Window, role: str
) -> None:
    window.excuse("429")
    tenant.upload("harbour.txt", HARBOUR)
    budget = {"scope_type": "user", "scope_id": "ada", "unit": "tokens", "limit": 7000, "period": "month"}
    budget["tz"] = zone_amid_month()
    assert tenant.http.post("/v1/admin/budgets", json=budget).status_code == 201
    asking = tenant
    if role == "member":
        asking = tenant.key_of("ada")
    for _ in range(20):
        response = tenant.http.post("/v1/ask", json={"question": QUESTION, "max_output_tokens": 4000})
        if response.status_code == 429:
            break
    assert response.status_code == 429, "the budget is used up"
    page = await open_page(asking)
    field = page.get_by_label("Your question", exact=True)
    await field.fill(QUESTION)
    await field.press("Enter")
    await seen(page, ".ask-turn .problem")
    note = page.locator(".ask-turn .problem")
    await note.get_by_text("7,000 tokens a month, user ada").wait_for()
    said = await note.inner_text()
    assert "of 7,000 tokens." in said
    assert "It begins again" in said
    assert ("Ask an administrator for more." in said) == (role == "member")
    assert ("in Administration" in said) == (role == "admin")
    assert await note.get_by_role("button", name="Try again").count() == 0
    assert await found_in(page, "budget") == []


async def test_a_footnote_into_a_web_page_names_its_section_and_opens_its_structure(
    open_page: Opening, tenant: Tenant
) -> None:
    tenant.upload("handbook.html", HANDBOOK)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    mark = turn.get_by_role("link", name="Footnote 1: handbook.html, section 3, Ships")
    await mark.click()
    panel = page.get_by_role("complementary", name="The cited passage")
    await seen(page, ".passage-panel .text-body mark")

    assert "section 3, Ships" in await panel.get_by_role("figure").inner_text()
    body = panel.locator(".text-body")
    assert await body.get_by_role("heading", name="3 Ships").count() == 1
    assert await body.get_by_role("listitem").all_inner_texts() == ["Wear a coat", "Bring a lantern"]
    assert await body.get_by_role("columnheader").all_inner_texts() == ["When", "Ships"]
    cited = tenant.ask(QUESTION)["citations"][0]
    assert cited["section"] == "3 Ships"
    assert "".join(await body.locator("mark").all_inner_texts()) == cited["cited_text"]


async def test_a_word_document_is_shown_with_its_structure(open_page: Opening, tenant: Tenant, url: str) -> None:
    document = tenant.upload("report.docx", docx_bytes())
    text = tenant.http.get(f"/v1/documents/{document}/content", headers={"Accept": "application/json"}).json()["text"]
    page = await open_page(tenant, f"#/documents/{document}")
    body = page.locator(".text-body.structured")
    await body.wait_for()
    assert await body.locator("h3, h4, h5, h6").count() > 0

    words = text.split()
    start = text.index(words[-1])
    await page.goto(f"{url}/#/documents/{document}?start={start}&end={start + len(words[-1])}")
    await seen(page, ".text-body mark", words[-1])
    assert await page.locator(".text-body mark").all_inner_texts() == [words[-1]]


@pytest.mark.parametrize("width", [1130, 1280, 1600])
async def test_a_pdf_beside_an_answer_is_shown_in_its_whole_width_under_one_row_of_tools(
    open_page: Opening, tenant: Tenant, width: int
) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant, width=width)
    turn = await ask(page, QUESTION)
    await turn.locator("a.ask-mark").first.click()
    await seen(page, ".passage-panel .pdf-box")
    cropped = await page.evaluate(
        "() => { const room = document.querySelector('.pdf-scroll'); return room.scrollWidth - room.clientWidth }"
    )
    tools = await page.evaluate(
        "() => [...document.querySelectorAll('.passage-panel .pdf-tools > *')].map("
        "(one) => { const { top, bottom } = one.getBoundingClientRect(); return (top + bottom) / 2 })"
    )

    assert cropped <= 0
    assert len(tools) == 4
    assert max(tools) - min(tools) < 12, "the tools are in one row"


@pytest.mark.parametrize("section", ["keys", "users", "budgets", "limits", "prices", "models"])
async def test_no_button_of_the_administration_wraps_at_1280_pixels(
    open_page: Opening, operator: Tenant, url: str, section: str
) -> None:
    page = await open_page(operator, width=1280)
    await page.goto(f"{url}/#/admin/{section}")
    await seen(page, "main h2")
    tall = await page.evaluate(
        "() => [...document.querySelectorAll('main button')].filter((one) => one.checkVisibility() && "
        "one.getBoundingClientRect().height > 44).map((one) => one.textContent)"
    )

    assert tall == []
