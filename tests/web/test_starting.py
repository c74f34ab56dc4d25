"""A question that meets a server whose models load."""

import json
from typing import TYPE_CHECKING

import pytest

from tests.web.asking import begin
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.made_documents import CLAIM, LOG, QUESTION

if TYPE_CHECKING:
    from playwright.async_api import Route


@pytest.mark.parametrize("readyz", [404, 200])
async def test_a_question_is_sent_again_by_itself_and_answered_once(
    open_page: Opening, tenant: Tenant, window: Window, readyz: int
) -> None:
    """404 is what a proxy answers that hides the state; 200: the models were loaded just after the refusal."""
    window.excuse("the server responded with a status of 503")
    window.excuse("the server responded with a status of 404")
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    refusals, sent = (2, 1)[readyz == 200], 0

    async def refused(route: "Route") -> None:
        nonlocal sent
        sent += 1
        if sent > refusals:
            await route.fallback()
            return
        body = {"type": "urn:footnote:problem:not-ready", "title": "x", "status": 503, "detail": "loading"}
        await route.fulfill(
            status=503,
            headers={"Retry-After": "1"},
            content_type="application/problem+json",
            body=json.dumps(body),
        )

    async def state(route: "Route") -> None:
        body = {"ready": True, "reasons": [], "checks": {}}
        await route.fulfill(status=readyz, content_type="application/json", body=json.dumps(body))

    await page.route("**/v1/ask", refused)
    await page.route("**/readyz", state)
    await begin(page, QUESTION)
    if readyz == 404:
        await seen(page, ".ask-waiting", "The server is starting. Waiting for its models…")
    await seen(page, ".ask-turn:last-of-type .ask-how", timeout=30_000)
    assert CLAIM in await page.locator(".ask-turn").inner_text()
    assert sent == refusals + 1
    (conversation,) = tenant.http.get("/v1/conversations").json()["data"]
    assert conversation["turns"] == 1
