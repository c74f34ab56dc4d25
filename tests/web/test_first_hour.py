"""The first hour with a new installation, in one go: what people do in the page, and what a program does beside it.

The commands of the README, which belong to the same hour, are in `tests/e2e/test_readme.py`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import openai
import pytest

from tests.server import ADMIN_KEY, Server
from tests.web.administering import secret_shown, works
from tests.web.asking import ask
from tests.web.conftest import Opening, Window
from tests.web.looking import seen
from tests.web.made_documents import LOG, chosen

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(300)

FARE = "What does a return ticket cost?"
SHIPS = "How many ships left the harbour?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A new installation with the default models."""
    server = Server(tmp_path_factory.mktemp("hour") / "data")
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def url(server: Server) -> str:
    """The address of the page."""
    return server.url


async def test_the_first_hour(open_page: Opening, server: Server, window: Window, url: str, tmp_path: Path) -> None:
    page = await open_page(place=f"#key={ADMIN_KEY}")
    await page.get_by_role("button", name="Sign in").click()
    await seen(page, "h1", "Start with a document")
    assert "key" not in page.url
    conversation = await uploads_and_asks(page)
    await follows_up_exports_and_looks_at_the_bill(page)
    await asks_in_two_tabs(page, url)
    await administers(page, server)
    await looks_on_a_phone(page, conversation)
    asks_as_a_program(server)
    await starts_again(page, server, window)


async def uploads_and_asks(page: "Page") -> str:
    """The sample and a file; an answer and its footnote. Returns the conversation's place."""
    await page.get_by_role("button", name="Try it with a sample").click()
    await page.get_by_role("link", name="Open The Aldey ferry.md").wait_for()
    await page.get_by_role("link", name="Documents", exact=True).click()
    await page.get_by_label("Add files").set_input_files(chosen("the log.pdf", LOG))
    await page.get_by_role("link", name="Open the log.pdf").wait_for()
    await page.get_by_role("link", name="Ask", exact=True).click()
    turn = await ask(page, FARE)
    assert "8 euros" in await turn.inner_text()
    await turn.get_by_role("link", name="Footnote 1: The Aldey ferry.md").first.click()
    panel = page.get_by_role("complementary", name="The cited passage")
    await seen(page, "mark", "8 euros")
    assert "A return ticket costs 8 euros" in await panel.inner_text()
    await page.keyboard.press("Escape")
    return page.url.partition("/#")[2]


async def follows_up_exports_and_looks_at_the_bill(page: "Page") -> None:
    """A question that needs the one before it; the conversation as a file; tokens that are not 0."""
    turn = await ask(page, "And for how long is it valid?")
    assert "one month" in await turn.inner_text()
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Export").click()
    text = (await (await downloading.value).path()).read_text(encoding="utf-8")
    assert f"## {FARE}" in text
    assert "8 euros" in text
    await turn.locator(".ask-how summary").click()
    total = turn.locator(".ask-how tfoot td.number").first
    assert int((await total.inner_text()).replace(",", "")) > 0
    await page.get_by_role("link", name="Usage", exact=True).click()
    await seen(page, ".card", "2 answers")


async def asks_in_two_tabs(page: "Page", url: str) -> None:
    """A conversation that one tab begins is in the other's list."""
    await page.get_by_role("link", name="Ask", exact=True).click()
    other = await page.context.new_page()
    await other.goto(f"{url}/")
    await ask(other, SHIPS)
    await seen(page, ".ask-list .ask-title", SHIPS)
    await other.close()


async def administers(page: "Page", server: Server) -> None:
    """A user, a key, a budget, a price, a tenant."""
    dialog = page.get_by_role("dialog")
    await page.get_by_role("link", name="Administration").click()
    await page.get_by_role("link", name="People").click()
    await page.get_by_role("button", name="New user").click()
    await dialog.get_by_label("Name", exact=True).fill("Roberta")
    await dialog.get_by_label("Id", exact=True).fill("bob")
    await dialog.get_by_role("button", name="New user").click()
    await page.get_by_role("row", name="Roberta").wait_for()

    await page.get_by_role("link", name="Keys", exact=True).click()
    await page.get_by_role("button", name="New key").click()
    await dialog.get_by_label("Name", exact=True).fill("laptop")
    await dialog.get_by_role("button", name="New key").click()
    assert works(server.http, await secret_shown(page))

    await page.get_by_role("link", name="Budgets").click()
    await page.get_by_role("button", name="New budget").click()
    await dialog.get_by_label("Whose use counts").select_option("user")
    await dialog.get_by_label("Which", exact=True).select_option("bob")
    await dialog.get_by_label("At most").fill("1 000 000")
    await dialog.get_by_role("button", name="New budget").click()
    await page.get_by_text("Saved.").wait_for()

    await page.get_by_role("link", name="Prices").click()
    await page.get_by_role("button", name="Set a price all-MiniLM-L6-v2").click()
    await dialog.get_by_label("Embedding", exact=True).fill("0.02")
    await dialog.get_by_role("button", name="New price").click()
    await page.get_by_text("The price is entered.").wait_for()

    await page.get_by_role("link", name="Tenants").click()
    await page.get_by_role("button", name="New tenant").click()
    await dialog.get_by_label("Name", exact=True).fill("House of Ink")
    await dialog.get_by_label("Id", exact=True).fill("ink")
    await dialog.get_by_role("button", name="New tenant").click()
    secret = await secret_shown(page)
    theirs = server.http.get("/v1/documents", headers={"Authorization": f"Bearer {secret}"}).json()
    assert theirs["data"] == [], "another tenant sees no document"


async def looks_on_a_phone(page: "Page", conversation: str) -> None:
    """The conversation on a narrow screen: nothing is wider than it."""
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{page.url.partition('#')[0]}#{conversation}")
    await seen(page, ".ask-turn h2", FARE)
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


def asks_as_a_program(server: Server) -> None:
    """OpenAI's client lists the model, asks, and reads a bill that is not 0."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
        assert "footnote" in [model.id for model in client.models.list()]
        said = client.chat.completions.create(model="footnote", messages=[{"role": "user", "content": FARE}])
    assert "8 euros" in str(said.choices[0].message.content)
    assert said.usage is not None
    assert said.usage.prompt_tokens > 0


async def starts_again(page: "Page", server: Server, window: Window) -> None:
    """After a restart the session, the documents and the conversations are there, and the books agree."""
    place = page.url.partition("/#")[2]
    await page.goto("about:blank")
    assert server.stop() in {0, -15}
    server.start()
    window.url = server.url  # it has another port, which nothing stops the page from; the session is the browser's
    await page.context.unroute_all()
    await page.goto(f"{server.url}/#{place}")
    await seen(page, ".ask-turn h2", FARE)
    names = {one["filename"] for one in server.http.get("/v1/documents").json()["data"]}
    assert names == {"The Aldey ferry.md", "the log.pdf"}
    books = server.http.get("/v1/admin/usage/reconciliation").json()
    assert books["ok"], books
