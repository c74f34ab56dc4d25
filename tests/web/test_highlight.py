"""The cited words are highlighted in the document viewer, at every zoom."""

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.ingestion.pdf_file import Shown
from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import FIRST_LINE, LOG, PAGE_HEIGHT, QUESTION, SECOND_LINE

if TYPE_CHECKING:
    from playwright.async_api import Page

PAGE_WIDTH = 612
NEAR_PX = 3
CAPITAL = 0.718  # how high capitals of Helvetica are, of the font's size
_MEASURED = """
() => {
  const page = document.querySelector('[data-page="2"]');
  const canvas = page.querySelector("canvas");
  const origin = page.getBoundingClientRect();
  const inPage = ({left, top, right, bottom}) => ({
    left: left - origin.left - page.clientLeft, top: top - origin.top - page.clientTop,
    right: right - origin.left - page.clientLeft, bottom: bottom - origin.top - page.clientTop,
  });
  const boxes = [...page.querySelectorAll(".pdf-box")].map((box) => inPage(box.getBoundingClientRect()));
  const words = {};
  for (const span of page.querySelectorAll(".textLayer span")) {
    words[span.textContent.trim()] = inPage(span.getBoundingClientRect());
  }
  const drawn = canvas.getContext("2d");
  const ratio = canvas.width / page.clientWidth;
  const ink = boxes.map((box) => {
    const [left, top] = [Math.round((box.left - 6) * ratio), Math.round((box.top + 2) * ratio)];
    const width = Math.round((box.right - box.left + 12) * ratio);
    const height = Math.round((box.bottom - box.top - 4) * ratio);
    const { data } = drawn.getImageData(left, top, width, height);
    const columns = [];
    for (let x = 0; x < width; x++) {
      for (let y = 0; y < height; y++) {
        if (data[4 * (y * width + x)] < 128) { columns.push((left + x) / ratio); break; }
      }
    }
    return { left: Math.min(...columns), right: Math.max(...columns) };
  });
  const room = document.querySelector(".pdf-scroll").getBoundingClientRect();
  const box = page.querySelector(".pdf-box").getBoundingClientRect();
  const inSight = box.top >= room.top && box.bottom <= room.bottom && box.left >= room.left && box.left < room.right;
  return { scale: page.clientWidth / 612, boxes, words, ink, inSight };
}
"""
_DRAWN = """
() => {
  const page = document.querySelector('[data-page="2"]');
  const canvas = page?.querySelector("canvas");
  return canvas && Math.abs(canvas.width / devicePixelRatio - page.clientWidth) < 2
    && page.querySelector(".textLayer span") && page.querySelectorAll(".pdf-box").length === 2;
}
"""


async def measured(page: "Page") -> dict[str, Any]:
    """The page as it is drawn, once canvas, text layer and boxes have the same scale."""
    deadline = time.monotonic() + 10
    while True:
        await page.wait_for_function(_DRAWN)
        found: dict[str, Any] = await page.evaluate(_MEASURED)
        words = found["words"].get(FIRST_LINE.text)
        # The text layer takes its lefts from the page's size and its font sizes a moment later, so both ends count.
        settled = words and all(abs(found["boxes"][0][end] - words[end]) <= NEAR_PX for end in ("left", "right"))
        if settled or time.monotonic() > deadline:
            return found
        await page.evaluate("() => new Promise(requestAnimationFrame)")


def assert_over(found: dict[str, Any], at: int, line: Shown) -> None:
    box, ink, words, scale = found["boxes"][at], found["ink"][at], found["words"][line.text], found["scale"]
    baseline = (PAGE_HEIGHT - line.baseline) * scale
    assert box["left"] == pytest.approx(line.left * scale, abs=NEAR_PX)
    assert box["left"] == pytest.approx(words["left"], abs=NEAR_PX)
    assert box["right"] == pytest.approx(words["right"], abs=NEAR_PX)
    assert box["left"] == pytest.approx(ink["left"], abs=NEAR_PX), "the ink begins elsewhere"
    assert box["right"] == pytest.approx(ink["right"], abs=NEAR_PX), "the ink ends elsewhere"
    assert box["top"] <= baseline - CAPITAL * line.size * scale <= baseline <= box["bottom"]
    assert box["bottom"] - box["top"] < 1.5 * line.size * scale


@pytest.mark.parametrize("width", [1600, 390])
async def test_the_highlight_covers_exactly_the_cited_words_on_the_pdf_page(
    open_page: Opening, tenant: Tenant, width: int
) -> None:
    tenant.upload("the log.pdf", LOG)
    page = await open_page(tenant, width=width)
    turn = await ask(page, QUESTION)
    await turn.locator("a.ask-mark").click()

    first = await measured(page)
    await page.get_by_role("button", name="Larger").click()
    await page.wait_for_function(
        "before => document.querySelector('[data-page=\"2\"]').clientWidth > before + 10",
        arg=first["scale"] * PAGE_WIDTH,
    )
    second = await measured(page)

    assert second["scale"] > first["scale"] * 1.1
    for found in (first, second):
        assert found["inSight"]
        assert len(found["boxes"]) == 2
        assert_over(found, 0, FIRST_LINE)
        assert_over(found, 1, SECOND_LINE)


async def test_a_citation_in_a_text_file_is_highlighted_in_its_text(open_page: Opening, tenant: Tenant) -> None:
    text = (
        f"🚢🚢 The log.\n\n{'Nothing happened. ' * 300}\n\nForty ships left the harbour at dawn 🚢 in May.\n\nThe end."
    )
    tenant.upload("log.txt", text)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    await turn.locator("a.ask-mark").click()
    await seen(page, ".text-body mark")
    mark = page.locator(".text-body mark")

    assert (await mark.inner_text()).strip() == "Forty ships left the harbour at dawn 🚢 in May."
    top = await mark.evaluate("mark => mark.getBoundingClientRect().top")
    assert 0 < top < 800
