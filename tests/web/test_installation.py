"""Operators manage the installation in the page: its index, prices and tenants."""

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.app.server.embedder_swaps import BLOCK, wait_until
from tests.faults.forked import ForkedServer
from tests.installation import installed
from tests.web.administering import secret_shown, works
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.reembedded import allow, before, during

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

TEXTS = [f"The keeper of tower{number} counted ships{number} in winter{number}." for number in range(2 * BLOCK + 1)]
LATE = "A lighthouse stood at the harbour."
REFRESHED_MS = 5_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedServer]:
    """One whose documents another embedder is to embed anew, which has not begun."""
    data_dir = installed(tmp_path_factory.mktemp("installation") / "data")
    filled = ForkedServer(data_dir, before, drain_s=1)
    server = ForkedServer(data_dir, during, drain_s=1)
    try:
        filled.start()
        for number, text in enumerate(TEXTS):
            filled.upload(f"{number}.txt", text)
        filled.settled()
        filled.stop()
        allow(data_dir, 0)
        yield server.start()
    finally:
        filled.close()
        server.close()


def generations(http: httpx.Client) -> dict[int, dict[str, Any]]:
    return {one["id"]: one for one in http.get("/v1/admin/generations").json()["data"]}


def statuses(http: httpx.Client) -> dict[int, str]:
    return {number: one["status"] for number, one in generations(http).items()}


def embedded(http: httpx.Client, *, passages: int) -> None:
    """Wait until so many passages are in the index that is built."""
    wait_until(lambda: generations(http)[2]["progress"]["done"] == passages)


async def asked_again(page: "Page") -> None:
    """Let the time pass after which the page asks again how far the index is."""
    await page.clock.fast_forward(REFRESHED_MS)


async def test_a_new_index_is_built_rolled_back_and_abandoned(
    open_page: Opening, server: ForkedServer, operator: Tenant, url: str
) -> None:
    http = operator.http
    allow(server.data_dir, 1)
    page = await open_page(operator)
    await page.clock.install()
    await page.goto(f"{url}/#/admin/models")
    table = page.get_by_role("table", name="Index", exact=True)
    old, new = table.get_by_role("row", name="1 hashing"), table.get_by_role("row", name="2 hashing")
    await seen(page, ".progress")
    assert "in use" in await old.inner_text()
    assert "being built" in await new.inner_text()
    for done in (BLOCK, 2 * BLOCK):
        allow(server.data_dir, done // BLOCK)
        embedded(http, passages=done)
        await asked_again(page)
        await new.locator(".progress > .small", has_text=f"{done} of {len(TEXTS)} passages").wait_for()
        share = await new.get_by_role("meter").get_attribute("value")
        assert float(share or 0) == pytest.approx(done / len(TEXTS))
    assert await page.get_by_role("button", name="Go back").count() == 0, "there is nothing to go back to yet"

    allow(server.data_dir, 1000)
    wait_until(lambda: statuses(http) == {1: "previous", 2: "active"})
    late = operator.upload("late.txt", LATE)
    await asked_again(page)
    await old.get_by_text("kept, to go back to").wait_for()
    await new.get_by_text("in use").wait_for()
    await page.get_by_role("button", name="Go back 2").click()
    await page.get_by_role("dialog").get_by_role("button", name="Go back").click()
    await page.get_by_text("Going back. The present index is searched until the other is ready.").wait_for()
    wait_until(lambda: statuses(http) == {1: "active", 2: "previous"})
    await asked_again(page)
    await old.get_by_text("in use").wait_for()
    await new.get_by_text("given up").wait_for()
    found = http.post("/v1/search", json={"query": LATE, "mode": "dense", "top_k": 1}).json()["data"]
    assert [hit["document_id"] for hit in found] == [late]
    assert operator.http.get(f"/v1/documents/{late}").json()["embedding"]["generation"] == 1

    await page.get_by_role("button", name="Keep it 1").click()
    await page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    await new.get_by_text("gone").wait_for()
    wait_until(lambda: generations(http)[2]["purged"])
    assert statuses(http) == {1: "active", 2: "retired"}
    assert await page.get_by_role("button", name="Keep it").count() == 0
    written = [one["action"] for one in http.get("/v1/admin/audit").json()["data"]]
    assert [one for one in written if one.startswith("generation.")] == ["generation.retired", "generation.rolled_back"]


async def test_earlier_calls_are_rerated_with_a_backdated_price(open_page: Opening, operator: Tenant) -> None:
    http = operator.http
    page = await open_page(operator, "#/admin/prices")
    await page.get_by_text("There are no prices yet, so nothing has a cost.").wait_for()
    missing = page.locator(".price-missing li", has_text="hashing")
    assert "calls" in await missing.inner_text(), "a model that was used without a price is named"
    await missing.get_by_role("button", name="Set a price hashing").click()
    dialog = page.get_by_role("dialog")
    assert await dialog.get_by_label("Model", exact=True).input_value() == "hashing"
    proposed = dialog.locator("datalist option")
    await proposed.first.wait_for(state="attached")
    first, *others = await proposed.evaluate_all("(all) => all.map((one) => one.label)")
    assert first.startswith("hashing: "), "what made calls is proposed first"
    assert first.endswith(" tokens in the last 30 days")
    assert all(one.endswith(": no calls in the last 30 days") for one in others)
    await dialog.get_by_label("Embedding", exact=True).fill("2,5")
    begins = datetime.now(ZoneInfo("Europe/Berlin")).replace(second=0, microsecond=0) - timedelta(hours=2)
    await dialog.get_by_label("From", exact=True).fill(begins.strftime("%Y-%m-%dT%H:%M"))
    await dialog.get_by_role("button", name="New price").click()
    assert "with a point" in await dialog.get_by_role("alert").inner_text()
    await dialog.get_by_label("Embedding", exact=True).fill("2.5")
    await dialog.get_by_role("button", name="New price").click()
    await page.get_by_text("The price is entered.").wait_for()
    [price] = http.get("/v1/admin/prices").json()["data"]
    assert (price["model"], price["meter"], price["price_per_million"]) == ("hashing", "embedding", "2.500000")
    assert price["effective_from"] == begins.timestamp()
    row = page.get_by_role("table", name="Prices of hashing").locator("tbody tr")
    assert "2.50 USD" in await row.inner_text()
    await row.get_by_text("in force").wait_for()

    assert await page.locator(".price-missing li", has_text="hashing").count() == 0, "it has a price now"

    def outlook() -> dict[str, Any]:
        """What pricing the last day's calls again would do."""
        now = int(time.time())
        body = {"start_time": now - 86_400, "end_time": now + 60, "reason": "to see"}
        found: dict[str, Any] = http.post("/v1/admin/prices/rerate", json=body).json()
        return found

    expected = outlook()
    assert expected["num_adjusted"] >= len(TEXTS) > 0
    await page.get_by_role("button", name="Price earlier calls").click()
    await dialog.get_by_label("Reason").fill("The price was forgotten.")
    await dialog.get_by_role("button", name="See what would change").click()
    counted = f"Of {expected['num_calls']} calls, {expected['num_adjusted']} would change."
    await dialog.get_by_text(counted).wait_for()
    assert outlook()["num_adjusted"] == expected["num_adjusted"], "looking changes nothing"
    await dialog.get_by_role("button", name="Write the corrections").click()
    await page.get_by_text(f"{expected['num_adjusted']} calls are corrected.").wait_for()

    assert outlook()["num_adjusted"] == 0
    lines = http.get("/v1/admin/usage/events?start_time=0&statuses=adjustment&limit=500").json()["data"]
    assert len(lines) == expected["num_adjusted"]


async def test_strangers_are_shown_the_way_to_the_provider(
    open_page: Opening, operator: Tenant, window: Window, url: str
) -> None:
    page = await open_page()
    way = page.get_by_role("link", name="Sign in with your organisation")
    assert await way.get_attribute("href") == f"{url}/v1/session/oidc/login"
    await page.get_by_label("API key").fill(operator.key)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("button", name="Sign out").click()
    await way.wait_for()


async def test_signing_out_gives_up_first_what_the_page_waits_for(open_page: Opening, operator: Tenant) -> None:
    page = await open_page()
    given_up = asyncio.Event()

    async def unanswered(route: "Route") -> None:
        await given_up.wait()
        await route.abort()

    async def afterwards(route: "Route") -> None:
        if route.request.method == "DELETE":
            await given_up.wait()
        await route.continue_()

    page.on("requestfailed", lambda _: given_up.set())
    await page.route("**/v1/conversations?*", unanswered)
    await page.route("**/v1/session", afterwards)
    await page.get_by_label("API key").fill(operator.key)
    async with page.expect_request("**/v1/conversations?*"):
        await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_role("link", name="Sign in with your organisation").wait_for()


async def test_a_tenant_is_made_with_its_first_key_shut_out_and_let_in(open_page: Opening, operator: Tenant) -> None:
    http = operator.http
    page = await open_page(operator, "#/admin/tenants")
    await page.get_by_role("button", name="New tenant").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("House of Ink")
    await dialog.get_by_label("Id", exact=True).fill("ink")
    await dialog.get_by_role("button", name="New tenant").click()
    secret = await secret_shown(page)
    row = page.get_by_role("row", name="House of Ink")
    await row.get_by_text("let in").wait_for()
    signed_in = http.get("/v1/session", headers={"Authorization": f"Bearer {secret}"}).json()
    assert (signed_in["tenant_id"], signed_in["role"], signed_in["operator"]) == ("ink", "admin", False)
    assert http.get("/v1/admin/tenants/ink").json()["name"] == "House of Ink"

    await row.get_by_role("button", name="Disable").click()
    await dialog.get_by_role("button", name="Disable").click()
    await row.get_by_text("disabled since").wait_for()
    assert not works(http, secret)
    await row.get_by_role("button", name="Enable").click()
    await row.get_by_text("let in").wait_for()
    assert works(http, secret)
    own = page.get_by_role("row", name="yours")
    assert await own.get_by_role("button", name="Disable").count() == 0, "nobody shuts themselves out"


async def test_a_model_is_added_with_its_terms_and_progress(
    open_page: Opening, operator: Tenant, window: Window
) -> None:
    """The hub is played here: the additions themselves are tested with the hub's own client."""
    window.excuse("409")
    addition: dict[str, Any] = {
        "id": "mod_1",
        "object": "model_addition",
        "model": "someone/model-2b",
        "commit": "0123456789abcdef",
        "licence": "gemma",
        "bytes": 4_000_000_000,
        "done_bytes": 1_000_000_000,
        "state": "downloading",
        "detail": None,
        "started_at": 1,
    }
    refused = {"type": "urn:footnote:problem:terms-not-accepted", "title": "Conflict", "status": 409}
    asked: list[dict[str, Any]] = []
    listed: list[dict[str, Any]] = []

    async def adding(route: "Route") -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        sent: dict[str, Any] = route.request.post_data_json or {}
        asked.append(sent)
        if asked[-1]["accept_terms"]:
            listed.append(addition)
            await route.fulfill(status=202, json=addition)
        else:
            detail = "someone/model-2b has the licence gemma, whose terms are at its page of the hub."
            await route.fulfill(status=409, json={**refused, "detail": detail}, content_type="application/problem+json")

    async def additions(route: "Route") -> None:
        if route.request.method == "DELETE":
            listed[0] = {**addition, "state": "cancelled"}
            await route.fulfill(json=listed[0])
        else:
            await route.fulfill(json={"object": "list", "data": listed})

    page = await open_page(operator, "#/admin/models")
    await page.route("**/v1/admin/models", adding)
    await page.route("**/v1/admin/models/additions*", additions)
    await page.route("**/v1/admin/models/additions/*", additions)
    part = page.locator("section.part", has=page.get_by_role("heading", name="Add a model"))
    await part.get_by_label("Model").fill("someone/model-2b")
    await page.get_by_role("button", name="Download").click()
    await page.get_by_text("has the licence gemma").wait_for()
    assert await page.get_by_role("button", name="Download").is_disabled()
    await page.get_by_label("I have read the terms").check()
    await page.get_by_role("button", name="Download").click()
    await page.get_by_role("progressbar", name="someone/model-2b").wait_for()
    await page.get_by_text("1 GB of 4 GB").wait_for()
    assert [one["accept_terms"] for one in asked] == [False, True]

    listed[0] = {**addition, "state": "added", "done_bytes": addition["bytes"]}
    await page.get_by_text("FOOTNOTE_GENERATOR=someone/model-2b").wait_for()
    listed[0] = addition
    await page.reload()
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_text("What was downloaded is kept for the next time.").wait_for()
