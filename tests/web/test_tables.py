"""A table from the page: it is made over chosen documents, its cells fill, footnotes open, and the file is saved."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.server.periodic import PeriodicThread
from app.server.sharing import Neighbours
from app.server.state import State
from app.server.unattended_assembly import table_runner
from tests.app.answering.answerers import QuotesAs
from tests.faults.forked import ForkedServer
from tests.web.conftest import Opening, Tenant, served_from
from tests.web.looking import seen
from tests.web.made_documents import CLAIM, HARBOUR, LOG, QUESTION
from tests.web.served import application
from tests.web.test_accessibility import found_in, needs_axe

POINTED = "Forty ships"
OTHER = "Who is hello?"


@contextmanager
def asking_cells(data_dir: Path) -> Iterator[State]:
    """The application, which answers by quotes, and asks the cells of tables once it is told to by a file."""
    with application(data_dir, quotes=QuotesAs.ONLY, pointed=POINTED) as state:
        runner = table_runner(state, Neighbours(state.settings, state.usage.ledger.boot_id))
        released = data_dir.parent / "released"
        thread = PeriodicThread(
            lambda: runner.work() if released.exists() else None, name="tables", interval=0.1, failed="tables.failed"
        )
        thread.start()
        try:
            yield state
        finally:
            thread.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the installation is."""
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ForkedServer]:
    """An installation of its own."""
    with served_from(folder, asking_cells) as server:
        yield server


@needs_axe
async def test_a_table_is_made_fills_opens_its_footnotes_and_is_downloaded(
    open_page: Opening, tenant: Tenant, folder: Path, tmp_path: Path
) -> None:
    files: dict[str, str | bytes] = {"harbour.txt": HARBOUR, "the log.pdf": LOG}
    names = dict(reversed([(tenant.upload(name, text), name) for name, text in files.items()]))
    tenant.upload("other.txt", "Nobody asks about this.")
    page = await open_page(tenant, "#/documents")
    for name in names.values():
        await page.get_by_role("checkbox", name=f"Select {name}").check()
    await page.get_by_role("link", name="Ask each of them").click()
    await page.get_by_label("Questions, one on each line").fill(f"Ships | {QUESTION}\n\n{OTHER}")
    await seen(page, "form", "2 questions × 2 documents: 4 cells")
    await page.get_by_role("button", name="Ask", exact=True).click()

    await seen(page, ".answer-cell", "Waiting")
    await seen(page, "[role=status]", "Being filled")
    assert await page.get_by_role("columnheader").all_inner_texts() == ["Document", f"Ships\n{QUESTION}", OTHER]
    (folder / "released").touch()
    await seen(page, "[role=status]", "Finished")
    await seen(page, "main", "4 of 4 cells · 2 answered · 2 without an answer")
    for said in (POINTED, "No answer found"):  # the cells come after the counts, by a request of their own
        await page.locator(".answer-cell", has_text=said).nth(1).wait_for()
    rows = page.locator(".answer-grid tbody tr")
    assert await rows.get_by_role("rowheader").all_inner_texts() == list(names.values()), "as they were listed"
    for row in await rows.all():
        ships, colour = await row.locator(".answer-cell").all_inner_texts()
        assert (ships.startswith(POINTED), "✓ Confirmed" in ships, CLAIM in ships) == (True, True, True)
        assert colour == "– No answer found"
    await rows.last.get_by_role("link", name="Footnote 1: harbour.txt").click()
    await seen(page, ".passage-panel mark", POINTED)
    found = await found_in(page, "table, wide")
    await page.keyboard.press("Escape")

    async with page.expect_download() as saving:
        await page.get_by_role("button", name="Download as CSV").click()
    saved = tmp_path / "saved.csv"
    await (await saving.value).save_as(saved)
    with saved.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["document_id"], line["Ships"], line["Ships (state)"]) for line in lines] == [
        (document, POINTED, "confirmed") for document in names
    ]

    await page.set_viewport_size({"width": 390, "height": 800})
    found += await found_in(page, "table, narrow")
    await rows.first.get_by_role("link", name="Footnote 1: the log.pdf").click()
    await seen(page, ".pdf-box")
    await page.go_back()
    await page.get_by_role("link", name="All tables").click()
    await seen(page, ".tables-list li", "2 questions × 2 documents · 4 of 4 cells")
    assert await found_in(page, "tables, narrow") + found == []
    await page.get_by_role("link", name=f"Ships · {OTHER}").click()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await seen(page, ".notice", "Table deleted.")
    await page.get_by_label("Questions, one on each line").wait_for()
    assert tenant.http.get("/v1/tables").json()["data"] == []
