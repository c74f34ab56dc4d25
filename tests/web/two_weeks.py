"""Two weeks of use, told by a clock that runs ahead: real documents, a few people, prices, budgets and opinions."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.web.camera import LOOK_SECONDS

_DAY = 86_400.0
_WEEKS = 14 * _DAY


class Clock:
    """Unix time, moved by `ahead_s` seconds: two weeks ago, when it is made. For the place of `time.time`."""

    def __init__(self) -> None:
        self.ahead_s = -_WEEKS
        self._real = time.time

    def __call__(self) -> float:
        return self._real() + self.ahead_s


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
    "How old was the pilot?",
    "When did the accident happen?",
    "How many Federal employees does GSA house?",
    "Who delivered the opinion of the Court?",
    "Who is the principal investigator?",
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


def use(http: httpx.Client, shown: Scene, clock: Clock) -> None:
    """Two weeks of it: documents are added, a few people ask, and the administrator sets what they may spend."""
    price_models(http, *shown.files.items(), question=shown.questions[0])
    collections: dict[str, str] = {}
    for name, content in shown.files.items():
        shelf = next((shelf for path, shelf in _REAL.items() if path.endswith(f"/{name}")), "papers")
        if shelf not in collections:
            collections[shelf] = http.post("/v1/collections", json={"name": shelf}).json()["id"]
        add(http, {name: content}, collection_id=collections[shelf])
        clock.ahead_s += _DAY / 4
    people = []
    for who in ("ada", "grace", "linus"):
        made = http.post("/v1/admin/keys", json={"name": f"{who}’s laptop", "role": "member", "user_id": who}).json()
        people.append(made)
    set_limits(http, people)
    turn = 0
    while clock.ahead_s < -_DAY:
        for _ in range(turn * 7 % 3 + 1):
            question = shown.questions[turn % len(shown.questions)]
            headers = {"Authorization": f"Bearer {people[turn % 5 % 3]['secret']}"}
            kept = http.post("/v1/conversations", json={}, headers=headers).json()
            asked = {"question": question, "conversation_id": kept["id"]}
            answer = http.post("/v1/ask", json=asked, headers=headers).json()
            if turn in _SAID:
                score, comment = _SAID[turn]
                said = {"score": score, "comment": comment}
                http.post(f"/v1/requests/{answer['id']}/feedback", json=said, headers=headers).raise_for_status()
            turn += 1
        clock.ahead_s += _DAY
    clock.ahead_s = 0.0


_SAID = {
    1: (1, "The footnote opened the very line."),
    4: (-1, "The protocol names one, in the appendix that nobody has uploaded."),
    7: (1, None),
    8: (1, "Right, and faster than the search of our archive."),
    12: (-1, "There is a newer report."),
}
"""Scores and comments on answers, by their number."""


def add(http: httpx.Client, files: dict[str, bytes], **fields: str) -> None:
    """Upload files, and wait until they are indexed."""
    for name, content in files.items():
        data = {"wait": "30", **fields}
        body = http.post("/v1/documents", files={"file": (name, content)}, data=data).json()
        while body["status"] not in {"indexed", "failed"}:
            time.sleep(LOOK_SECONDS)
            body = http.get(f"/v1/documents/{body['id']}").json()
        print(f"  {name}: {body['status']}")


def set_limits(http: httpx.Client, people: list[dict[str, Any]]) -> None:
    """Budgets and rate limits for the tenant and for people with keys, and a second tenant."""
    default = http.get("/v1/session").json()["tenant_id"]
    for scope, scope_id, unit, limit, enforcement in (
        ("tenant", None, "cost", "25.00", "hard"),
        ("user", people[0]["user_id"], "tokens", 60_000, "hard"),
        ("user", people[2]["user_id"], "tokens", 6_000, "soft"),
        ("key", people[1]["id"], "cost", "0.01", "hard"),
    ):
        budget = {"scope_type": scope, "scope_id": scope_id, "unit": unit, "limit": limit, "period": "month"}
        budget |= {"enforcement": enforcement, "thresholds": [80, 100]}
        http.post("/v1/admin/budgets", json=budget).raise_for_status()
    requests, tokens = {"requests_per_minute": 60}, {"tokens_per_minute": 100_000, "concurrent_requests": 4}
    http.put(f"/v1/admin/limits/tenants/{default}", json={**tokens, "requests_per_minute": 600}).raise_for_status()
    http.put(f"/v1/admin/limits/keys/{people[1]['id']}", json=requests).raise_for_status()
    http.put(f"/v1/admin/limits/keys/{people[2]['id']}", json=tokens).raise_for_status()
    http.post("/v1/admin/tenants", json={"id": "field-office", "name": "Field office"}).raise_for_status()


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
