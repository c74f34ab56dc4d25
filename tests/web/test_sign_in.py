"""Signing in, with a key that is typed or comes in the address, and out."""

from tests.web.conftest import Opening, Tenant, Window

REFUSED = "the server responded with a status of 401"
NO_PROVIDER = "the server responded with a status of 404"


async def test_a_key_signs_in_and_is_not_kept(open_page: Opening, tenant: Tenant, window: Window) -> None:
    window.excuse(REFUSED)  # to ask who is signed in
    window.excuse(NO_PROVIDER)
    page = await open_page()
    await page.get_by_label("API key").fill(f"  {tenant.key}\n")
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="Start with a document").wait_for()

    kept = await page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )
    assert tenant.key not in kept
    await page.reload()
    await page.get_by_role("heading", name="Start with a document").wait_for()
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_label("API key").wait_for()
    await page.reload()
    await page.get_by_label("API key").wait_for()


async def test_a_key_in_the_address_signs_in_and_leaves_it(open_page: Opening, tenant: Tenant, url: str) -> None:
    page = await open_page(tenant)
    await page.get_by_role("heading", name="Start with a document").wait_for()

    assert "key" not in page.url
    entries = await page.evaluate("history.length")
    await page.goto(f"{url}/#/usage")
    await page.get_by_role("heading", name="Usage", exact=True).wait_for()
    assert await page.evaluate("history.length") == entries + 1
    await page.go_back()
    await page.get_by_role("heading", name="Start with a document").wait_for()
    assert "key" not in page.url


async def test_a_wrong_key_is_refused_in_words(open_page: Opening, window: Window) -> None:
    window.excuse(REFUSED)
    window.excuse(NO_PROVIDER)
    page = await open_page(place="#key=fn_no_key_of_this_server")
    await page.get_by_label("API key").wait_for()
    assert "fn_no_key" not in page.url

    await page.get_by_label("API key").fill("fn_no_key_of_this_server")
    await page.get_by_role("button", name="Sign in").click()
    said = await page.get_by_role("alert").inner_text()
    assert "key" in said.lower()
    assert await page.get_by_label("API key").input_value() == "fn_no_key_of_this_server"
