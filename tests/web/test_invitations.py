"""Administrators invite people in the page; who follows the link joins with one click and has a name."""

from typing import TYPE_CHECKING, Any

from tests.web.administering import secret_shown, works
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.made_documents import HARBOUR, QUESTION

if TYPE_CHECKING:
    from playwright.async_api import Page

NOT_FOUND = "the server responded with a status of 404"


async def link_shown(page: "Page") -> str:
    """The link that is shown this once; it is put away then."""
    field = page.get_by_label("Link", exact=True)
    link = await field.input_value()
    fits = await field.evaluate("one => one.scrollHeight <= one.clientHeight && one.scrollWidth <= one.clientWidth")
    assert fits, "all of it is seen, from its first letter on"
    await page.get_by_role("button", name="I have stored it").click()
    await field.wait_for(state="detached")
    return link


def invite(tenant: Tenant, name: str = "Grace Hopper", **fields: Any) -> str:
    """The place in the page of an invitation's link."""
    response = tenant.http.post("/v1/admin/invitations", json={"name": name, **fields})
    assert response.status_code == 201, response.text
    return "#/invitation/" + str(response.json()["link"]).rpartition("/")[2]


def names(tenant: Tenant) -> list[str]:
    return [person["name"] for person in tenant.http.get("/v1/admin/users").json()["data"]]


async def test_a_person_is_invited_joins_with_one_click_and_has_a_name(
    open_page: Opening, tenant: Tenant, url: str
) -> None:
    tenant.http.patch("/v1/admin/users/ada", json={"name": "Ada Lovelace"})
    tenant.http.post("/v1/collections", json={"name": "papers"})
    page = await open_page(tenant, "#/admin/users")
    await page.get_by_role("button", name="Invite a person").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("Grace Hopper")
    await dialog.get_by_label("E-mail").fill("grace@example.org")
    await dialog.get_by_label("Only these:").check()
    await dialog.get_by_label("papers").check()
    await dialog.get_by_label("The link works").select_option("day")
    await dialog.get_by_role("button", name="Invite a person").click()
    link = await link_shown(page)
    assert link.startswith(f"{url}/#/invitation/")
    row = page.get_by_role("table", name="Open invitations").get_by_role("row", name="Grace Hopper")
    assert "papers" in await row.inner_text()
    assert "Ada Lovelace" in await row.inner_text()

    guest = await open_page(place=link.removeprefix(f"{url}/"))
    await seen(guest, "h2", f"Ada Lovelace invites you to House {tenant.name}")
    assert "invitation" not in guest.url
    assert "Grace Hopper" not in names(tenant), "looking uses nothing"
    await guest.get_by_text("You see these collections: papers.").wait_for()
    await guest.get_by_role("button", name="Join").click()
    await guest.get_by_role("dialog", name="Welcome, Grace Hopper").wait_for()
    key = await guest.get_by_label("Your key").input_value()
    await guest.get_by_role("button", name="I have stored it").click()
    await seen(guest, ".who span", "Grace Hopper")
    await seen(guest, "h1", "Start with a document")
    assert works(tenant.http, key)
    kept = await guest.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
    assert key not in kept

    await page.reload()
    await page.get_by_text("No invitation is open.").wait_for()
    await page.get_by_role("table", name="People").get_by_role("row", name="Grace Hopper").wait_for()
    await page.get_by_role("link", name="Audit log").click()
    await page.get_by_text("Grace Hopper accepted an invitation").wait_for()
    await page.get_by_text("Ada Lovelace invited Grace Hopper").wait_for()
    await page.get_by_role("link", name="Keys", exact=True).click()
    row = page.get_by_role("row", name="browser")
    assert "Grace Hopper" in await row.inner_text()


async def test_a_link_that_was_used_or_revoked_says_so_and_leads_to_signing_in(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    window.excuse(NOT_FOUND)
    place = invite(tenant)
    page = await open_page(tenant, "#/admin/users")
    await page.get_by_role("button", name="Revoke Grace Hopper").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await page.get_by_text("The link for Grace Hopper is revoked.").wait_for()
    await page.get_by_text("No invitation is open.").wait_for()

    guest = await open_page(place=place)
    await seen(guest, "h2", "This link is not valid")
    await guest.get_by_role("button", name="Sign in with a key").click()
    await seen(guest, "input[type=password]")


async def test_an_invitation_leaves_the_session_that_is_there_unless_told_otherwise(
    open_page: Opening, tenant: Tenant
) -> None:
    place = invite(tenant)
    page = await open_page(tenant)
    await page.evaluate("place => { location.hash = place }", place)
    dialog = page.get_by_role("dialog", name="Use the invitation?")
    await dialog.get_by_text("You are signed in as ada.").wait_for()
    await dialog.get_by_role("button", name="Stay signed in").click()
    await dialog.wait_for(state="detached")
    await page.reload()
    await seen(page, ".who span", "ada")
    assert "Grace Hopper" not in names(tenant)

    await page.evaluate("place => { location.hash = place }", place)
    await dialog.get_by_role("button", name="Sign out and go on").click()
    await page.get_by_role("button", name="Join").click()
    await page.get_by_role("button", name="I have stored it").click()
    await seen(page, ".who span", "Grace Hopper")
    await page.reload()
    await seen(page, ".who span", "Grace Hopper")


async def test_somebody_who_lost_access_gets_a_link(open_page: Opening, tenant: Tenant, url: str) -> None:
    tenant.http.post("/v1/admin/users", json={"id": "bob", "name": "Bob"})
    tenant.key_of("bob")
    page = await open_page(tenant, "#/admin/users")
    await page.get_by_role("button", name="Sign-in link Bob").click()
    await page.get_by_role("dialog").get_by_role("button", name="Sign-in link").click()
    link = await link_shown(page)

    guest = await open_page(place=link.removeprefix(f"{url}/"))
    await seen(guest, "h2", f"Sign in to House {tenant.name}")
    await guest.get_by_role("button", name="Sign in", exact=True).click()
    await secret_stored(guest)
    await seen(guest, ".who span", "Bob")
    assert names(tenant).count("Bob") == 1


async def secret_stored(page: "Page") -> None:
    await page.get_by_role("button", name="I have stored it").click()
    await page.get_by_role("dialog").wait_for(state="detached")


async def test_all_of_a_new_secret_is_seen(open_page: Opening, tenant: Tenant) -> None:
    for width in (1280, 390):
        page = await open_page(tenant, "#/admin/keys", width=width)
        await page.get_by_role("button", name="New key").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Name", exact=True).fill(f"laptop {width}")
        await dialog.get_by_role("button", name="New key").click()
        field = page.get_by_label("Secret", exact=True)
        await field.wait_for()
        place = await field.evaluate(
            "({scrollLeft, scrollTop, scrollHeight, clientHeight, scrollWidth, clientWidth}) =>"
            " [scrollLeft, scrollTop, scrollHeight - clientHeight, scrollWidth - clientWidth]"
        )
        assert place == [0, 0, 0, 0], width
        await secret_shown(page)


async def test_an_administrators_own_conversations_are_apart_from_those_of_others(
    open_page: Opening, tenant: Tenant
) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    tenant.http.post("/v1/admin/users", json={"id": "bob", "name": "Bob"})
    bob = {"Authorization": f"Bearer {tenant.key_of('bob').key}"}
    for title, headers in (("Mine", {}), ("His", bob)):
        made = tenant.http.post("/v1/conversations", json={"title": title}, headers=headers).json()["id"]
        body = {"question": QUESTION, "conversation_id": made}
        assert tenant.http.post("/v1/ask", json=body, headers=headers).status_code == 200

    page = await open_page(tenant)
    titles = page.locator(".ask-list .ask-title")
    await titles.first.wait_for()
    assert await titles.all_inner_texts() == ["Mine"]
    await page.locator(".ask-list summary").click()
    await page.get_by_text("by Bob").wait_for()
    assert await titles.all_inner_texts() == ["Mine", "His"]
