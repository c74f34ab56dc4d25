"""Every screen, light and dark, wide and narrow, passes axe's serious rules and does not scroll sideways."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen, settled
from tests.web.made_documents import HARBOUR, LOG, QUESTION

if TYPE_CHECKING:
    from playwright.async_api import Page

_AXE = Path(__file__).parents[2] / "app" / "web" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """
(options) => axe.run(document, {resultTypes: ["violations"], ...options}).then(({violations}) => violations
  .filter(({impact}) => ["serious", "critical"].includes(impact))
  .map(({id, nodes}) => `${id}: ${nodes.map(({html, any}) =>
    `${html.slice(0, 120)} (${any[0]?.message ?? ""})`).join("; ")}`))
"""
_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
needs_axe = pytest.mark.skipif(
    not _AXE.exists(), reason="axe-core is not installed: run `npm install --no-save` in app/web"
)
pytestmark = needs_axe
ADMIN = ("overview", "keys", "users", "tenants", "prices", "budgets", "limits", "models", "health", "feedback", "audit")


async def found_in(page: "Page", name: str, *, settle: bool = True) -> list[str]:
    """What is wrong with what is shown, by all rules in the light and by those about colours in the dark.

    Without `settle` it is looked at while it still loads.
    """
    if settle:
        await settled(page)
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = [f"{name}: {one}" for one in await page.evaluate(_RUN, {})]
    await page.emulate_media(color_scheme="dark")
    found += [f"{name}, dark: {one}" for one in await page.evaluate(_RUN, _COLOURS)]
    await page.emulate_media(color_scheme="light")
    over = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [*found, f"{name}: scrolls sideways by {over} px"] if over > 0 else found


@pytest.mark.parametrize("width", [1280, 390])
async def test_screens_of_a_signed_in_user_have_no_accessibility_violations(
    open_page: Opening, tenant: Tenant, url: str, width: int
) -> None:
    page = await open_page(tenant, width=width)
    await seen(page, "h1, h2", "Start with a document")
    found = await found_in(page, "ask, empty")
    tenant.upload("harbour.txt", HARBOUR)
    log = tenant.upload("the log.pdf", LOG)
    await page.reload()
    await ask(page, "Who counted every lantern?")
    await ask(page, "What does the log say about the moon in the harbour?")
    turn = await ask(page, QUESTION)
    for summary in await page.locator(".ask-turn summary").all():
        await summary.click()
    found += await found_in(page, "ask")
    await turn.locator("a.ask-mark").first.click()
    await seen(page, ".pdf-box, .text-body mark")
    found += await found_in(page, "passage")
    for place, waited in (
        (f"#/documents/{log}", ".textLayer span"),
        ("#/usage", "[data-chart=cost] canvas"),
        ("#/tables", "form textarea"),
        ("#/documents", ".documents-table tbody tr"),
    ):
        await page.goto(f"{url}/{place}")
        await seen(page, waited)
        found += await found_in(page, place)
    await page.get_by_role("button", name="Details of the log.pdf").click()
    await page.get_by_role("dialog").wait_for()
    assert found + await found_in(page, "details") == []


@pytest.mark.parametrize("width", [1280, 390])
async def test_administration_screens_have_no_accessibility_violations(
    open_page: Opening, operator: Tenant, url: str, width: int
) -> None:
    page = await open_page(operator, width=width)
    found = []
    for section in ADMIN:
        await page.goto(f"{url}/#/admin/{section}")
        await seen(page, "main h2")
        found += await found_in(page, section)
    assert found == []


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_sign_in_screen_has_no_accessibility_violations(
    open_page: Opening, window: Window, width: int
) -> None:
    page = await open_page(width=width)
    await seen(page, "input[type=password]")
    assert await found_in(page, "sign in") == []


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_questions_about_a_key_in_a_link_have_no_accessibility_violations(
    open_page: Opening, tenant: Tenant, operator: Tenant, window: Window, width: int
) -> None:
    page = await open_page(place=f"#key={tenant.key}", width=width)
    await seen(page, "h2", f"Sign in as ada of {tenant.name}?")
    found = await found_in(page, "sign in with a link")
    await page.get_by_role("button", name="Sign in").click()
    await seen(page, "h1", "Start with a document")
    await page.evaluate("key => { location.hash = `key=${key}` }", operator.key)
    await seen(page, "dialog", "The link is for another key")
    found += await found_in(page, "switch with a link")

    assert found == []


@pytest.mark.parametrize("width", [1280, 390])
async def test_inviting_and_joining_have_no_accessibility_violations(
    open_page: Opening, tenant: Tenant, url: str, width: int
) -> None:
    page = await open_page(tenant, "#/admin/users", width=width)
    await page.get_by_role("button", name="Invite a person").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("Grace Hopper")
    found = await found_in(page, "invite")
    await dialog.get_by_role("button", name="Invite a person").click()
    link = await page.get_by_label("Link", exact=True).input_value()
    found += await found_in(page, "link")
    await page.get_by_role("button", name="I have stored it").click()
    await page.get_by_role("button", name="Revoke Grace Hopper").wait_for()
    found += await found_in(page, "people")

    guest = await open_page(place=link.removeprefix(f"{url}/"), width=width)
    await seen(guest, "h2", "invites you")
    found += await found_in(guest, "invitation")
    await guest.get_by_role("button", name="Join").click()
    await guest.get_by_label("Your key").wait_for()
    assert found + await found_in(guest, "first key") == []
