"""Conversations in two tabs of one browser: what one changes, the other shows."""

from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import LOG, QUESTION


async def test_a_conversation_is_listed_renamed_and_gone_in_the_other_tab_too(
    open_page: Opening, tenant: Tenant, url: str
) -> None:
    tenant.upload("the log.pdf", LOG)
    other = await open_page(tenant)
    await seen(other, ".ask-none", "What you ask is kept here.")
    page = await other.context.new_page()
    await page.goto(f"{url}/")
    await ask(page, QUESTION)
    await seen(other, ".ask-list .ask-title", QUESTION)

    await page.get_by_role("button", name="Rename").click()
    await page.get_by_role("dialog").get_by_label("Name").fill("Ships")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await seen(other, ".ask-list .ask-title", "Ships")

    await page.get_by_role("button", name="Delete “Ships”").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    await seen(other, ".ask-none", "What you ask is kept here.")


async def test_a_tab_reads_its_list_again_when_it_gets_the_focus(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant)
    await seen(page, ".ask-none", "What you ask is kept here.")
    tenant.upload("the log.pdf", LOG)
    made = tenant.http.post("/v1/conversations", json={"title": "Ships"}).json()["id"]
    tenant.http.post("/v1/ask", json={"question": QUESTION, "conversation_id": made})  # in another browser

    await page.evaluate("window.dispatchEvent(new Event('focus'))")
    await seen(page, ".ask-list .ask-title", "Ships")
