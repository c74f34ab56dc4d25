"""The layout on narrow screens, and styles that stay on their own screens."""

from typing import TYPE_CHECKING

from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen

if TYPE_CHECKING:
    from playwright.async_api import Locator

NAME = "quarterly_report_of_the_harbour_2026.txt"


async def box_of(found: "Locator") -> tuple[float, float, float, float]:
    """Left, top, right and bottom."""
    box = await found.bounding_box()
    assert box is not None
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


async def test_upload_controls_do_not_overlap_on_a_narrow_screen(open_page: Opening, tenant: Tenant) -> None:
    for name in ("Contracts and correspondence with suppliers, 2019 to 2026", "Notes"):
        assert tenant.http.post("/v1/collections", json={"name": name}).status_code == 201
    tenant.upload(NAME, "Forty ships left.")
    page = await open_page(tenant, "#/documents", width=390)
    await seen(page, ".documents-table .name", NAME)

    _, top, right, bottom = await box_of(page.get_by_label("Add to"))
    left, *_, edge = await box_of(page.get_by_role("button", name="Add files"))
    assert right <= left
    assert bottom - top < 60, "one line"
    assert edge - top < 60, "beside each other"
    chips = page.get_by_role("navigation", name="Collections").get_by_role("button")
    widths = [right - left for left, _, right, _ in [await box_of(chip) for chip in await chips.all()]]
    assert max(widths) < 390


async def test_a_long_name_is_broken_between_its_words(open_page: Opening, tenant: Tenant) -> None:
    tenant.upload(NAME, "Forty ships left.")
    page = await open_page(tenant, "#/documents", width=390)
    await seen(page, ".documents-table .name", NAME)
    lines: list[str] = await page.locator(".documents-table .name a").evaluate(
        """link => {
          const lines = [];
          for (const walker = document.createTreeWalker(link, NodeFilter.SHOW_TEXT); walker.nextNode();) {
            const range = document.createRange(), node = walker.currentNode;
            for (let at = 0; at < node.length; at++) {
              range.setStart(node, at);
              range.setEnd(node, at + 1);
              const { top } = range.getBoundingClientRect();
              if (lines.at(-1)?.top !== top) lines.push({ top, text: "" });
              lines.at(-1).text += node.data[at];
            }
          }
          return lines.map(({ text }) => text);
        }"""
    )

    assert "".join(lines) == NAME
    assert len(lines) > 1
    assert all(line.endswith("_") for line in lines[:-1])


async def test_a_field_of_a_document_looks_the_same_after_another_screen(open_page: Opening, tenant: Tenant) -> None:
    document = tenant.upload("log.txt", "Forty ships left.")
    assert tenant.http.patch(f"/v1/documents/{document}", json={"metadata": {"year": 2024}}).status_code == 200
    page = await open_page(tenant, "#/usage")
    await seen(page, ".usage .picker .field")
    await page.get_by_role("link", name="Documents").click()
    await page.get_by_role("button", name="Details of log.txt").click()
    row = page.get_by_role("dialog").locator(".metadata li")

    name, value = await box_of(row.get_by_label("Name")), await box_of(row.get_by_label("Value"))
    assert name[1] == value[1], "in one line"
    assert name[2] <= value[0]
