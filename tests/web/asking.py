"""What somebody does to ask, written once for the tests."""

from typing import TYPE_CHECKING

from tests.web.looking import seen

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page


async def ask(page: "Page", question: str) -> "Locator":
    """Ask, wait for the whole answer, and return its turn."""
    await begin(page, question)
    await seen(page, ".ask-turn:last-of-type .ask-how", timeout=30_000)
    return page.locator(".ask-turn").last


async def begin(page: "Page", question: str) -> None:
    """Ask, and wait until the question is shown."""
    field = page.get_by_label("Your question")
    await field.fill(question)
    await field.press("Enter")
    await seen(page, ".ask-turn:last-of-type h2", question)
