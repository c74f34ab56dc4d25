"""Adding, replacing, deleting and restoring documents in the page."""

from pathlib import Path

import httpx

from tests.web.conftest import Opening, Tenant
from tests.web.looking import seen
from tests.web.made_documents import HARBOUR, LOG, chosen

_DROP = """
(files) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([text], name));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data}));
  }
}
"""


def names(tenant: Tenant) -> set[str]:
    return {one["filename"] for one in tenant.http.get("/v1/documents", params={"limit": 100}).json()["data"]}


def text_of(tenant: Tenant, document_id: str) -> str:
    """What is searched of it."""
    return tenant.http.get(f"/v1/documents/{document_id}/content").text.strip()


async def test_an_unreadable_file_among_several_uploads_fails_alone_with_its_reason(
    open_page: Opening, tenant: Tenant
) -> None:
    page = await open_page(tenant, "#/documents")
    await page.get_by_label("Add files").set_input_files(
        [
            chosen("the log.pdf", LOG),
            chosen("harbour.txt", HARBOUR.encode()),
            chosen("broken.pdf", b"%PDF-1.7 and no more"),
        ]
    )
    uploads = page.locator(".uploads")
    await seen(page, ".uploads [role=status]", "2 of 3 files done · 1 failed")
    failed = uploads.locator("li", has_text="broken.pdf")
    why = await failed.locator(".upload-state").inner_text()
    assert len(why.split()) >= 4, why
    assert "Error" not in why and "Traceback" not in why

    row = page.locator(".documents-table tbody tr", has_text="broken.pdf")
    await row.get_by_text("Failed").wait_for()
    # Not by the mouse: what the other files answer comes above the list meanwhile, and moves it.
    await row.get_by_role("button", name="Details of broken.pdf").press("Enter")
    dialog = page.get_by_role("dialog")
    assert why in await dialog.inner_text()
    await dialog.get_by_role("button", name="Try again").click()
    await page.keyboard.press("Escape")
    await row.get_by_text("Failed").wait_for()
    assert names(tenant) == {"the log.pdf", "harbour.txt", "broken.pdf"}


async def test_files_are_dropped_anywhere(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/documents")
    await seen(page, "h3", "No documents yet")
    await page.evaluate(_DROP, [["one.txt", "The first text."], ["two.md", "# The second\n\nText."]])
    await seen(page, ".uploads [role=status]", "2 of 2 files done")

    assert names(tenant) == {"one.txt", "two.md"}
    await page.get_by_label("Search by name").fill("two")
    await page.get_by_role("link", name="one.txt", exact=True).wait_for(state="detached")
    assert await page.get_by_role("link", name="two.md", exact=True).count() == 1


async def test_a_folder_is_uploaded_without_its_hidden_and_system_files(
    open_page: Opening, tenant: Tenant, tmp_path: Path
) -> None:
    (tmp_path / "papers" / "old").mkdir(parents=True)
    (tmp_path / "papers" / "a.txt").write_text("The first paper is about ships.")
    (tmp_path / "papers" / "old" / "b.txt").write_text("The second paper is about lanterns.")
    (tmp_path / "papers" / ".DS_Store").write_text("of the system")
    page = await open_page(tenant, "#/documents")
    await page.get_by_label("Add a folder").set_input_files(tmp_path / "papers")
    await seen(page, ".uploads [role=status]", "2 of 2 files done")
    await page.get_by_text("1 hidden or system file was left out.").wait_for()

    assert len(names(tenant)) == 2


async def test_a_deletion_is_undone_and_another_is_not(open_page: Opening, tenant: Tenant) -> None:
    kept, gone = tenant.upload("kept.txt", HARBOUR), tenant.upload("gone.txt", "The ink froze.")
    page = await open_page(tenant, "#/documents")
    await page.clock.install()
    for name in ("kept.txt", "gone.txt"):
        link = page.get_by_role("link", name=name, exact=True)
        await page.get_by_role("button", name=f"Details of {name}").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await link.wait_for(state="detached")
        if name == "kept.txt":
            await page.get_by_role("button", name="Undo").click()
            await link.wait_for()
    assert tenant.http.get(f"/v1/documents/{gone}").status_code == 200, "there is time to change one's mind"

    await page.clock.fast_forward(9_000)
    await page.get_by_text("“gone.txt” deleted.").wait_for(state="detached")
    await page.get_by_role("navigation", name="Collections").get_by_text("1 document").first.wait_for(state="attached")
    assert tenant.http.get(f"/v1/documents/{gone}").status_code == httpx.codes.NOT_FOUND
    assert tenant.http.get(f"/v1/documents/{kept}").status_code == httpx.codes.OK


async def test_a_file_becomes_the_next_version_and_an_earlier_one_comes_back(
    open_page: Opening, tenant: Tenant, tmp_path: Path
) -> None:
    before, after = "The fare is three shillings.", "The fare is five shillings."
    fares = tenant.upload("fares.txt", before)
    page = await open_page(tenant, "#/documents")
    await page.get_by_label("Add files").set_input_files(chosen("fares.txt", after.encode()))
    uploads = page.locator(".uploads")
    await seen(page, ".upload-state", "There is already a document named “fares.txt”.")
    assert text_of(tenant, fares) == before
    await uploads.get_by_role("button", name="Replace it").click()
    await seen(page, ".upload-state", "Ready, as version 2")
    assert text_of(tenant, fares) == after

    await page.get_by_role("button", name="Details of fares.txt").click()
    dialog = page.get_by_role("dialog")
    live = dialog.locator(".versions li", has_text="Version 2")
    await live.get_by_text("Used for answers").wait_for()
    await dialog.get_by_role("button", name="What changed since version 1").click()
    await seen(page, ".compared [role=status]", "1 altered")
    changed = dialog.locator(".compared blockquote")
    assert [await changed.locator(mark).inner_text() for mark in ("del", "ins")] == ["three ", "five "]
    href = await dialog.get_by_role("link", name="Show in version 2").get_attribute("href")
    assert href is not None
    assert href.endswith(f"{fares}?version=2&start=0&end={len(after)}")
    async with page.expect_download() as download:
        await dialog.get_by_role("link", name="Download version 1").click()
    earlier = tmp_path / "fares.txt"
    await (await download.value).save_as(earlier)
    assert earlier.read_text() == before
    await dialog.get_by_label("Upload a new version").set_input_files(earlier)
    await seen(page, ".upload-state", "Ready, as version 3")
    assert text_of(tenant, fares) == before
    versions = tenant.http.get(f"/v1/documents/{fares}/versions").json()["data"]
    assert {one["version"]: one["live"] for one in versions} == {1: False, 2: False, 3: True}

    await page.get_by_role("button", name="Details of fares.txt").click()
    await dialog.get_by_role("link", name="Open version 2").click()
    await seen(page, ".text-body", after)


async def test_several_selected_documents_are_deleted_together_and_restored(open_page: Opening, tenant: Tenant) -> None:
    for name in ("one.txt", "two.txt", "three.txt"):
        tenant.upload(name, f"The text of {name}.")
    page = await open_page(tenant, "#/documents")
    for name in ("one.txt", "three.txt"):
        await page.get_by_label(f"Select {name}").check()
    await page.get_by_text("2 selected").wait_for()
    await page.locator(".bulk").get_by_role("button", name="Delete").click()
    rows = page.locator(".documents-table tbody tr")
    await rows.nth(1).wait_for(state="detached")
    assert await rows.get_by_role("link").all_inner_texts() == ["two.txt"]
    await page.get_by_text("2 documents deleted.").wait_for()
    await page.get_by_role("button", name="Undo").click()
    await rows.nth(2).wait_for()
    assert names(tenant) == {"one.txt", "two.txt", "three.txt"}
