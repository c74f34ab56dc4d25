"""Hostile markup in documents, questions and answers is shown as text and runs nothing.

The `window` fixture also asserts for every test that no other host was contacted and no policy was violated.
"""

from typing import TYPE_CHECKING

import pytest

from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen, settled
from tests.web.made_documents import EVIL, HOSTILE, HOSTILE_DOCUMENT, HOSTILE_NAME

if TYPE_CHECKING:
    from playwright.async_api import Page

QUESTION = "How many parrots live on the island?"
_LIVE = """
() => ["script", "style", "iframe", "img", "svg[onload]", "link", "meta", "object", "embed", "base"]
  .flatMap((name) => [...document.querySelectorAll(`main ${name}`)])
  .map((element) => element.outerHTML)
  .concat([...document.querySelectorAll("*")].flatMap((element) => [...element.attributes]
    .filter(({name, value}) => name.startsWith("on") || /^\\s*(javascript|data):/i.test(value))
    .map(({name, value}) => `${name}=${value}`)))
"""


async def assert_inert(page: "Page") -> None:
    await settled(page)
    assert await page.evaluate("window.__pwned") is None
    assert await page.evaluate(_LIVE) == []


def upload(tenant: Tenant) -> str:
    """The id of a document whose text, name and metadata are hostile."""
    response = tenant.http.post(
        "/v1/documents",
        json={
            "text": HOSTILE_DOCUMENT,
            "filename": HOSTILE_NAME,
            "wait": 30,
            "metadata": {"<img src=x onerror=alert(1)>": HOSTILE},
        },
    )
    body = response.json()
    assert body.get("status") == "indexed", body
    return str(body["id"])


async def test_hostile_markup_in_an_answer_and_its_footnotes_is_shown_as_text(
    open_page: Opening, tenant: Tenant
) -> None:
    upload(tenant)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    assert "<script>window.__pwned = 1</script>" in await turn.locator(".ask-text").inner_text()
    for summary in await turn.locator("summary").all():
        await summary.click()
    await turn.locator("a.ask-mark").first.hover()
    await page.get_by_role("tooltip").wait_for()
    await assert_inert(page)
    for link in await turn.locator(".ask-text a:not(.ask-mark)").all():
        assert (await link.get_attribute("rel")) == "noopener noreferrer"
        assert (await link.get_attribute("href") or "").startswith(EVIL)

    await turn.locator("a.ask-mark").first.click()
    await seen(page, ".text-body mark")
    await assert_inert(page)
    await page.reload()  # the kept conversation
    await seen(page, ".ask-turn a.ask-mark")
    await assert_inert(page)


async def test_hostile_markup_in_a_question_is_shown_as_text(open_page: Opening, tenant: Tenant) -> None:
    upload(tenant)
    page = await open_page(tenant)
    await ask(page, f"How many parrots? {HOSTILE}".replace("\n", " "))
    await assert_inert(page)


async def test_hostile_names_and_metadata_are_inert_in_lists_details_and_reports(
    open_page: Opening, tenant: Tenant
) -> None:
    document_id = upload(tenant)
    tenant.ask(QUESTION)
    page = await open_page(tenant, "#/documents")
    name = tenant.http.get(f"/v1/documents/{document_id}").json()["filename"]
    await seen(page, ".documents-table a", name)
    await assert_inert(page)
    await page.get_by_role("button", name=f"Details of {name}").click()
    await page.get_by_role("dialog").get_by_text("Your own fields").wait_for()
    await assert_inert(page)
    await page.keyboard.press("Escape")

    await page.get_by_role("link", name="Usage").click()
    await seen(page, "[data-table=documents] tbody tr")
    async with page.expect_response(lambda response: "group_by=document_id" in response.url):
        await page.get_by_label("Split by").select_option("document")
    await assert_inert(page)


@pytest.mark.parametrize("name", ["notes.md", "page.html", "mail.eml", "drawing.svg"])
async def test_a_hostile_document_is_inert_in_the_document_viewer(
    open_page: Opening, tenant: Tenant, name: str
) -> None:
    head = "Subject: hello\r\nContent-Type: text/html\r\n\r\n" if name.endswith(".eml") else ""
    body = (
        f"<html><body>{HOSTILE_DOCUMENT}</body></html>" if name.endswith(("html", "eml", "svg")) else HOSTILE_DOCUMENT
    )
    files = {"file": (name, (head + body).encode())}
    document_id = tenant.http.post("/v1/documents", files=files, data={"wait": "30"}).json()["id"]
    page = await open_page(tenant, f"#/documents/{document_id}")
    await seen(page, "main h1")
    await assert_inert(page)


async def test_a_hostile_html_original_is_downloaded_and_runs_no_script(
    open_page: Opening, tenant: Tenant, url: str
) -> None:
    files = {"file": ("page.html", f"<html><body>{HOSTILE_DOCUMENT}</body></html>".encode())}
    document_id = tenant.http.post("/v1/documents", files=files, data={"wait": "30"}).json()["id"]
    page = await open_page(tenant)
    async with page.expect_download() as download:
        await page.evaluate("address => { location.href = address }", f"{url}/v1/documents/{document_id}/file")
    assert (await download.value).suggested_filename == "page.html"
    assert await page.evaluate("window.__pwned") is None
