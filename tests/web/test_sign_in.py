"""Signing in with a typed key or one in the address, and signing out."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Route

WRONG_KEY = "the server responded with a status of 401"


async def test_a_key_signs_in_and_is_not_kept(open_page: Opening, tenant: Tenant, window: Window) -> None:
    page = await open_page()
    await seen(page, "input[type=password]:focus")
    await page.get_by_label("API key").fill(f"  {tenant.key}\n")
    assert await page.get_by_role("link").count() == 0, "there is no provider"
    await page.get_by_role("button", name="Sign in").click()
    await seen(page, "h1", "Start with a document")

    kept = await page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )
    assert tenant.key not in kept
    await page.reload()
    await seen(page, "h1", "Start with a document")
    await page.get_by_role("button", name="Sign out").click()
    await seen(page, "input[type=password]")
    await page.reload()
    await seen(page, "input[type=password]")


def sessions_asked_for(page: "Page") -> list[str]:
    """The requests of the page, from now on, that make a session."""
    made: list[str] = []

    def note(request: "Request") -> None:
        if request.method == "POST" and request.url.endswith("/v1/session"):
            made.append(request.url)

    page.on("request", note)
    return made


async def test_a_key_in_the_address_signs_in_once_it_is_confirmed(
    open_page: Opening, tenant: Tenant, window: Window, url: str
) -> None:
    page = await open_page(place="#key=")
    await seen(page, "input[type=password]")
    made = sessions_asked_for(page)
    await page.goto(f"{url}/#key={tenant.key}")  # as a link on the page itself: it is not loaded again
    await seen(page, "h2", f"Sign in as ada of {tenant.name}?")
    assert "key" not in page.url
    assert made == [], "nobody is signed in without being asked"
    told = await page.evaluate("fetch('v1/session/state').then(response => response.json())")
    assert told["signed_in"] is False

    await page.get_by_role("button", name="Sign in").click()
    await seen(page, "h1", "Start with a document")
    assert len(made) == 1
    entries = await page.evaluate("history.length")
    await page.goto(f"{url}/#/usage")
    await seen(page, "main h1", "Usage")
    assert await page.evaluate("history.length") == entries + 1
    await page.go_back()
    await seen(page, "h1", "Start with a document")
    assert "key" not in page.url


async def test_a_link_is_declined(open_page: Opening, tenant: Tenant, window: Window) -> None:
    page = await open_page(place=f"#key={tenant.key}")
    await page.get_by_role("button", name="Use another key").click()
    await seen(page, "input[type=password]")
    assert "key" not in page.url

    await page.reload()
    await seen(page, "input[type=password]")


async def test_a_link_leaves_the_session_that_is_there(open_page: Opening, tenant: Tenant, operator: Tenant) -> None:
    page = await open_page(tenant)
    made = sessions_asked_for(page)
    for answer in ("Stay signed in", "Close"):
        await page.evaluate("key => { location.hash = `key=${key}` }", operator.key)
        dialog = page.get_by_role("dialog", name="Switch to another key?")
        await dialog.get_by_text(f"You are signed in as ada of {tenant.name}.").wait_for()
        await dialog.get_by_text("The link is for another key: admin of default.").wait_for()
        assert "key" not in page.url
        await dialog.get_by_role("button", name=answer).click()
        await dialog.wait_for(state="detached")

    await page.reload()
    await seen(page, ".who span", "ada")
    assert await page.get_by_role("dialog").count() == 0
    assert made == []


@pytest.mark.parametrize(
    ("link", "place"), [("#/?key=KEY", ""), ("#/key=KEY", ""), ("#/usage?key=KEY", "#/usage"), ("#key=KEY", "")]
)
async def test_a_key_beside_a_place_is_taken_out_of_the_address_of_an_open_page(
    open_page: Opening, tenant: Tenant, operator: Tenant, url: str, link: str, place: str
) -> None:
    page = await open_page(tenant, "#/usage")
    made = sessions_asked_for(page)
    entries = await page.evaluate("history.length")
    await page.goto(f"{url}/{link.replace('KEY', operator.key)}")  # pasted: the page is not loaded again
    dialog = page.get_by_role("dialog", name="Switch to another key?")
    await dialog.get_by_text("The link is for another key: admin of default.").wait_for()
    assert page.url == f"{url}/{place}"
    await dialog.get_by_role("button", name="Stay signed in").click()
    await dialog.wait_for(state="detached")
    await seen(page, ".who span", "ada")
    assert await page.evaluate("history.length") == entries + 1, "the page was not loaded again"
    await seen(page, "main h1", "Usage" if place else "Start with a document")
    assert made == []


async def test_a_key_beside_a_place_is_offered_in_an_open_page_to_somebody_who_is_not_signed_in(
    open_page: Opening, tenant: Tenant, url: str
) -> None:
    page = await open_page()
    await seen(page, "input[type=password]")
    await page.goto(f"{url}/#/usage?key={tenant.key}")
    await seen(page, "h2", f"Sign in as ada of {tenant.name}?")
    assert page.url == f"{url}/#/usage"
    await page.get_by_role("button", name="Sign in").click()
    await seen(page, "main h1", "Usage")


async def test_a_link_switches_to_its_key_when_asked_to(open_page: Opening, tenant: Tenant, url: str) -> None:
    page = await open_page(tenant)
    (before,) = await page.context.cookies()
    other = tenant.key_of("eve")
    await page.goto(f"{url}/?again#key={other.key}")
    dialog = page.get_by_role("dialog", name="Switch to another key?")
    await dialog.get_by_text(f"The link is for another key: eve of {tenant.name}.").wait_for()
    await dialog.get_by_role("button", name="Switch", exact=True).click()
    await seen(page, ".who span", "eve")

    old = httpx.get(f"{url}/v1/session", cookies={before["name"]: before["value"]}, trust_env=False, timeout=60)
    assert old.status_code == 401, "the session before has ended"
    await page.reload()
    await seen(page, ".who span", "eve")


async def sign_out(page: "Page", tenant: Tenant) -> None:
    await page.get_by_role("button", name="Sign out").click()


async def switch(page: "Page", tenant: Tenant) -> None:
    await page.evaluate("key => { location.hash = `key=${key}` }", tenant.key_of("eve").key)
    await page.get_by_role("dialog").get_by_role("button", name="Switch", exact=True).click()


@pytest.mark.parametrize(("end", "shown"), [(sign_out, "input[type=password]"), (switch, ".who span[title*=eve]")])
async def test_nothing_is_asked_for_while_a_session_ends(
    open_page: Opening, tenant: Tenant, end: Callable[["Page", Tenant], Awaitable[None]], shown: str
) -> None:
    page = await open_page(tenant)
    asked: list[str] = []

    def note(request: "Request") -> None:
        if "/v1/" in request.url:
            asked.append(request.url)

    async def delay(route: "Route") -> None:
        if route.request.method == "DELETE":
            page.on("request", note)
            await page.evaluate("location.hash = '#/documents'")
            await page.get_by_role("heading", name="Documents", exact=True).wait_for(state="attached")
            page.remove_listener("request", note)
        await route.continue_()

    await page.route("**/v1/session", delay)
    await end(page, tenant)
    await seen(page, shown)
    assert asked == []


async def test_a_link_for_the_key_that_is_signed_in_asks_nothing(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant)
    async with page.expect_response("**/v1/session"):
        await page.evaluate("key => { location.hash = `key=${key}` }", tenant.key)
    await seen(page, "h1", "Start with a document")
    assert await page.get_by_role("dialog").count() == 0
    assert "key" not in page.url


async def test_a_link_with_a_wrong_key_leaves_the_session(open_page: Opening, tenant: Tenant, window: Window) -> None:
    window.excuse(WRONG_KEY)
    page = await open_page(tenant)
    await page.evaluate("location.hash = 'key=fn_no_key_of_this_server'")
    dialog = page.get_by_role("dialog", name="Switch to another key?")
    await dialog.get_by_text("The key in the link is not valid.").wait_for()
    assert await dialog.get_by_role("button", name="Switch", exact=True).count() == 0
    await dialog.get_by_role("button", name="Stay signed in").click()
    await seen(page, ".who span", "ada")


async def test_a_wrong_key_is_refused_in_words(open_page: Opening, window: Window) -> None:
    window.excuse(WRONG_KEY)
    page = await open_page(place="#key=fn_no_key_of_this_server")
    await seen(page, "input[type=password]")
    assert "fn_no_key" not in page.url
    assert await page.get_by_role("alert").inner_text() == "The key in the link is not valid."

    await page.get_by_label("API key").fill("fn_no_key_of_this_server")
    await page.get_by_role("button", name="Sign in").click()
    said = await page.locator("form").get_by_role("alert").inner_text()
    assert "key" in said.lower()
    assert await page.get_by_label("API key").input_value() == "fn_no_key_of_this_server"
