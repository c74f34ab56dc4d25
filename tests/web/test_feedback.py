"""Users give feedback on answers in the page, and administrators read it."""

import asyncio
import re
from typing import TYPE_CHECKING, Any

from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant, Window
from tests.web.made_documents import LOG, QUESTION
from tests.web.test_accessibility import found_in, needs_axe

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page, Route

COMMENT = "It was the other keeper.\nSee page 3."


def listed(tenant: Tenant) -> list[dict[str, Any]]:
    """What the tenant's administrators are told."""
    found: list[dict[str, Any]] = tenant.http.get("/v1/admin/feedback").json()["data"]
    return found


async def pressed(turn: "Locator") -> list[str | None]:
    """Which of the two buttons are pressed."""
    return [
        await turn.get_by_role("button", name=name).get_attribute("aria-pressed")
        for name in ("Good answer", "Bad answer")
    ]


async def press(page: "Page", turn: "Locator", name: str, method: str) -> None:
    """Press a button, and wait until the server has answered to it."""
    async with page.expect_response(
        lambda response: response.url.endswith("/feedback") and response.request.method == method
    ):
        await turn.get_by_role("button", name=name).click()


async def test_feedback_on_an_answer_is_given_changed_and_withdrawn(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    await press(page, turn, "Good answer", "POST")
    assert await pressed(turn) == ["true", "false"]
    assert [(one["score"], one["user_id"], one["question"]) for one in listed(tenant)] == [(1, "ada", QUESTION)]

    await press(page, turn, "Bad answer", "POST")
    assert await pressed(turn) == ["false", "true"]
    await turn.get_by_label("What was wrong?").fill(COMMENT)
    await turn.get_by_role("button", name="Send").click()
    await turn.get_by_text("“It was the other keeper.").wait_for()
    await page.get_by_text("Thank you.").wait_for()
    assert await turn.get_by_label("What was wrong?").count() == 0
    focused = await page.evaluate("document.activeElement.textContent")
    assert focused == "Change what you said"
    assert [(one["score"], one["comment"]) for one in listed(tenant)] == [(-1, COMMENT)]

    await page.reload()
    turn = page.locator(".ask-turn").last
    await turn.get_by_text("“It was the other keeper.").wait_for()
    assert await pressed(turn) == ["false", "true"]
    await press(page, turn, "Bad answer", "DELETE")
    assert await pressed(turn) == ["false", "false"]
    assert await turn.get_by_text("“It was the other keeper.").count() == 0
    assert listed(tenant) == []


async def test_a_feedback_button_is_released_when_the_server_fails(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    tenant.upload("the log.pdf", LOG)
    window.excuse("the server responded with a status of 500")
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    await turn.get_by_role("button", name="Good answer").wait_for()
    refusal = '{"type": "about:blank", "title": "Broken", "status": 500, "detail": "Come back later."}'
    # Also what is asked after a refusal is refused: nobody tells the page what holds.
    await page.route(
        re.compile("/feedback$|/v1/conversations/conv_"),
        lambda route: route.fulfill(status=500, body=refusal, content_type="application/problem+json"),
    )
    await turn.get_by_role("button", name="Good answer").click()
    await page.locator(".notice", has_text="Come back later.").wait_for()
    assert await pressed(turn) == ["false", "false"]
    assert listed(tenant) == []


async def test_an_answer_that_ends_while_its_conversation_is_read_is_judged_too(
    open_page: Opening, tenant: Tenant
) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    read, ended = [0], asyncio.Event()

    async def late(route: "Route") -> None:
        """The first reading, from before there was an answer, arrives after it."""
        read[0] += 1
        if read[0] > 1:
            await route.continue_()
            return
        response = await route.fetch()
        await ended.wait()
        await route.fulfill(response=response)

    await page.route(re.compile("/v1/conversations/conv_"), late)
    turn = await ask(page, QUESTION)
    ended.set()
    await press(page, turn, "Good answer", "POST")
    assert await pressed(turn) == ["true", "false"]


async def test_readers_of_a_shared_conversation_do_not_judge_it(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    conversation = tenant.http.post("/v1/conversations", json={}).json()["id"]
    body = {"question": QUESTION, "conversation_id": conversation}
    assert tenant.http.post("/v1/ask", json=body).status_code == 200
    tenant.http.patch(f"/v1/conversations/{conversation}", json={"shared": True})
    page = await open_page(tenant.key_of("bob"), f"#/c/{conversation}")
    turn = page.locator(".ask-turn").last
    await turn.get_by_role("button", name="Copy with footnotes").wait_for()

    assert await turn.get_by_role("button", name="Good answer").count() == 0
    own = await open_page(tenant, f"#/c/{conversation}")
    await own.get_by_role("button", name="Good answer").wait_for()


async def test_administrators_read_feedback_and_open_its_conversation(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    colleague = tenant.key_of("bob")
    theirs = await open_page(colleague)
    first = await ask(theirs, QUESTION)
    await press(theirs, first, "Good answer", "POST")
    second = await ask(theirs, "Who counted every lantern?")
    await press(theirs, second, "Bad answer", "POST")
    await second.get_by_label("What was wrong?").fill("It was Grace.")
    await second.get_by_role("button", name="Send").click()
    await second.get_by_text("“It was Grace.”").wait_for()

    page = await open_page(tenant, "#/admin/feedback")
    rows = page.get_by_role("table", name="Feedback").locator("tbody tr")
    await rows.nth(1).wait_for()
    assert await rows.count() == 2
    bad = await rows.first.inner_text()
    assert "bob" in bad
    assert "It was Grace." in bad
    await page.get_by_label("Show").select_option("Only bad answers")
    await rows.nth(1).wait_for(state="detached")
    await rows.first.wait_for()
    assert await rows.count() == 1
    await rows.first.get_by_role("link", name="Who counted every lantern?").click()
    await page.locator(".ask-turn").nth(1).wait_for()
    assert page.url.endswith(theirs.url.partition("#")[2])
    assert await pressed(page.locator(".ask-turn").last) == ["false", "false"], "theirs is another word"


@needs_axe
async def test_the_feedback_form_has_no_accessibility_violations(open_page: Opening, tenant: Tenant, url: str) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant, width=390)
    turn = await ask(page, QUESTION)
    await turn.get_by_role("button", name="Bad answer").focus()
    await page.keyboard.press("Enter")
    await turn.get_by_label("What was wrong?").fill("x" * 300)
    found = await found_in(page, "writing")
    await turn.get_by_role("button", name="Send").click()
    await turn.get_by_text("xxx").wait_for()
    await page.goto(f"{url}/#/admin/feedback")
    await page.get_by_role("table", name="Feedback").wait_for()
    assert found + await found_in(page, "listed") == []
