"""After a refusal the page lists the nearest passages and marks their nearest sentences."""

from typing import TYPE_CHECKING

import pytest

from tests.ingestion.pdf_file import Shown, set_pdf
from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.test_accessibility import found_in, needs_axe

if TYPE_CHECKING:
    from playwright.async_api import Page

WIDTH, NEAR = 612, 0.01
BESIDE, NEAREST = Shown(72, 500, "Nobody slept.", size=12), Shown(160, 500, "The harbour froze in May.", size=12)
LOG = set_pdf([[Shown(72, 700, "The tower", size=20, bold=True)], [BESIDE, NEAREST]])
UNANSWERED = "Did the moon shine when the harbour froze?"


async def in_sight(page: "Page", selector: str, frame: str) -> bool:
    """Whether the first of `selector` is within the frame that scrolls."""
    found: bool = await page.evaluate(
        """([selector, frame]) => {
          const element = document.querySelector(selector), around = element.closest(frame).getBoundingClientRect();
          const { top, bottom } = element.getBoundingClientRect();
          return top >= around.top - 1 && bottom <= around.bottom + 1;
        }""",
        [selector, frame],
    )
    return found


async def lefts(page: "Page", selector: str) -> list[float]:
    """Where each begins, as a share of its page's width."""
    found: list[float] = await page.locator(selector).evaluate_all(
        """elements => elements.map((element) => {
          const sheet = element.closest(".pdf-page").getBoundingClientRect();
          return (element.getBoundingClientRect().left - sheet.left) / sheet.width;
        })"""
    )
    return found


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_nearest_sentence_is_marked_in_the_passage_and_on_its_page(
    open_page: Opening, tenant: Tenant, scheme: str
) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant, scheme=scheme)
    turn = await ask(page, UNANSWERED)
    await seen(page, ".ask-nearest mark")
    assert await turn.locator(".ask-nearest mark").all_inner_texts() == [NEAREST.text]
    problems = await found_in(page, "listed")

    await turn.locator(".ask-nearest a", has_text="the log.pdf").click()
    await seen(page, '[data-page="2"] .textLayer span')
    await seen(page, ".pdf-box")
    assert await lefts(page, ".pdf-box") == [pytest.approx(NEAREST.left / WIDTH, abs=NEAR)]
    passage = await lefts(page, '[data-page="2"] .pdf-around')
    assert passage == [pytest.approx(BESIDE.left / WIDTH, abs=NEAR)]
    assert await page.locator('[data-page="1"] .pdf-around').count() == 1
    assert await in_sight(page, ".pdf-box", ".pdf-scroll"), "not the passage's first page"
    await seen(page, ".passage-panel blockquote mark")
    assert await page.locator(".passage-panel blockquote mark").all_inner_texts() == [NEAREST.text]
    assert problems + await found_in(page, "marked") == []


async def test_a_link_to_the_nearest_sentence_marks_it_in_a_text_document(open_page: Opening, tenant: Tenant) -> None:
    entries = "\n\n".join(f"Entry {n}: wind." for n in range(200))
    tenant.upload("log.txt", f"{entries}\n\n{BESIDE.text} {NEAREST.text} 🚢\n\n{entries}")
    page = await open_page(tenant, width=390)
    turn = await ask(page, UNANSWERED)
    await seen(page, ".ask-nearest mark")
    await turn.locator(".ask-nearest li", has=page.locator("mark")).first.locator("a").click()
    await seen(page, ".text-body mark")

    assert await page.locator(".text-body mark").all_inner_texts() == [NEAREST.text]
    around = await page.locator(".text-around").inner_text()
    assert f"{BESIDE.text} {NEAREST.text}" in around
    assert await in_sight(page, ".text-body mark", ".text-view")
    await seen(page, ".quote blockquote mark")
    assert await page.locator(".quote blockquote mark").all_inner_texts() == [NEAREST.text]


@pytest.mark.parametrize(("lines", "told"), [(1, True), (5, False)])
async def test_unmarked_words_are_reported_only_where_they_are_a_large_share(
    open_page: Opening, tenant: Tenant, lines: int, told: bool
) -> None:
    printed = [Shown(72, 700 - 20 * n, f"Line {n} is printed where everybody can see it.") for n in range(lines)]
    content = set_pdf([[*printed, Shown(700, 400, "Beyond the edge.")]])
    document = tenant.upload("spread.pdf", content)
    end = len(tenant.http.get(f"/v1/documents/{document}/content").text)
    page = await open_page(tenant, f"#/documents/{document}?start=0&end={end}&page=1")
    await seen(page, ".pdf-box")
    status = page.get_by_role("status").filter(has_text="The passage is marked on page 1.")

    assert ("could not be marked" in await status.inner_text()) == told
    hidden = await status.evaluate("element => element.classList.contains('visually-hidden')")
    assert hidden != told
