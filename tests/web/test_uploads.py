"""Uploads in the page: folders, progress, leaving early, and protected files."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from msoffcrypto.format.ooxml import OOXMLFile

from tests.ingestion.office_files import docx_bytes
from tests.web.conftest import Opening, Tenant, Window
from tests.web.looking import seen
from tests.web.made_documents import LOG, chosen

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Dialog

SLOW, UNLIMITED = 40_000, -1  # bytes a second
LARGE = b"A short text, and much room below it." + b"\n" * 200_000
STAGES = {"Waiting its turn", "Reading the text", "Splitting it into passages", "Making it searchable"}
_NOTE_STATES = """
() => {
  window.states = [];
  new MutationObserver(() => {
    const said = document.querySelector(".upload-state")?.textContent;
    if (said && window.states.at(-1) !== said) window.states.push(said);
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
}
"""


def documents(tenant: Tenant) -> dict[str, dict[str, object]]:
    listed = tenant.http.get("/v1/documents", params={"limit": 100}).json()["data"]
    return {one["filename"]: one for one in listed}


async def send_at(devtools: "CDPSession", rate: int) -> None:
    """Let the page send so many bytes a second."""
    limits = {"offline": False, "latency": 0, "downloadThroughput": UNLIMITED, "uploadThroughput": rate}
    await devtools.send("Network.emulateNetworkConditions", limits)


async def test_leaving_while_a_file_is_sent_is_asked_about(open_page: Opening, tenant: Tenant, window: Window) -> None:
    window.excuse("beforeunload")
    asked: list[str] = []

    async def stay(dialog: "Dialog") -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page = await open_page(tenant, "#/documents")
    page.on("dialog", stay)
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Network.enable")
    await send_at(devtools, SLOW)
    await page.get_by_role("heading", name="Documents", exact=True).click()  # who did nothing on a page is not asked
    await page.get_by_label("Add files").set_input_files(chosen("long.txt", LARGE))
    await seen(page, ".upload-state", "Sending, ")
    async with page.expect_event("dialog"):
        await page.close(run_before_unload=True)
    assert asked == ["beforeunload"]

    assert documents(tenant) == {}
    await send_at(devtools, UNLIMITED)
    await seen(page, ".upload-state", "Ready")
    assert documents(tenant)["long.txt"]["bytes"] == len(LARGE)
    async with page.expect_event("close"):
        await page.close(run_before_unload=True)
    assert asked == ["beforeunload"], "nothing is lost any more"


async def test_the_stages_of_an_upload_are_shown_until_it_is_ready(open_page: Opening, tenant: Tenant) -> None:
    page = await open_page(tenant, "#/documents")
    await page.evaluate(_NOTE_STATES)
    await page.get_by_label("Add files").set_input_files(chosen("the log.pdf", LOG))
    await page.get_by_role("link", name="Open the log.pdf").wait_for()
    states = await page.evaluate("window.states")
    assert states[-1] == "Ready"
    assert {state.partition(",")[0] for state in states} & STAGES, states


async def test_a_folder_is_dropped_with_all_that_is_in_it(open_page: Opening, tenant: Tenant, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    (folder / "a.txt").write_text("The first paper is about ships.")
    (folder / "old" / "b.txt").write_text("The second paper is about lanterns.")
    (folder / ".DS_Store").write_text("of the system")
    page = await open_page(tenant, "#/documents")
    await seen(page, "h3", "No documents yet")
    devtools = await page.context.new_cdp_session(page)
    held = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}

    async def drag(kind: str) -> None:
        await devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 640, "y": 500, "data": held})

    await drag("dragEnter")
    await page.get_by_text("Drop files or folders here").wait_for()
    await drag("dragOver")  # only enters what has come under the pointer
    await drag("drop")
    await seen(page, ".uploads [role=status]", "2 of 2 files done")
    await page.get_by_text("1 hidden or system file was left out.").wait_for()

    rows = page.locator(".uploads .upload-name > span[title]")
    assert await rows.all_inner_texts() == ["papers/a.txt", "papers/old/b.txt"]
    assert {name: one["status"] for name, one in documents(tenant).items()} == {"a.txt": "indexed", "b.txt": "indexed"}


async def test_a_protected_file_is_read_once_its_password_is_right(
    open_page: Opening, tenant: Tenant, window: Window
) -> None:
    window.excuse("the server responded with a status of 422")  # a file that is sent without its password
    sealed = io.BytesIO()
    OOXMLFile(io.BytesIO(docx_bytes())).encrypt("hunter2", sealed)
    page = await open_page(tenant, "#/documents")
    await page.get_by_label("Add files").set_input_files(chosen("sealed.docx", sealed.getvalue()))
    upload = page.locator(".uploads li", has_text="sealed.docx")
    await upload.get_by_label("Password of the file").fill("hunter3")
    await upload.get_by_role("button", name="Try again").click()
    await seen(page, ".upload-state", "The password is wrong")
    failed = documents(tenant)["sealed.docx"]
    assert failed["status"] == "failed"

    await page.get_by_role("button", name="Details of sealed.docx").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Password of the file").fill("hunter2")
    await dialog.get_by_role("button", name="Try again").click()
    await dialog.get_by_label("Password of the file").wait_for(state="detached")
    await page.keyboard.press("Escape")
    await seen(page, ".upload-state", "Ready")
    read = documents(tenant)["sealed.docx"]
    assert (read["id"], read["status"], read["error"]) == (failed["id"], "indexed", None)
    assert tenant.http.get(f"/v1/documents/{read['id']}/content").text.strip()
