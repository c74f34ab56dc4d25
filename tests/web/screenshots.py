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
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.web.camera import Camera, add, ask
from tests.web.looking import STILL
from tests.web.pictured_changes import change, fill

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from app.server.state import State

_BROWSERS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
_DAY = 86_400.0
_LOOK_SECONDS = 0.1
_WEEKS = 14 * _DAY
_offset = -_WEEKS


@dataclass(frozen=True, slots=True)
class Scene:
    """Files, and what is asked about them; the first question is the one on the pictures."""

    files: dict[str, bytes]
    questions: tuple[str, ...]


_REAL = {
    "pdf/nvidia_10q_2022q3.pdf": "reports",
    "pdf/ntsb_report_20071229X02007.pdf": "reports",
    "pdf/scotus_598us1r3.pdf": "court",
    "pdf/layout-parser-paper-fast.pdf": "papers",
    "pdf/nih_protocol_NCT06145295.pdf": "papers",
    "pdf/fed_agency_GSA2022.pdf": "reports",
}
_REAL_QUESTIONS = (
    "What kind of airplane was the pilot landing?",
    "What was the weather at the time of the accident?",
    "How many Federal employees do the buildings of GSA house?",
    "Who wrote the opinion of the Court?",
    "What is the fiscal year of GSA?",
)


def scene(documents: Path) -> Scene:
    """Real documents where they are, else the made ones."""
    from tests.web.made_documents import HARBOUR, LOG, QUESTION

    real = {Path(name).name: documents / name for name in _REAL if (documents / name).is_file()}
    if real:
        print(f"real documents of {documents}: {', '.join(real)}")
        return Scene({name: path.read_bytes() for name, path in real.items()}, _REAL_QUESTIONS)
    print("made documents, for there are no real ones")
    return Scene({"the log.pdf": LOG, "harbour.txt": HARBOUR.encode()}, (QUESTION, "Who counted every lantern?"))


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
                        time.sleep(_LOOK_SECONDS)
                yield http
        finally:
            server.should_exit = True
            thread.join(60)


def use(http: httpx.Client, shown: Scene) -> None:
    """Two weeks of it: documents are added, and a few people ask."""
    global _offset  # noqa: PLW0603 the clock of the whole process
    price_models(http, *shown.files.items(), question=shown.questions[0])
    collections: dict[str, str] = {}
    for name, content in shown.files.items():
        shelf = next((shelf for path, shelf in _REAL.items() if path.endswith(f"/{name}")), "papers")
        if shelf not in collections:
            collections[shelf] = http.post("/v1/collections", json={"name": shelf}).json()["id"]
        fields = {"collection_id": collections[shelf], "wait": "30"}
        body = http.post("/v1/documents", files={"file": (name, content)}, data=fields).json()
        while body["status"] not in {"indexed", "failed"}:
            time.sleep(_LOOK_SECONDS)
            body = http.get(f"/v1/documents/{body['id']}").json()
        print(f"  {name}: {body['status']}")
        _offset += _DAY / 4
    people = []
    for who in ("ada", "grace", "linus"):
        made = http.post("/v1/admin/keys", json={"name": f"{who}’s laptop", "role": "member", "user_id": who}).json()
        people.append({"Authorization": f"Bearer {made['secret']}"})
    turn = 0
    while _offset < -_DAY:
        for _ in range(turn * 7 % 3 + 1):
            question = shown.questions[turn % len(shown.questions)]
            http.post("/v1/ask", json={"question": question}, headers=people[turn % 5 % 3])
            turn += 1
        _offset += _DAY
    _offset = 0.0


def price_models(http: httpx.Client, *files: tuple[str, bytes], question: str) -> None:
    """Set a price for every model that works; which do, a tenant that is on no picture finds out."""
    http.post("/v1/admin/tenants", json={"id": "trial", "name": "Trial"}).raise_for_status()
    key = http.post("/v1/admin/tenants/trial/keys", json={}).json()["secret"]
    trial = {"Authorization": f"Bearer {key}"}
    for name, content in files:
        fields = {"wait": "30"}
        http.post("/v1/documents", files={"file": (name, content)}, data=fields, headers=trial).raise_for_status()
    http.post("/v1/ask", json={"question": question}, headers=trial).raise_for_status()
    now = int(time.time())
    body = {"start_time": now - 86_400, "end_time": now + 60, "reason": "which models are there", "tenant_id": "trial"}
    found = http.post("/v1/admin/prices/rerate", json=body).json()
    for model in (one["model"] for one in found["models"]):
        for meter, price in (("input", "0.15"), ("cached_input", "0.05"), ("output", "0.60"), ("embedding", "0.02")):
            body = {"model": model, "meter": meter, "price_per_million": price, "source": "an example"}
            http.post("/v1/admin/prices", json=body).raise_for_status()


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


_WIDTHS = {1280: 800, 390: 844}
"""Widths and heights of the window, in CSS pixels."""
_ADMINISTRATION = {
    "overview": "[data-chart=overview] canvas",
    "keys": "table tbody tr",
    "users": "table tbody tr",
    "prices": "table tbody tr",
    "models": ".steps, .facts",
    "health": ".stations li",
    "audit": "table tbody tr",
}


def photograph(camera: Camera, shown: Scene) -> None:
    """All pictures: twelve screens, light and dark, 1280 and 390 pixels wide."""
    for scheme in ("light", "dark"):
        for width, height in _WIDTHS.items():
            ending = scheme if width == max(_WIDTHS) else f"{scheme}-{width}"
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
    """An answer with how it was made, and the passage that its last footnote opens."""
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


def _clock(real: Callable[[], float] = time.time) -> Callable[[], float]:
    return lambda: real() + _offset


def main() -> None:
    """Serve, use and photograph."""
    global _offset  # noqa: PLW0603 the clock of the whole process
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, default=Path("../shared/data/documents"))
    parser.add_argument("--out", type=Path, default=Path("docs/screens"))
    parser.add_argument(
        "--wording", action="store_true", help="Instead: an answer that the model in FOOTNOTE_GENERATOR words."
    )
    parser.add_argument(
        "--changes", action="store_true", help="Instead: a document that gets another version, and a table."
    )
    given = parser.parse_args()
    if given.changes:
        _offset = 0.0
    time.time = _clock()  # before anything of the application keeps the function it finds
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
            use(http, shown)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(**browser_options)
            camera = Camera(browser, http, given.out)
            if given.wording:
                photograph_wording(camera)
            elif given.changes:
                change(http, camera)
                fill(http, camera)
            else:
                photograph(camera, shown)
            browser.close()


if __name__ == "__main__":
    main()
