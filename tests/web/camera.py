"""A browser that opens the page, asks in it, and writes pictures of it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from tests.web.looking import STILL

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOOK_S = 0.1
_MOST_BYTES = 250_000


def add(http: httpx.Client, files: dict[str, bytes]) -> None:
    """Upload files, and wait until they are indexed."""
    for name, content in files.items():
        body = http.post("/v1/documents", files={"file": (name, content)}, data={"wait": "30"}).json()
        while body["status"] not in {"indexed", "failed"}:
            time.sleep(LOOK_S)
            body = http.get(f"/v1/documents/{body['id']}").json()


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
        """Write a picture, once nothing moves any more unless it is of something that does.

        Raises:
            SystemExit: It is too large to be kept with the source.
        """
        if still:
            page.wait_for_function(STILL)
        path = self._out / f"{name}.png"
        size = len(page.screenshot(path=path, animations="disabled"))
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
