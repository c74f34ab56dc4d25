"""Asking, footnotes and navigation work without a mouse."""

from typing import TYPE_CHECKING

from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import LOG, QUESTION

if TYPE_CHECKING:
    from playwright.async_api import Page

MOST_STEPS = 40
_FOCUSED = """
() => {
  const { activeElement: { ariaLabel, labels, textContent, tagName } } = document;
  return tagName === "BODY" ? "" : (ariaLabel ?? labels?.[0]?.textContent ?? textContent);
}
"""


async def focused(page: "Page") -> str:
    """What has the focus, by what it is called."""
    name: str = await page.evaluate(_FOCUSED)
    return name.strip()


async def focus_comes(page: "Page", to: str) -> None:
    """Wait until what is called so has the focus: what is gone gives it back a moment later."""
    await page.wait_for_function(f"(name) => ({_FOCUSED.strip()})().trim().startsWith(name)", arg=to)


async def walk(page: "Page", to: str, *, key: str = "Tab") -> None:
    """Press a key until what is called so has the focus, which can be seen there."""
    seen = []
    for _ in range(MOST_STEPS):
        if (await focused(page)).startswith(to):
            outline = await page.evaluate(
                "(({outlineStyle, outlineWidth, boxShadow}) => [outlineStyle, outlineWidth, boxShadow].join())"
                "(getComputedStyle(document.activeElement))"
            )
            assert not outline.startswith("none,") or not outline.endswith(",none"), f"no focus is seen at {to}"
            return
        await page.keyboard.press(key)
        seen.append(await focused(page))
    raise AssertionError(f"{to} is not reached: {seen}")


async def test_a_question_is_asked_and_its_footnote_opened_and_closed_by_keyboard(
    open_page: Opening, tenant: Tenant
) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant)
    await seen(page, "main h1", "Ask about what is in your documents")
    await walk(page, "Your question")
    await page.keyboard.type(QUESTION)
    await page.keyboard.press("Enter")
    await seen(page, ".ask-how")

    await walk(page, "Footnote 1", key="Shift+Tab")
    await page.get_by_role("tooltip").wait_for()
    await page.keyboard.press("Escape")
    await page.get_by_role("tooltip").wait_for(state="detached")
    await page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="The cited passage")
    await seen(page, ".pdf-box")
    await focus_comes(page, "the log.pdf")
    assert await focused(page) == "the log.pdf"

    await walk(page, "Larger")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await panel.wait_for(state="detached")
    await focus_comes(page, "Footnote 1")


async def test_the_skip_link_and_the_navigation_work_by_keyboard(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/documents")
    await seen(page, "h3", "No documents yet")
    await page.evaluate("document.activeElement.blur()")
    await walk(page, "Skip to the content")
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.id") == "content"

    await walk(page, "Usage", key="Shift+Tab")
    await page.keyboard.press("Enter")
    await seen(page, "main h1", "Usage")
