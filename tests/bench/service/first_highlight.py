"""`python -m tests.bench.service.first_highlight PDF QUESTION`: what a newcomer waits for, with the default models.

`footnote serve` on an empty data dir, a browser, and the least that leads from the first screen to the cited sentence
on its page: add a file, ask, open the footnote. Each step tells how long the page made one wait; reading and pointing,
which a person does besides, take no time here.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.server import ADMIN_KEY, Server

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_PATIENCE_MS = 120_000


def first_highlight(url: str, document: Path, question: str, *, picture: Path | None = None) -> dict[str, Any]:
    """Seconds of each step, and what was answered and marked; a refusal ends it after the answer."""
    from playwright.sync_api import sync_playwright

    found: dict[str, Any] = {}
    executable = next(filter(None, map(shutil.which, _BROWSERS)))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=[*_FLAGS])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(_PATIENCE_MS)
        began = time.perf_counter()

        def step(name: str) -> None:
            nonlocal began
            now = time.perf_counter()
            found[f"{name}_s"], began = round(now - began, 2), now

        page.goto(f"{url}/#key={ADMIN_KEY}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Add files").wait_for(state="attached")
        step("first_screen")
        page.get_by_label("Add files").set_input_files(document)
        page.get_by_role("link", name="Ask a question").click()
        step("indexed")
        field = page.get_by_label("Your question")
        field.fill(question)
        field.press("Enter")
        turn = page.locator(".ask-turn").last
        turn.locator(".ask-how").wait_for()
        step("answered")
        marks = turn.locator(".ask-text a.ask-mark")
        found["answer"] = turn.locator(".ask-text, .ask-refusal-title").first.inner_text()
        if marks.count():
            marks.first.click()
            page.locator(".passage-panel .pdf-box").first.wait_for()
            step("highlighted")
            found["passage"] = page.locator(".passage-panel figure").first.inner_text()
        if picture is not None:
            page.screenshot(path=picture)
        browser.close()
    found["waited_s"] = round(sum(seconds for name, seconds in found.items() if name.endswith("_s")), 2)
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.first_highlight", description=__doc__)
    parser.add_argument("document", type=Path, help="a PDF")
    parser.add_argument("question")
    parser.add_argument("--picture", type=Path, help="where to keep a picture of the last screen")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data")
        try:
            server.start()
            told = first_highlight(server.url, chosen.document, chosen.question, picture=chosen.picture)
        finally:
            server.stop()
    print(json.dumps(told, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
