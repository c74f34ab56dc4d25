"""Administrators manage keys, budgets, users and collections in the page."""

import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.app.server.embedder_swaps import wait_until
from tests.web.administering import secret_shown, works
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.made_documents import HARBOUR, QUESTION

if TYPE_CHECKING:
    from playwright.async_api import Page

WRONG_ADDRESS = "the server responded with a status of 404"


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def listed(tenant: Tenant, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tenant.http.get(path).json()["data"]
    return found


def key_named(tenant: Tenant, name: str) -> dict[str, Any]:
    [key] = [key for key in listed(tenant, "/v1/admin/keys") if key["name"] == name]
    return key


def acts(tenant: Tenant, kind: str) -> list[str]:
    """What the audit log has of a kind, the oldest first."""
    return [one["action"] for one in reversed(listed(tenant, "/v1/admin/audit")) if one["action"].startswith(kind)]


async def rotate(page: "Page", name: str, overlap: str) -> str:
    """Give a key a new secret, the old one working beside it for a time, and return it."""
    await page.get_by_role("button", name=f"New secret {name}").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("The old secret").select_option(overlap)
    await dialog.get_by_role("button", name="New secret").click()
    return await secret_shown(page)


async def test_a_key_gets_other_secrets_and_is_revoked(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/admin/keys")
    await page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("laptop")
    await dialog.get_by_label("Works", exact=True).select_option("week")
    await dialog.get_by_role("button", name="New key").click()
    first = await secret_shown(page)
    assert works(tenant.http, first)
    made = key_named(tenant, "laptop")
    assert (made["role"], made["user_id"], made["collections"]) == ("member", "laptop", None)
    ends = datetime.fromisoformat(made["expires_at"]).timestamp()
    assert 0 <= time.time() + 7 * 86_400 - ends < 60

    second = await rotate(page, "laptop", "hour")
    row = page.get_by_role("row", name="laptop")
    await row.get_by_text(f"{made['prefix']}… works until").wait_for()
    turned = key_named(tenant, "laptop")
    assert (turned["id"], turned["rotated_from"]) == (made["id"], made["prefix"])
    left = datetime.fromisoformat(turned["previous_expires_at"]).timestamp() - time.time()
    assert 3500 < left <= 3600
    assert works(tenant.http, first)
    assert works(tenant.http, second)

    third = await rotate(page, "laptop", "none")
    await row.get_by_text("… works until").wait_for(state="detached")
    assert [works(tenant.http, one) for one in (first, second, third)] == [False, False, True]

    await row.get_by_role("button", name="Revoke").click()
    await dialog.get_by_role("button", name="Revoke").click()
    await page.get_by_text("laptop is revoked.").wait_for()
    await row.wait_for(state="detached")
    assert not works(tenant.http, third)
    assert key_named(tenant, "laptop")["revoked_at"] is not None
    await page.get_by_label("Show revoked and expired keys").check()
    await row.get_by_text("revoked").wait_for()
    assert await row.get_by_role("button").count() == 0


async def test_a_key_reaches_the_collections_it_is_limited_to(open_page: Opening, tenant: Tenant) -> None:
    papers = tenant.http.post("/v1/collections", json={"name": "papers"}).json()["id"]
    paper = tenant.upload("paper.txt", "Forty ships left, says a paper.", collection_id=papers)
    letter = tenant.upload("letter.txt", "Nobody left, says a letter.")
    page = await open_page(tenant, "#/admin/keys")
    await page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("scanner")
    await dialog.get_by_label("Only these:").check()
    await dialog.get_by_label("papers").check()
    await dialog.get_by_role("button", name="New key").click()
    scanner = bearer(await secret_shown(page))

    def seen() -> set[str]:
        documents = tenant.http.get("/v1/documents", headers=scanner).json()["data"]
        return {document["id"] for document in documents}

    assert key_named(tenant, "scanner")["collections"] == [papers]
    assert seen() == {paper}
    assert tenant.http.get(f"/v1/documents/{letter}", headers=scanner).status_code == 404
    assert "papers" in await page.get_by_role("row", name="scanner").inner_text()

    await page.get_by_role("button", name="Change scanner").click()
    assert await dialog.get_by_label("papers").is_checked()
    await dialog.get_by_label("All collections, also later ones").check()
    await dialog.get_by_role("button", name="Save").click()
    await page.get_by_text("Changed.").wait_for()
    wait_until(lambda: seen() == {paper, letter}, seconds=2)
    assert acts(tenant, "key.")[-2:] == ["key.created", "key.changed"]


async def test_a_budget_is_set_raised_begun_again_and_removed(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload("harbour.txt", HARBOUR)
    bob = bearer(tenant.key_of("bob").key)

    def asks() -> int:
        """The status of bob's question."""
        return tenant.http.post("/v1/ask", json={"question": QUESTION}, headers=bob).status_code

    page = await open_page(tenant, "#/admin/budgets")
    await page.get_by_text("There are no budgets: nothing is limited by use.").wait_for()
    await page.get_by_role("button", name="New budget").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Whose use counts").select_option("user")
    await dialog.get_by_label("Which").select_option("bob")
    await dialog.get_by_label("For", exact=True).select_option("total")
    await dialog.get_by_label("At most").fill("1")
    await dialog.get_by_label("Warn at percent").fill("50")
    await dialog.get_by_role("button", name="New budget").click()
    await page.get_by_text("Saved.").wait_for()
    [made] = listed(tenant, "/v1/admin/budgets")
    said = {name: made[name] for name in ("scope_type", "scope_id", "unit", "limit", "period", "enforcement")}
    assert said == {
        "scope_type": "user", "scope_id": "bob", "unit": "tokens", "limit": 1, "period": "total", "enforcement": "hard",
    }  # fmt: skip
    assert made["thresholds"] == [50]
    assert asks() == 429

    await page.get_by_role("button", name="Change").click()
    await dialog.get_by_label("At most").fill("1 000 000")
    await dialog.get_by_role("button", name="Save").click()
    await dialog.wait_for(state="detached")
    assert asks() == 200
    await page.reload()
    [used] = listed(tenant, "/v1/admin/budgets")
    assert (used["id"], used["limit"], used["series"]) == (made["id"], 1_000_000, made["series"])
    assert used["used"] > 0
    await page.locator(".budget > .small", has_text=f"{used['used']:,} tokens used").wait_for()

    await page.get_by_role("button", name="Begin again").click()
    await dialog.get_by_role("button", name="Begin again").click()
    await page.locator(".budget > .small", has_text=re.compile(r"^0 tokens used")).wait_for()
    [begun] = listed(tenant, "/v1/admin/budgets")
    assert (begun["used"], begun["series"]) == (0, used["series"] + 1)

    await page.get_by_role("button", name="Remove").click()
    await dialog.get_by_role("button", name="Remove").click()
    await page.get_by_text("There are no budgets: nothing is limited by use.").wait_for()
    assert listed(tenant, "/v1/admin/budgets") == []
    assert acts(tenant, "budget.") == ["budget.create", "budget.update", "budget.reset", "budget.delete"]


async def test_a_user_is_renamed_shut_out_and_let_in(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/admin/users")
    await page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name", exact=True).fill("Roberta")
    await dialog.get_by_label("Id", exact=True).fill("bob")
    await dialog.get_by_role("button", name="New user").click()
    await page.get_by_role("button", name="Rename Roberta").click()
    await dialog.get_by_label("Name", exact=True).fill("Bob the Builder")
    await dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("row", name="Bob the Builder")
    await row.get_by_text("let in").wait_for()
    assert tenant.http.get("/v1/admin/users/bob").json()["name"] == "Bob the Builder"

    secret = tenant.key_of("bob").key
    assert works(tenant.http, secret)
    await row.get_by_role("button", name="Disable").click()
    await dialog.get_by_role("button", name="Disable").click()
    await page.get_by_text("Bob the Builder is not let in any more.").wait_for()
    await row.get_by_text("not let in since").wait_for()
    assert not works(tenant.http, secret)
    await row.get_by_role("button", name="Enable").click()
    await page.get_by_text("Bob the Builder is let in again.").wait_for()
    assert works(tenant.http, secret)
    assert tenant.http.get("/v1/admin/users/bob").json()["disabled_at"] is None
    own = page.get_by_role("row", name="ada you")
    assert await own.get_by_role("button", name="Disable").count() == 0, "nobody shuts themselves out"


async def test_a_collection_is_reindexed_from_the_models_screen(open_page: Opening, tenant: Tenant) -> None:
    ids = [tenant.upload("one.txt", "The first text."), tenant.upload("two.txt", "The second text.")]
    page = await open_page(tenant, "#/admin/models")
    await page.get_by_role("button", name="Read again default").click()
    await page.get_by_role("dialog").get_by_role("button", name="Read again").click()
    await seen(page, ".progress .badge.good", "2 done")

    documents = [tenant.http.get(f"/v1/documents/{one}").json() for one in ids]
    assert [(document["status"], document["version"]) for document in documents] == [("indexed", 2)] * 2


async def test_health_that_a_proxy_keeps_inside_is_said_to_be(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    window.excuse(WRONG_ADDRESS)
    page = await open_page(tenant)
    for path in ("**/readyz", "**/healthz"):  # as both proxies of docs/deploy answer them
        await page.route(path, lambda route: route.fulfill(status=404, content_type="text/html", body="<h1>404</h1>"))
    await page.get_by_role("link", name="Administration").click()
    await page.get_by_role("link", name="Health").click()
    await page.get_by_text("The proxy in front of this server does not let health be seen from outside.").wait_for()
    assert await page.get_by_role("alert").count() == 0
