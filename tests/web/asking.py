"""What somebody does to ask, written once for the tests."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page


async def ask(page: "Page", question: str) -> "Locator":
    """Ask, wait for the whole answer, and return its turn."""
    await begin(page, question)
    turn = page.locator(".ask-turn").last
    await turn.locator(".ask-how").wait_for(timeout=30_000)
    return turn


async def begin(page: "Page", question: str) -> None:
    """Ask, and wait until the question is shown."""
    field = page.get_by_label("Your question")
    await field.fill(question)
    await field.press("Enter")
    await page.locator(".ask-turn").get_by_role("heading", name=question).last.wait_for()
