"""A camera for pictures of the page."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from PIL import Image

from tests.web.looking import STILL

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOOK_SECONDS = 0.1
_WIDTHS = {1280: 800, 390: 844}
"""Widths and heights of the window, in CSS pixels."""
_MOST_BYTES = 120_000
_COLOURS = 256


class Camera:
    """Opens the page in a browser and writes pictures of it."""

    def __init__(self, browser: "Browser", http: httpx.Client, out: Path) -> None:
        self._browser = browser
        self._url = str(http.base_url).rstrip("/")
        self._out = out

    @contextmanager
    def page(self, scheme: str, *, width: int = 1280, height: int = 800, sharpness: float = 1) -> "Iterator[Page]":
        """A page, signed in."""
        from tests.server import ADMIN_KEY

        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            device_scale_factor=sharpness,
            has_touch=width < 500,
            is_mobile=width < 500,
            locale="en-GB",
        )
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.goto(f"{self._url}/#key={ADMIN_KEY}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("navigation", name="Main").wait_for()
        yield page
        context.close()

    def go(self, page: "Page", place: str, awaited: str) -> None:
        """To another screen, until what is awaited is there."""
        page.goto(f"{self._url}/{place}")
        page.locator(awaited).first.wait_for()

    def take(self, page: "Page", name: str, *, still: bool = True) -> None:
        """Write a picture in 256 colours, once nothing moves any more unless it is of something that does.

        A picture of the page has a few thousand colours, nearly all of them on the edges of letters: with the most
        frequent ones it looks the same and takes less than half the bytes.

        Raises:
            SystemExit: It is too large to be kept with the source.
        """
        if still:
            page.wait_for_function(STILL)
        path = self._out / f"{name}.png"
        taken = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
        taken.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        size = path.stat().st_size
        print(f"  {path}: {size // 1000} kB")
        if size > _MOST_BYTES:
            raise SystemExit(f"{path} is too large")


def ask(page: "Page", question: str) -> None:
    """Ask, and wait for the whole answer."""
    field = page.get_by_label("Your question")
    field.fill(question)
    field.press("Enter")
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.get_by_role("button", name="Ask", exact=True).wait_for()


def endings() -> Iterator[tuple[str, str, int, int]]:
    """Light and dark, on a desktop and on a phone: the end of a picture's name, the scheme, width and height."""
    for scheme in ("light", "dark"):
        for width, height in _WIDTHS.items():
            yield scheme if width == max(_WIDTHS) else f"{scheme}-{width}", scheme, width, height
