"""What administrators do again and again, written once for the tests."""

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from playwright.async_api import Page


async def secret_shown(page: "Page") -> str:
    """The secret that is shown this once; it is put away then."""
    stored = page.get_by_role("button", name="I have stored it")
    await stored.wait_for()
    secret = await page.get_by_label("Secret", exact=True).input_value()
    await stored.click()
    await stored.wait_for(state="detached")
    return secret


def works(http: httpx.Client, secret: str) -> bool:
    """Whether somebody with this key is let in."""
    status = http.get("/v1/usage", headers={"Authorization": f"Bearer {secret}"}).status_code
    assert status in {200, 401}
    return status == 200
