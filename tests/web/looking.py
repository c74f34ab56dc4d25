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

_SETTLED = """
() => document.querySelector("[aria-busy=true]") === null
  && [...document.querySelectorAll("main p.quiet")].every(({textContent}) => !textContent.endsWith("…"))
  && document.readyState === "complete" && [...document.images].every(({complete}) => complete)
"""
_TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
STILL = "() => document.getAnimations().every(({playState}) => playState !== 'running')"
"""Whether nothing on the page is moving; an expression for `wait_for_function`."""


async def seen(page: "Page", selector: str, text: str = "", *, timeout: float | None = None) -> None:
    """Wait until something that a CSS selector names is shown, with `text` in it.

    Raises:
        playwright.async_api.TimeoutError: It was not there in `timeout` milliseconds, the context's where it is None.
    """
    await page.wait_for_function(_SEEN, arg=[selector, text], timeout=timeout)


async def settled(page: "Page") -> None:
    """Wait until the page loads nothing any more, has drawn what it loaded, and has run what that started."""
    await page.wait_for_function(_SETTLED)
    await page.evaluate(_TWO_FRAMES)
