"""Pictures of what stays right while documents change, and of a table over many of them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from tests.web.camera import LOOK_SECONDS, Camera, ask, endings
from tests.web.two_weeks import add

if TYPE_CHECKING:
    from playwright.sync_api import Page

_FERRY = Path("app/web/src/assets/the-aldey-ferry.md")
_FARE = "What does a return ticket cost?"


def change(http: httpx.Client, camera: Camera) -> None:
    """A document that changes: its versions compared, a footnote that turned, a watched question, two that disagree."""
    told = _FERRY.read_text(encoding="utf-8")
    add(http, {_FERRY.name: told.encode()})
    (document,) = http.get("/v1/documents").json()["data"]
    with camera.page("light") as page:
        ask(page, _FARE)
        page.get_by_role("button", name="Watch", exact=True).click()
        page.get_by_role("link", name="Watched").last.wait_for()
        asked = page.url.partition("/#")[2]
        _until(lambda: [watch["state"] for watch in http.get("/v1/watches").json()["data"]] == ["current"])
        raised = told.replace("costs 8 euros", "costs 9 euros")
        body = {"text": raised, "filename": _FERRY.name, "wait": 30}
        http.put(f"/v1/documents/{document['id']}", json=body).raise_for_status()
        _until(lambda: http.get("/v1/watches").json()["data"][0]["changed_at"] is not None)
        camera.go(page, f"#{asked}", ".ask-turn a.ask-mark")
        _until(lambda: _turned(page))
        page.locator("a.ask-mark.doubtful").first.hover()
        page.get_by_role("tooltip").wait_for()
        camera.take(page, "altered-light")
        photograph_everywhere(camera, "watched", place="#/watches", awaited=".watch-sides ins")
        camera.go(page, "#/documents", ".documents-table tbody tr")
        page.get_by_role("button", name=f"Details of {_FERRY.name}").click()
        page.get_by_role("button", name="What changed since version 1").click()
        page.locator(".compared ins").first.wait_for()
        page.locator(".compared").first.scroll_into_view_if_needed()
        camera.take(page, "compared-light")
        other = "The fares of the Aldey ferry\n\nA return ticket costs 10 euros and is valid for two months.\n"
        add(http, {"fares-of-the-summer.md": other.encode()})
        camera.go(page, "#/", ".ask-composer")
        ask(page, _FARE)
        camera.take(page, "disagree-light")


def photograph_everywhere(camera: Camera, name: str, *, place: str, awaited: str) -> None:
    """A screen in all lights and widths."""
    for ending, scheme, width, height in endings():
        with camera.page(scheme, width=width, height=height) as page:
            camera.go(page, place, awaited)
            camera.take(page, f"{name}-{ending}")


def _turned(page: "Page") -> bool:
    """Whether the answer, opened anew, has a footnote whose passage was altered."""
    page.reload()
    page.locator(".ask-turn a.ask-mark").first.wait_for()
    return page.locator("a.ask-mark.doubtful").count() > 0


def _until(so: Callable[[], bool]) -> None:
    while not so():
        time.sleep(LOOK_SECONDS)


_AGREEMENT = """# {title}

This agreement is made between the Aldey Ferry Company and {party} on {date}.

## Fee

{fee}

## Notice

{notice}

## Governing law

This agreement is governed by the laws of {law}, and the courts of {court} decide all disputes about it.
"""
_AGREEMENTS = {
    "berth-at-the-north-quay.md": {
        "title": "Berth at the north quay",
        "party": "the Harbour Board of Aldey",
        "date": "3 March 2024",
        "fee": "The company pays the board a rent of 1,450 euros a month for the berth.",
        "notice": "Each party may end this agreement by three months' notice in writing.",
        "law": "Ireland",
        "court": "Cork",
    },
    "catering-on-board.md": {
        "title": "Catering on board",
        "party": "Brennan Foods",
        "date": "12 January 2025",
        "fee": "The caterer pays the company 12 per cent of its takings on board.",
        "notice": "This agreement ends with the season and needs no notice.",
        "law": "Ireland",
        "court": "Cork",
    },
    "fuel-supply.md": {
        "title": "Supply of fuel",
        "party": "Severn Marine Fuels",
        "date": "30 September 2023",
        "fee": "The price of the fuel is the market price of the day of delivery.",
        "notice": "Either party may terminate this agreement on giving sixty days' notice.",
        "law": "England and Wales",
        "court": "London",
    },
    "engine-maintenance.md": {
        "title": "Maintenance of the engines",
        "party": "Nordlys Marine",
        "date": "1 June 2025",
        "fee": "The company pays 2,300 euros for each service of an engine.",
        "notice": "The contractor serves each engine every 500 hours, in the home port of the ferry.",
        "law": "Norway",
        "court": "Bergen",
    },
}
_QUESTIONS = (
    {"name": "Payment", "question": "What does the company pay?"},
    {"name": "Notice", "question": "What notice ends the agreement?"},
    {"name": "Law", "question": "Which law governs the agreement?"},
)


def fill(http: httpx.Client, camera: Camera) -> None:
    """A table over agreements."""
    shelf = http.post("/v1/collections", json={"name": "agreements"}).json()["id"]
    for name, words in _AGREEMENTS.items():
        body = {"text": _AGREEMENT.format(**words), "filename": name, "collection_id": shelf, "wait": 30}
        http.post("/v1/documents", json=body).raise_for_status()
    made = http.post("/v1/tables", json={"questions": _QUESTIONS, "collection_ids": [shelf]}).json()["id"]
    _until(lambda: http.get(f"/v1/tables/{made}").json()["state"] == "finished")
    photograph_everywhere(camera, "table", place=f"#/tables/{made}", awaited=".answer-cell")
    photograph_everywhere(camera, "tables", place="#/tables", awaited=".tables-list li")
