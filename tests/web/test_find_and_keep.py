"""Finding words in a document, finding conversations, keeping them in order, and taking them along."""

import json
from typing import TYPE_CHECKING

from app.receipts.verification import verify
from tests.web.asking import ask, begin
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen, settled
from tests.web.made_documents import CLAIM, HARBOUR, LOG, QUESTION
from tests.web.test_accessibility import found_in

if TYPE_CHECKING:
    from playwright.async_api import Route

_BOXED = """
(page) => {
  const box = document.querySelector(`[data-page="${page}"] .pdf-box`)?.getBoundingClientRect();
  const room = document.querySelector(".pdf-scroll").getBoundingClientRect();
  return box !== undefined && box.top >= room.top && box.bottom <= room.bottom;
}
"""


_SHOWN = "(of) => [...document.querySelectorAll(of)].filter((one) => one.checkVisibility()).map((one) => one.className)"


async def test_words_are_found_in_a_pdf_by_keyboard_and_marked_on_its_pages(open_page: Opening, tenant: Tenant) -> None:
    log = tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant, f"#/documents/{log}")
    await seen(page, ".textLayer span")
    await page.keyboard.press("Control+f")
    await page.keyboard.type("THE  keeper")
    await seen(page, ".find-bar output", "1 of 2")
    await page.wait_for_function(_BOXED, arg=1)
    await page.keyboard.press("Enter")
    await seen(page, ".find-bar output", "2 of 2, Page 3")
    await page.wait_for_function(_BOXED, arg=3)
    await page.keyboard.press("Shift+Enter")
    await seen(page, ".find-bar output", "1 of 2, Page 1")
    await page.wait_for_function(_BOXED, arg=1)
    violations = await found_in(page, "find")

    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await page.keyboard.type("zeppelin")
    await seen(page, ".find-bar output", "Not found")
    await page.wait_for_function("() => document.querySelector('.pdf-box') === null")
    assert violations == []


async def test_words_are_found_in_a_text_wherever_they_stand(open_page: Opening, tenant: Tenant) -> None:
    lines = "\n\n".join(f"Entry {number}: the wind was from the west." for number in range(900))
    long = tenant.upload("long.txt", f"A lantern burned.\n\n{lines}\n\nAnother lan-\ntern burned out.")
    page = await open_page(tenant, f"#/documents/{long}")
    await seen(page, ".text-body", "A lantern burned.")
    await page.get_by_label("Find in this document").fill("lantern burned")
    await seen(page, ".find-bar output", "1 of 2")
    await seen(page, ".text-around mark", "lantern burned")
    await page.get_by_role("button", name="Next place").click()
    await seen(page, ".find-bar output", "2 of 2")
    await seen(page, ".text-around mark", "tern burned")
    await page.wait_for_function(
        "() => (({top, bottom}) => top > 0 && bottom < innerHeight)"
        "(document.querySelector('.text-around mark').getBoundingClientRect())"
    )


async def test_conversations_are_found_pinned_and_put_into_folders(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    await ask(page, "Who counted every lantern?")
    await page.get_by_role("link", name="New conversation").click()
    await ask(page, QUESTION)
    await page.get_by_role("button", name="Pin", exact=True).click()
    await seen(page, ".ask-group h3", "Pinned")
    await page.get_by_role("button", name="Folder").click()
    await page.get_by_label("Name of the folder").fill("Ships")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.get_by_role("button", name="Unpin").click()
    await seen(page, ".ask-group h3", "Ships")
    await seen(page, ".ask-group h3", "Other conversations")
    violations = await found_in(page, "groups")

    await page.get_by_label("Search conversations").fill("GREEN cheese")
    await seen(page, ".ask-snippet", "green cheese")
    titles = await page.locator(".ask-list .ask-title").all_text_contents()
    await page.get_by_label("Search conversations").fill("zeppelin")
    await seen(page, ".ask-none", "No conversation says this.")
    assert titles == ["Who counted every lantern?"]
    assert violations == []


async def test_the_palette_goes_everywhere_by_keyboard(open_page: Opening, tenant: Tenant) -> None:
    log = tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    await ask(page, QUESTION)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    await page.keyboard.press("Control+k")
    await seen(page, "dialog.palette [role=option]", "the log.pdf")
    assert any("/Palette-" in url for url in loaded), "it is loaded when it is opened"
    field = page.get_by_role("combobox", name="Go to, or do")
    assert await field.evaluate("(field) => field === document.activeElement")
    violations = await found_in(page, "palette")
    await page.keyboard.type("usage")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/#/usage")

    for typed, place in (("the lo", f"**/#/documents/{log}"), ("left the harbour", "**/#/c/conv_*")):
        await page.keyboard.press("Control+k")
        await page.keyboard.type(typed)
        await page.wait_for_function("() => document.querySelectorAll('.palette [role=option]').length === 1")
        await page.keyboard.press("Enter")
        await page.wait_for_url(place)
    await page.keyboard.press("Control+k")
    await seen(page, "dialog.palette [role=option]", "New conversation")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Escape")
    await page.wait_for_function("() => document.querySelector('dialog.palette') === null")
    assert violations == []


async def test_a_conversation_is_exported_and_printed_with_its_passages(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    await ask(page, QUESTION)
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Export").click()
    download = await downloading.value
    text = (await download.path()).read_text(encoding="utf-8")
    assert download.suggested_filename.startswith("conv_")
    assert f"## {QUESTION}" in text
    assert "page 2" in text

    await page.evaluate("window.print = () => dispatchEvent(new Event('beforeprint'))")
    await page.get_by_role("button", name="Print or PDF").click()
    await page.emulate_media(media="print")
    await seen(page, ".print-passage", "the log.pdf, page 2")
    await seen(page, ".print-passage blockquote", CLAIM.split(" on the")[0])
    shown = await page.evaluate(_SHOWN, ".top, .ask-composer, .ask-side, .ask-head")
    assert shown == []


async def test_an_answer_has_a_receipt_whose_signature_and_bill_hold(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    await turn.locator(".ask-how summary").click()
    async with page.expect_download() as downloading:
        await turn.get_by_role("link", name="Receipt").click()
    download = await downloading.value
    raw = (await download.path()).read_bytes()
    checks = list(verify(raw, keys=tenant.http.get("/.well-known/footnote-keys.json").content))
    assert download.suggested_filename == "receipt.json"
    assert json.loads(raw)["question"] == QUESTION
    assert not [check.says for check in checks if check.holds is False]
    assert [check.says for check in checks if check.holds]


async def test_beside_a_passage_the_tools_of_each_take_one_row(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    await turn.locator("a.ask-mark").first.click()
    await seen(page, ".passage-panel .pdf-box")

    rows = "bar => new Set([...bar.querySelectorAll(':is(button, a)')].map((one) => one.offsetTop)).size"
    assert await page.locator(".ask-head").evaluate(rows) == 1
    heights = "bar => [bar.clientHeight, bar.querySelector('button').offsetHeight]"
    whole, button = await page.locator(".passage-panel .pdf-tools").evaluate(heights)
    assert whole < 2 * button


async def test_a_question_waits_for_a_server_that_is_starting_and_is_then_answered(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    window.excuse("the server responded with a status of 503")
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    starting = True

    async def refused(route: "Route") -> None:
        if not starting:
            await route.fallback()
            return
        body = {"type": "urn:footnote:problem:not-ready", "title": "x", "status": 503, "detail": "loading"}
        await route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(body))

    async def loading(route: "Route") -> None:
        if not starting:
            await route.fallback()
            return
        checks = {"models": {"loading": "generator", "done": 1, "total": 5}}
        body = {"ready": False, "reasons": ["models: loading"], "checks": checks}
        await route.fulfill(status=503, content_type="application/json", body=json.dumps(body))

    await page.route("**/v1/ask", refused)
    await page.route("**/readyz", loading)
    await begin(page, QUESTION)
    await seen(page, ".ask-waiting", "The server is starting. Waiting for its models: generator (1 of 5 are loaded)")
    violations = await found_in(page, "waiting", settle=False)
    starting = False
    await seen(page, ".ask-turn:last-of-type .ask-how", timeout=30_000)
    assert violations == []


async def test_a_question_that_a_crash_interrupted_is_shown_and_asked_again_with_one_button(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    tenant.upload("the log.pdf", LOG)
    made = tenant.http.post("/v1/conversations", json={}).json()["id"]
    page = await open_page(tenant)

    async def after_a_crash(route: "Route") -> None:
        response = await route.fetch()
        body = await response.json()
        if not body["data"]:
            lost = {"request_id": "req_lost", "question": QUESTION, "created_at": body["created_at"]}
            body["interrupted"] = [lost]
        await route.fulfill(response=response, json=body)

    await page.route(f"**/v1/conversations/{made}", after_a_crash)
    await page.evaluate("(id) => { location.hash = `/c/${id}` }", made)
    await seen(page, ".ask-turn", "The server stopped while this was answered")
    violations = await found_in(page, "interrupted")
    await page.get_by_role("button", name="Ask it again", exact=True).click()
    await seen(page, ".ask-turn:last-of-type .ask-how", timeout=30_000)
    await settled(page)
    assert await page.locator(".ask-turn").count() == 1
    assert violations == []
