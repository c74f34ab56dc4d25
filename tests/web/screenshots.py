"""Takes pictures of the screens: `python -m tests.web.screenshots [--out FOLDER] [--wording | --changes]`.

The default models answer where they are fetched, else the scripted one; real documents are read where they are, else
made ones. It says which. The clock of the server runs through two weeks, so that there is use to show.
"""

import argparse
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.web.camera import LOOK_SECONDS, Camera, ask, endings
from tests.web.looking import STILL
from tests.web.pictured_changes import change, fill
from tests.web.two_weeks import Clock, Scene, add, scene, use

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from app.server.state import State

_BROWSERS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")


def application(data_dir: Path) -> "AbstractContextManager[State]":
    """With the default models where they are fetched, else with the scripted one."""
    from app.models.catalog import DEFAULT_MODELS
    from app.models.fetch import is_fetched
    from app.server.bootstrap import build
    from app.settings import load_settings
    from tests.server import ADMIN_KEY
    from tests.web import served

    settings = load_settings(data_dir=data_dir, admin_key=ADMIN_KEY, watch_interval_s=1)
    if all(is_fetched(model, models_dir=settings.models_dir) for model in DEFAULT_MODELS):
        print("the default models answer")
        return build(settings)
    print("the scripted model answers, for the default models are not all fetched")
    return served.application(data_dir)


@contextmanager
def serving(data_dir: Path) -> Iterator[httpx.Client]:
    """The application on a loopback port; a client of its administrator."""
    import uvicorn

    from app.api.application import create_app
    from tests.server import ADMIN_KEY

    app = create_app(lambda: application(data_dir), version="0")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="served")
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        try:
            with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=300) as http:
                while thread.is_alive():
                    try:
                        if http.get("/readyz").status_code == 200:
                            break
                    except httpx.TransportError:
                        time.sleep(LOOK_SECONDS)
                yield http
        finally:
            server.should_exit = True
            thread.join(60)


_WORDED = "Why did NVIDIA's gross margin shrink in the third quarter of fiscal 2023?"


def photograph_wording(camera: Camera) -> None:
    """The page while a model words an answer above the quotes, and what it has worded."""
    with camera.page("light") as page:
        camera.go(page, "#/", ".ask-composer")
        page.get_by_label("Your question").fill(_WORDED)
        page.get_by_label("Your question").press("Enter")
        page.locator(".ask-answer[aria-busy=true] > .ask-text").wait_for()
        page.locator(".ask-turn").last.evaluate("turn => turn.scrollIntoView()")
        camera.take(page, "wording-light", still=False)
        page.get_by_role("button", name="Ask", exact=True).wait_for(timeout=600_000)
        page.locator(".ask-turn").last.evaluate("turn => turn.scrollIntoView()")
        camera.take(page, "worded-light")


_ADMINISTRATION = {
    "overview": "[data-chart=overview] canvas",
    "keys": "table tbody tr",
    "users": "table tbody tr",
    "tenants": "table tbody tr",
    "prices": "table tbody tr",
    "budgets": ".budgets li",
    "limits": "table tbody tr",
    "models": ".steps, .facts",
    "health": ".stations li",
    "feedback": "table tbody tr",
    "audit": "table tbody tr",
}


def photograph(camera: Camera, shown: Scene) -> None:
    """The pictures of all screens but those of `pictured_changes`."""
    for ending, scheme, width, height in endings():
        with camera.page(scheme, width=width, height=height) as page:
            photograph_answer(camera, page, shown, ending=ending)
            camera.go(page, "#/documents", ".documents-table tbody tr")
            camera.take(page, f"documents-{ending}")
            camera.go(page, "#/usage", "[data-chart=cost] canvas")
            page.locator("#everybody").scroll_into_view_if_needed()
            page.locator("#everybody").evaluate("heading => scrollBy(0, heading.getBoundingClientRect().top - 70)")
            camera.take(page, f"usage-{ending}")
            for part, awaited in _ADMINISTRATION.items():
                camera.go(page, f"#/admin/{part}", awaited)
                camera.take(page, f"admin-{part}-{ending}")
            page.get_by_role("button", name="Sign out").click()
            page.get_by_label("API key").wait_for()
            camera.take(page, f"sign-in-{ending}")


def photograph_answer(camera: Camera, page: "Page", shown: Scene, *, ending: str) -> None:
    """An answer with how it was made, the passage that its last footnote opens, and the whole document."""
    for question in reversed(shown.questions[:3]):
        camera.go(page, "#/", ".ask-composer")
        ask(page, question)
    page.locator(".ask-how summary").last.click()
    page.wait_for_function(STILL)  # what moves hides the card
    mark = page.locator("a.ask-mark").last
    mark.scroll_into_view_if_needed()
    page.wait_for_function(STILL)
    if not ending.endswith("390"):
        mark.hover()
        page.get_by_role("tooltip").wait_for()
    camera.take(page, f"ask-{ending}")
    mark.click()
    page.locator(".pdf-box, .text-body mark").first.wait_for()
    page.locator(".pdf-picture canvas, .text-body mark").first.wait_for()
    camera.take(page, f"passage-{ending}")
    if ending.endswith("390"):
        return  # a phone has no room for both: the footnote has opened the whole document
    page.get_by_role("link", name="Open whole document").click()
    page.locator(".viewer .pdf-picture canvas, .viewer .text-body mark").first.wait_for()
    camera.take(page, f"document-{ending}")


def main() -> None:
    """Serve, use and photograph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, default=Path("../shared/data/documents"))
    parser.add_argument("--out", type=Path, default=Path("docs/screens"))
    parser.add_argument(
        "--wording", action="store_true", help="Instead: an answer that the model in FOOTNOTE_GENERATOR words."
    )
    parser.add_argument("--changes", action="store_true", help="Instead: a document that changes, and a table.")
    given = parser.parse_args()
    time.time = clock = Clock()  # before anything of the application is imported, which keeps the function it finds
    from playwright.sync_api import sync_playwright

    shown = scene(given.documents)
    given.out.mkdir(parents=True, exist_ok=True)
    browser_options: dict[str, Any] = {
        "executable_path": next(filter(None, map(shutil.which, _BROWSERS))),
        "args": ["--no-sandbox", "--disable-gpu"],
    }
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "data") as http:
        if given.wording:
            add(http, {name: content for name, content in shown.files.items() if "nvidia" in name})
        elif not given.changes:
            use(http, shown, clock)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(**browser_options)
            camera = Camera(browser, http, given.out)
            if given.wording:
                photograph_wording(camera)
            elif given.changes:
                clock.ahead_s = 0.0
                change(http, camera)
                fill(http, camera)
            else:
                photograph(camera, shown)
            browser.close()


if __name__ == "__main__":
    main()
