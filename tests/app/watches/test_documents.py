"""Watches over HTTP, over documents that the worker ingests: changes of the scope, events, and restarts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.models.extractive import NoEngine
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Role
from generation.ports import Engine
from tests.app.answering.answerers import QuotesAs
from tests.app.answering.pointing_reader import PointingReader
from tests.app.api.conftest import ADMIN_KEY, client_of
from tests.app.api.credentials import key_of
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.app.watches.desk import FEE, LEAST_S, PETS, QUESTION, RAISED, Desk
from tests.installation import installed
from tests.retrieval.fakes import HashingEmbedder


class House:
    """The application with a worker and answers by quotes, and a member who watches."""

    def __init__(self, state: State, client: TestClient, desk: Desk) -> None:
        self.client = client
        self.desk = desk
        self.key = key_of(state, Role.MEMBER)

    def ingest(self, text: str, **fields: object) -> str:
        body = {"text": text, "filename": "rules.txt", "wait": 30, **fields}
        sent = self.client.post("/v1/documents", json=body, headers=self.key).json()
        assert sent["status"] == "indexed", sent
        return str(sent["id"])

    def replace(self, document_id: str, text: str) -> None:
        body = {"text": text, "filename": "rules.txt", "wait": 30}
        sent = self.client.put(f"/v1/documents/{document_id}", json=body, headers=self.key).json()
        assert sent["status"] == "indexed", sent

    def watch(self, **fields: object) -> str:
        made = self.client.post("/v1/watches", json={"question": QUESTION, **fields}, headers=self.key)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def get(self, path: str) -> Any:
        found = self.client.get(f"/v1/watches/{path}", headers=self.key)
        assert found.status_code == 200, found.text
        return found.json()


@pytest.fixture
def house(state: State) -> Iterator[House]:
    engine = cast(Engine, NoEngine(revision="1", context_window=2000))
    models = stations(
        state,
        engine,
        embedder=HashingEmbedder(max_tokens=64),
        reader=PointingReader("euros a month", asked="euros"),
        quotes=QuotesAs.ONLY,
        limits=ANY_EVIDENCE,
    )
    desk = Desk(state)
    desk.answerer = models.answerer
    with client_of(state_with(state, models=models)) as client:
        models.worker.start()
        try:
            yield House(state, client, desk)
        finally:
            models.worker.stop()


def test_a_replaced_document_is_an_event_with_the_passages_of_both_versions(house: House) -> None:
    document = house.ingest(f"{FEE}\n\n{PETS}")
    watch = house.watch(on_change=True)
    assert house.get(watch)["state"] == "waiting"
    assert house.desk.work() == 1
    first = house.get(watch)
    assert (first["state"], first["answer"]["answered"], first["every_s"]) == ("current", True, None)

    house.replace(document, f"{RAISED}\n\n{PETS}")
    assert house.desk.work() == 0, "it is looked at a moment later"
    assert house.desk.work(later=LEAST_S) == 1
    (event,) = house.get(f"{watch}/events")["data"]
    (found,) = event["differences"]
    assert (event["object"], event["watch_id"], found["kinds"]) == ("watch_event", watch, ["number"])
    assert [(run["kind"], run["text"].strip()) for run in found["changes"] if run["kind"] != "equal"] == [
        ("removed", "30"),
        ("added", "35"),
    ]
    assert first["changed_at"] is None
    (listed,) = house.client.get("/v1/watches", headers=house.key).json()["data"]
    assert house.get(watch)["changed_at"] == listed["changed_at"] == event["created_at"]
    assert event["before"] == first["answer"]
    assert event["after"] == house.get(watch)["answer"]
    for side, text, version in (("before", FEE, 1), ("after", RAISED, 2)):
        cited = found[side]
        assert (cited["cited_text"], cited["version"], cited["document_id"]) == (text, version, document)
    content = house.client.get(
        f"/v1/documents/{document}/content",
        params={"start": found["after"]["start_char"], "end": found["after"]["end_char"]},
        headers=house.key,
    )
    assert content.text == RAISED


def test_a_document_of_another_scope_is_not_looked_at_and_one_beside_makes_no_event(house: House) -> None:
    document = house.ingest(FEE)
    other = house.client.post("/v1/collections", json={"name": "other"}, headers=house.key).json()["id"]
    watch = house.watch(document_ids=[document])
    whole = house.watch()
    assert house.desk.work() == 2
    house.ingest(PETS, collection_id=other)
    house.desk.work()

    assert house.desk.work(later=LEAST_S) == 1, "the watch of the one document is not due"
    assert house.get(f"{watch}/events")["data"] == house.get(f"{whole}/events")["data"] == []


def test_a_deleted_document_is_an_event(house: House) -> None:
    document = house.ingest(FEE)
    watch = house.watch()
    house.desk.work()
    house.client.delete(f"/v1/documents/{document}", headers=house.key)
    house.desk.work()
    assert house.desk.work(later=LEAST_S) == 1

    (event,) = house.get(f"{watch}/events")["data"]
    assert [one["kinds"] for one in event["differences"]] == [["answered"], ["passage"]]
    assert event["after"]["reason"] == "no_evidence"


def test_a_watch_is_changed_paused_and_deleted(house: House) -> None:
    watch = house.watch(every_s=3600, budget={"tokens": 10, "period": "month"}, filter={"year": 2024})
    assert house.get(watch)["on_change"] is False

    def patch(**fields: object) -> Any:
        return house.client.patch(f"/v1/watches/{watch}", json=fields, headers=house.key).json()

    assert patch(paused=True)["state"] == "paused"
    assert patch(paused=False)["state"] == "waiting"
    changed = patch(every_s=None, on_change=True, budget=None, filter=None)
    assert [changed[name] for name in ("every_s", "on_change", "budget", "filter")] == [None, True, None, None]
    deleted = house.client.delete(f"/v1/watches/{watch}", headers=house.key).json()
    assert deleted == {"id": watch, "object": "watch", "deleted": True}
    assert house.client.get(f"/v1/watches/{watch}/events", headers=house.key).status_code == 404


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"every_s": 10}, 422),
        ({"on_change": False}, 422),
        ({"collection_ids": ["col_9"]}, 404),
        ({"filter": {"year": {"$about": 1}}}, 422),
        ({"filter": {"a\0b": "\0"}}, 422),
        ({"document_ids": ["\0"]}, 201),
        ({"document_ids": ["\ud800"]}, 422),
        ({"filter": {"a": "\ud800"}}, 422),
        ({"question": "a\0b"}, 422),
        ({"budget": {"tokens": 0, "period": "day"}}, 422),
        ({"budget": {"tokens": 1, "period": "total"}}, 422),
        ({"every_s": 10**12}, 422),
        ({"webhook_url": "https://example.org"}, 422),
    ],
)
def test_what_cannot_be_watched_is_refused(house: House, fields: dict[str, object], status: int) -> None:
    body = json.dumps({"question": QUESTION, **fields})
    headers = {**house.key, "Content-Type": "application/json"}
    made = house.client.post("/v1/watches", content=body, headers=headers)

    assert made.status_code == status, made.text
    if status == 201:
        house.desk.work()
        assert house.get(made.json()["id"])["state"] in {"current", "failing"}


def test_a_key_may_have_so_many(house: House) -> None:
    for _ in range(20):
        house.watch()
    refused = house.client.post("/v1/watches", json={"question": QUESTION}, headers=house.key)

    assert (refused.status_code, refused.json()["detail"]) == (409, "A key may have 20 watches; delete one first.")


def test_a_start_goes_on_where_the_process_ended_that_was_asking(tmp_path: Path) -> None:
    settings = Settings(data_dir=installed(tmp_path / "data"), admin_key=ADMIN_KEY, _env_file=None)
    with build(settings, with_models=False) as state:
        desk = Desk(state)
        watch = desk.watch()
        desk.shelf.put(FEE)
        desk.work()
        desk.now += 3600
        assert desk.runs.claim() is not None, "it ends before it has an answer"
    with build(settings, with_models=False) as state:
        again = Desk(state)
        again.now = desk.now
        again.shelf.put(RAISED, version=2)
        assert again.runner(runs=again.runs_of("boot_2")).work() == 1

        (event,) = again.watches.events(watch.id, principal=desk.ann, limit=9)[0]
        assert [one["kinds"] for one in event.differences] == [["number"]]
        assert again.runner(runs=again.runs_of("boot_2")).work() == 0
