"""Waiting for what takes a page a while.

Playwright's own `wait_for` looks after 0, 20, 70, 170 and 270 ms and then twice a second, so that what takes a third of
a second is waited for half a second longer. This looks with every frame.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Page

_SEEN = """
([selector, text]) => [...document.querySelectorAll(selector)]
  .some((element) => element.checkVisibility() && element.textContent.includes(text))
"""


async def seen(page: "Page", selector: str, text: str = "", *, timeout: float | None = None) -> None:
    """Wait until something that a CSS selector names is shown, with `text` in it.

    Raises:
        playwright.async_api.TimeoutError: It was not there in `timeout` milliseconds, the context's where it is None.
    """
    await page.wait_for_function(_SEEN, arg=[selector, text], timeout=timeout)
