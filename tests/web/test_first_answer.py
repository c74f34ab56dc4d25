"""A new user's first answer: upload a file, ask a question, and open the cited page."""

from typing import TYPE_CHECKING

from tests.web.asking import ask, begin
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.made_documents import CLAIM, HARBOUR, LOG, QUESTION, SLOWLY, chosen

if TYPE_CHECKING:
    from playwright.async_api import Page


async def test_a_new_user_uploads_a_file_asks_and_opens_the_cited_page(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant)
    await page.get_by_label("Add files").set_input_files(chosen("the log.pdf", LOG))
    await page.get_by_role("link", name="Open the log.pdf").wait_for()
    await page.get_by_role("link", name="Ask a question").click()
    turn = await ask(page, QUESTION)
    assert CLAIM in await turn.locator(".ask-text").inner_text()
    said = await turn.locator(".ask-footnotes blockquote").inner_text()
    assert CLAIM in said, "a short answer is shown with its passage"
    tall, window = await page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
    assert tall <= window, "a short conversation does not scroll"
    mark = turn.get_by_role("link", name="Footnote 1: the log.pdf, page 2")
    await mark.hover()
    assert CLAIM in await page.get_by_role("tooltip").inner_text()

    await mark.click()
    panel = page.get_by_role("complementary", name="The cited passage")
    await panel.locator('[data-page="2"] .pdf-box').first.wait_for()
    await page.wait_for_function("() => document.querySelector('.pdf-page-field input').value === '2'")
    assert CLAIM in await panel.get_by_role("figure").inner_text()


async def test_a_stopped_answer_keeps_the_text_streamed_so_far(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    await begin(page, f"What did the keeper do, told {SLOWLY}?")
    text = page.locator(".ask-text")
    await text.wait_for()
    early = len(await text.inner_text())
    await page.wait_for_function(
        "least => document.querySelector('.ask-text').innerText.length > least", arg=early + 20
    )
    await page.get_by_role("button", name="Stop", exact=True).click()

    await page.locator(".ask-note", has_text="You stopped this answer.").wait_for()
    await page.get_by_role("button", name="Ask", exact=True).wait_for()
    written = len(await text.inner_text())
    assert early + 20 < written < 2000
    assert tenant.http.get("/v1/usage").json()["today"]["completions"]["output_tokens"] >= written - 5


async def how_made(page: "Page") -> str:
    """What is said of how the last answer was made."""
    how = page.locator(".ask-how").last
    await how.locator("summary").click()
    await how.locator("section").last.wait_for()
    return await how.inner_text()


async def test_a_conversation_is_named_shared_and_read_by_somebody_else(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    tenant.upload("the log.pdf", LOG)
    colleague = tenant.key_of("bob")
    window.excuse("404")
    page = await open_page(tenant)
    await ask(page, QUESTION)
    place = page.url.partition("/#")[2]
    theirs = await open_page(colleague, f"#{place}")
    await theirs.get_by_text("This conversation does not exist, or it is not yours to see.").wait_for()

    await page.get_by_role("button", name="Rename").click()
    await page.get_by_label("Name", exact=True).fill("What the keeper wrote")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.get_by_role("navigation", name="Conversations").get_by_text("What the keeper wrote").wait_for()
    await page.get_by_role("button", name="Share").click()
    await page.get_by_label("Everyone in your organisation").check()
    await page.get_by_text("They cannot add to it.").wait_for()
    await seen(page, ".ask-head .badge", "Shared")  # the server's word; the choice itself shows at once
    await page.get_by_role("button", name="Copy link").click()
    link = await page.evaluate("navigator.clipboard.readText()")
    assert link.endswith(f"#{place}")

    await theirs.goto(link)
    await theirs.reload()
    await theirs.get_by_text("ada shared this conversation with you.").wait_for()
    assert CLAIM in await theirs.locator(".ask-text").inner_text()
    assert await theirs.get_by_label("Your question").count() == 0
    assert await theirs.get_by_role("button", name="Ask again").count() == 0
    await theirs.get_by_role("link", name="Footnote 1: the log.pdf, page 2").click()
    await theirs.get_by_role("complementary", name="The cited passage").locator(".pdf-box").first.wait_for()


async def test_a_conversation_is_opened_again_by_its_address(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    await ask(page, QUESTION)
    place = page.url.partition("/#")[2]
    assert place.startswith("/c/conv_")
    lantern = await ask(page, "Who counted every lantern?")
    assert "purple" in await lantern.locator(".ask-uncited").first.inner_text()

    other = await open_page(tenant, f"#{place}")
    await other.locator(".ask-turn").nth(1).wait_for()
    assert CLAIM in await other.locator(".ask-turn").first.inner_text()
    kept = other.locator(".ask-turn").last
    assert await kept.locator("table").count() == 1
    assert await kept.locator(".ask-mark.doubtful").count() > 0, "what nothing confirms looks different"
    assert "purple" in await kept.locator(".ask-uncited").first.inner_text()
    how = [await how_made(one) for one in (page, other)]
    assert "tokens" in how[0].lower()
    assert how[0] == how[1], "how it was made is what it was"


async def test_a_refused_question_lists_the_nearest_passages(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    turn = await ask(page, "What does the log say about the moon in the harbour?")
    await turn.get_by_text("I could not word an answer; your documents say:").wait_for()
    # the passages that were read in vain are there at once, for whoever knows better
    await turn.get_by_role("link", name="harbour.txt").first.click()
    panel = page.get_by_role("complementary", name="The cited passage")
    await panel.get_by_role("figure").wait_for()
    assert "moon" not in (await panel.get_by_role("figure").inner_text()).lower()

    again = await open_page(tenant, f"#{page.url.partition('/#')[2]}")
    await again.get_by_text("The nearest passages").click()
    await again.get_by_role("link", name="harbour.txt").first.wait_for()


async def test_an_answer_is_copied_with_its_footnotes(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    await turn.get_by_role("button", name="Copy with footnotes").click()
    copied = await page.evaluate("navigator.clipboard.readText()")

    assert copied.startswith(f"{CLAIM}")
    assert f"“{CLAIM}” — the log.pdf, page 2" in copied


async def test_a_german_question_about_an_english_document_leaves_the_page_in_its_own_language(
    open_page: Opening, tenant: Tenant
) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    turn = await ask(page, "Wie weit ist der moon von dem harbour und wann wurde das entdeckt?")
    refusal = turn.locator(".ask-refusal")
    await refusal.get_by_text("in another language than your question (English). Ask in that language.").wait_for()
    said = await refusal.inner_text()
    assert "Textstellen" not in said
    assert "Frage" not in said
