"""A watched question: its document says something else, the page tells, and both wordings stand side by side."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.documents.passage_follower import PassageFollower
from app.server.periodic import PeriodicThread
from app.server.sharing import Neighbours
from app.server.state import State
from app.server.unattended_assembly import watch_runner
from tests.app.answering.answerers import QuotesAs
from tests.app.server.embedder_swaps import wait_until
from tests.faults.forked import ForkedServer
from tests.web.asking import ask
from tests.web.conftest import Opening, Tenant, served_from
from tests.web.looking import seen
from tests.web.made_documents import CLAIM, HARBOUR, QUESTION
from tests.web.served import application
from tests.web.test_accessibility import found_in, needs_axe

NOW = CLAIM.replace("Forty", "Fifty")


@contextmanager
def watched(data_dir: Path) -> Iterator[State]:
    """The application, which answers by quotes, follows cited passages, and looks at watched questions at once."""
    with application(data_dir, quotes=QuotesAs.ONLY, pointed="ships left the harbour", watch_interval_s=1) as state:
        runner = watch_runner(state, Neighbours(state.settings, state.usage.ledger.boot_id), delivers=False)
        follower = PassageFollower(state.history.passages)

        def work() -> None:
            runner.work()
            follower.work()

        looking = PeriodicThread(work, name="watches", interval=0.1, failed="watches.failed")
        looking.start()
        try:
            yield state
        finally:
            looking.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedServer]:
    """An installation of its own."""
    with served_from(tmp_path_factory.mktemp("watches"), watched) as server:
        yield server


@needs_axe
async def test_a_changed_document_turns_its_footnote_and_rings_where_its_question_is_watched(
    open_page: Opening, tenant: Tenant
) -> None:
    document = tenant.upload("harbour.txt", HARBOUR)
    page = await open_page(tenant)
    turn = await ask(page, QUESTION)
    await turn.get_by_role("button", name="Watch").click()
    await seen(page, ".notice", "You are told when the answer changes.")
    await turn.get_by_role("link", name="Watched").wait_for()
    conversation = page.url

    def only_watch() -> dict[str, object]:
        (watch,) = tenant.http.get("/v1/watches").json()["data"]
        return dict(watch)

    wait_until(lambda: only_watch()["state"] == "current")
    await page.get_by_role("navigation", name="Main").get_by_role("link", name="Watched").click()
    await seen(page, ".watch", "Nothing has changed since you watch it.")
    body = {"text": HARBOUR.replace(CLAIM, NOW), "filename": "harbour.txt", "wait": 30}
    assert tenant.http.put(f"/v1/documents/{document}", json=body).json()["status"] == "indexed"
    wait_until(lambda: only_watch()["changed_at"] is not None)

    await page.goto(conversation)
    await page.reload()
    bell = page.get_by_role("navigation", name="Main").get_by_role("link", name="Watched (1 changed)")
    await bell.wait_for()
    await page.locator(".ask-turn a.ask-mark").first.hover()
    await seen(page, ".ask-card", "The document says this in other words now.")
    await bell.click()
    await seen(page, ".watch.fresh h2", QUESTION)
    await seen(page, ".watch-sides ins")
    sides = page.locator(".watch-change .watch-sides").last
    assert await sides.locator("del").all_inner_texts() == ["Forty "]
    assert await sides.locator("ins").all_inner_texts() == ["Fifty "]
    await seen(page, ".watch", "What differs: a number")
    assert await found_in(page, "watches") == []
    href = await sides.get_by_role("link", name="harbour.txt").last.get_attribute("href")
    assert href is not None
    assert "version=2" in href

    await page.reload()
    await seen(page, ".watch h2", QUESTION)
    assert await page.get_by_role("link", name="Watched (1 changed)").count() == 0, "it was looked at"
    assert await page.locator(".watch.fresh").count() == 0
    await page.get_by_role("button", name="Pause").click()
    await seen(page, ".watch", "Paused")
    await page.get_by_role("button", name="Stop watching").click()
    await seen(page, "main", "You watch no question yet.")
