"""Signing in with a typed key or one in the address, and signing out."""

from tests.web.conftest import REFUSED, Opening, Tenant, Window
from tests.web.looking import seen


async def test_a_key_signs_in_and_is_not_kept(open_page: Opening, tenant: Tenant, window: Window) -> None:
    window.excuse(REFUSED)
    page = await open_page()
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


async def test_a_key_in_the_address_signs_in_and_leaves_it(open_page: Opening, tenant: Tenant, url: str) -> None:
    page = await open_page(place=f"#key={tenant.key}")
    await seen(page, "h1", "Start with a document")

    assert "key" not in page.url
    entries = await page.evaluate("history.length")
    await page.goto(f"{url}/#/usage")
    await seen(page, "main h1", "Usage")
    assert await page.evaluate("history.length") == entries + 1
    await page.go_back()
    await seen(page, "h1", "Start with a document")
    assert "key" not in page.url


async def test_a_wrong_key_is_refused_in_words(open_page: Opening, window: Window) -> None:
    window.excuse(REFUSED)
    page = await open_page(place="#key=fn_no_key_of_this_server")
    await seen(page, "input[type=password]")
    assert "fn_no_key" not in page.url

    await page.get_by_label("API key").fill("fn_no_key_of_this_server")
    await page.get_by_role("button", name="Sign in").click()
    said = await page.get_by_role("alert").inner_text()
    assert "key" in said.lower()
    assert await page.get_by_label("API key").input_value() == "fn_no_key_of_this_server"
