"""A page of the browser that is opened while a test is at work: a new one takes a fifth of a second."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

WIDTH, HEIGHT = 1280, 800


class Spare:
    """Hands out empty pages, each alone in a context that nobody had before, and keeps the next one ready."""

    def __init__(self, browser: "Browser") -> None:
        self._browser = browser
        self._next: asyncio.Task[Page] | None = None

    async def take(self) -> "Page":
        """An empty page; whoever takes it closes its context.

        Raises:
            playwright.async_api.Error: The browser opened none.
        """
        page = await (self._next or self._open())
        self._next = asyncio.create_task(self._open())
        return page

    async def close(self) -> None:
        """Close the one that nobody took."""
        if self._next is not None:
            await (await self._next).context.close()

    async def _open(self) -> "Page":
        context = await self._browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme="light",
            locale="en-GB",
            timezone_id="Europe/Berlin",
            reduced_motion="reduce",
            service_workers="block",
        )
        context.set_default_timeout(30_000)  # ms; with twice as many workers as cores a page is slow at times
        return await context.new_page()
