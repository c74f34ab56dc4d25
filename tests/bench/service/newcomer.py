"""`python -m tests.bench.service.newcomer DOCUMENTS`: what a newcomer meets first, with the default models.

For each of some pairs of real documents, drawn by a seed: `footnote serve` on an empty data dir, a browser that opens
the printed link and signs in, both files dropped on the page, and a click on the first suggested question, though the
other file may be under way still. It succeeds where the answer is confirmed and its footnote opens the passage with
the sentence marked. The seconds are those that the page made one wait; reading and pointing, which a person does
besides, take no time here. Then the first question that the page offers to go on with is clicked, too, where there is
one.
"""

import argparse
import json
import os
import random
import re
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from app.answering.languages.recognition import language_of_prose
from app.answering.languages.table import ENGLISH
from ingestion.child_extractor import ChildExtractor
from ingestion.errors import IngestionError
from tests.bench.machine import description
from tests.processes import footnote, running
from tests.server import require_default_models

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDERS = ("csv", "docx", "epub", "html", "legacy_and_odf", "md", "misc", "pdf", "pptx", "txt", "xlsx")
LEAST_PROSE = 2_000
"""Characters of English text from which on a document may be expected to answer a question."""
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_LINK = re.compile(r"Open the page with it: (\S+/#key=(\S+))")
_PATIENCE_S = 180.0


def pairs_of(documents: Path, *, pairs: int, seed: int, prose: bool = True) -> list[tuple[Path, Path]]:
    """Pairs of documents, none twice, drawn from the files of these folders.

    With `prose` they are drawn in a random order until there are enough that have `LEAST_PROSE` characters of English
    prose; else whatever their language and length.
    """
    files = [path for folder in FOLDERS for path in sorted((documents / folder).glob("*")) if path.is_file()]
    random.Random(seed).shuffle(files)
    drawn: list[Path] = []
    with ChildExtractor() as extractor:
        for path in files:
            if len(drawn) == 2 * pairs:
                break
            if not prose or _has_prose(extractor, path):
                drawn.append(path)
    return list(zip(drawn[::2], drawn[1::2], strict=False))


def _has_prose(extractor: ChildExtractor, path: Path) -> bool:
    try:
        text = extractor.extract(path, filename=path.name).text
    except IngestionError:
        return False
    return len(text) >= LEAST_PROSE and language_of_prose(text[:20_000]) == ENGLISH


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, str]]:
    """A server with nothing in it; the link that it prints, and the key in it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_ADMIN")},
        "FOOTNOTE_DATA_DIR": str(folder / "data"),
        "FOOTNOTE_PORT": str(port),
        "HF_HUB_OFFLINE": "1",
    }
    log = folder / "server.log"
    with (
        log.open("wb") as out,
        running(footnote("serve"), cwd=folder, env=environment, stdout=out, stderr=out) as server,
    ):
        deadline = time.monotonic() + _PATIENCE_S
        while (found := _LINK.search(log.read_text(errors="replace"))) is None or not _is_ready(port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server is not ready: {log.read_text(errors='replace')[-1000:]}")
            time.sleep(0.1)
        yield found[1], found[2]


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


class Visit:
    """One visit of the page, with the seconds of each wait."""

    def __init__(self, page: "Page") -> None:
        self._page = page
        self._began = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def waited(self, name: str) -> None:
        """The wait that ends now."""
        now = time.perf_counter()
        self.seconds[name], self._began = round(now - self._began, 2), now

    def sign_in(self, link: str) -> None:
        """Open the link, and press the button that it offers."""
        self._page.goto(link)
        self._page.get_by_role("button", name="Sign in").click()
        self._page.get_by_label("Add files").wait_for(state="attached")
        self.waited("first_screen")

    def drop(self, *files: Path) -> str:
        """Drop files on the page; the words of the upload panel once all are there, or one suggests a question."""
        devtools = self._page.context.new_cdp_session(self._page)
        held = {"items": [], "files": [str(path) for path in files], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 640, "y": 400, "data": held})
        self._page.wait_for_function(
            "() => document.querySelector('.overview-questions button') !== null ||"
            " ['Added', 'Not added'].includes(document.querySelector('.uploads-head h2')?.textContent)"
        )
        self.waited("indexed")
        return self._page.locator(".uploads-head [role=status]").inner_text()

    def suggestion(self) -> str | None:
        """The first suggested question; None once all documents have theirs and there is none."""
        self._page.wait_for_function(
            "() => document.querySelector('.overview-questions button') !== null ||"
            " (document.querySelectorAll('.overview-card').length >="
            "  document.querySelectorAll('.upload.good').length &&"
            "  document.querySelector('.overview-card [role=status]') === null)"
        )
        found = self._page.locator(".overview-questions button")
        question = found.first.inner_text() if found.count() else None
        self.waited("suggested")
        return question

    def ask(self) -> dict[str, Any]:
        """Click the first suggestion; what is answered, and whether the page calls it in doubt."""
        self._page.locator(".overview-questions button").first.click()
        turn = self._page.locator(".ask-turn").last
        turn.locator(".ask-how").wait_for()
        self.waited("answered")
        first = turn.locator("a.ask-mark").first
        return {
            "answer": turn.locator(".ask-lead, .ask-quoted, .ask-text, .ask-refusal-title").first.inner_text(),
            "in_doubt": first.count() == 0 or "doubtful" in (first.get_attribute("class") or ""),
        }

    def open_passage(self) -> bool:
        """Open the first footnote; whether its passage is marked in the document."""
        self._page.locator(".ask-turn").last.locator("a.ask-mark").first.click()
        self._page.locator(".passage-panel .pdf-box, .passage-panel mark").first.wait_for()
        self.waited("highlighted")
        return True

    def go_on(self) -> str | None:
        """Click the first question that stands below the answer, and wait for its answer; None where there is none."""
        self._page.keyboard.press("Escape")
        offered = self._page.locator(".ask-next button")
        if offered.count() == 0:
            return None
        question = offered.first.inner_text()
        offered.first.click()
        self._page.locator(".ask-turn:nth-of-type(2) .ask-how").wait_for()
        return question

    def conversation(self) -> str:
        """The id of the conversation that is shown."""
        return self._page.url.rpartition("/c/")[2]


def visit(browser: "Browser", folder: Path, files: tuple[Path, Path]) -> dict[str, Any]:
    """One newcomer with two documents."""
    found: dict[str, Any] = {"documents": [f"{path.parent.name}/{path.name}" for path in files], "outcome": "error"}
    with serving(folder) as (link, key):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(_PATIENCE_S * 1000)
        visited = Visit(page)
        try:
            visited.sign_in(link)
            found["uploads"] = visited.drop(*files)
            found["question"] = visited.suggestion()
            found["outcome"] = "no question"
            if found["question"] is not None:
                found |= visited.ask()
                found["confirmed"] = _last_is_confirmed(link, key, visited.conversation())
                found["outcome"] = "not confirmed"
                if found["confirmed"] and not found["in_doubt"] and visited.open_passage():
                    found["outcome"] = "success"
                    found["waited_s"] = round(sum(visited.seconds.values()), 2)
                    found["next"] = visited.go_on()
                    found["next_confirmed"] = _last_is_confirmed(link, key, visited.conversation())
        except Exception as error:  # noqa: BLE001 - one visit that fails is a figure, and the others go on
            found["error"] = f"{type(error).__name__}: {str(error)[:300]}"
            page.screenshot(path=folder.parent / f"{folder.name}.png")
        finally:
            context.close()
    found["seconds"] = visited.seconds
    found.setdefault("waited_s", round(sum(visited.seconds.values()), 2))
    return found


def _last_is_confirmed(link: str, key: str, conversation: str) -> bool:
    """Whether the first footnote of a conversation's last answer is confirmed, as it is kept."""
    kept = httpx.get(
        f"{link.partition('/#')[0]}/v1/conversations/{conversation}",
        headers={"Authorization": f"Bearer {key}"},
        trust_env=False,
    ).json()["data"][-1]
    return bool(kept["citations"]) and bool(kept["citations"][0]["verified"])


def summary(visits: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of outcomes, and the median and the longest wait of those that succeeded."""
    outcomes = [one["outcome"] for one in visits]
    waits = [one["waited_s"] for one in visits if one["outcome"] == "success"]
    asked = [one for one in visits if one.get("question")]
    went_on = [one for one in visits if one.get("next")]
    return {
        "pairs": len(visits),
        "outcomes": {name: outcomes.count(name) for name in sorted(set(outcomes))},
        "with_a_question": len(asked),
        "successes": outcomes.count("success"),
        "with_a_next_question": len(went_on),
        "next_confirmed": sum(one["next_confirmed"] for one in went_on),
        "waited_s": {"median": statistics.median(waits), "longest": max(waits)} if waits else None,
    }


def main() -> None:
    """Print a line for each pair and the summary; write all of it as JSON where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.newcomer", description=__doc__)
    parser.add_argument("documents", type=Path, help="a folder with a folder for each format")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--any", action="store_true", help="draw from all files, also those without English prose")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    require_default_models()
    from playwright.sync_api import sync_playwright

    visits = []
    executable = next(filter(None, map(shutil.which, _BROWSERS)))
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as scratch:
        browser = driver.chromium.launch(executable_path=executable, args=[*_FLAGS])
        drawn = pairs_of(chosen.documents.resolve(), pairs=chosen.pairs, seed=chosen.seed, prose=not chosen.any)
        for number, files in enumerate(drawn):
            folder = Path(scratch) / f"visit-{number}"
            folder.mkdir()
            visits.append(visit(browser, folder, files))
            print(json.dumps(visits[-1], ensure_ascii=False), flush=True)
        browser.close()
    told = {"machine": description(), "seed": chosen.seed, "any": chosen.any, **summary(visits), "visits": visits}
    print(json.dumps({name: value for name, value in told.items() if name != "visits"}, indent=1))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
