"""Tables over HTTP, over documents that the worker ingests: progress, rows, CSV, and what is refused."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.models.extractive import NoEngine
from app.server.state import State
from app.types import Role
from generation.ports import Engine
from tests.app.answer_tables.office import Office
from tests.app.answering.answerers import QuotesAs
from tests.app.answering.pointing_reader import PointingReader
from tests.app.api.conftest import client_of
from tests.app.api.credentials import key_of
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.app.watches.desk import FEE, PETS, QUESTION, RAISED
from tests.retrieval.fakes import HashingEmbedder

COLOUR = "What colour is the door?"


class House:
    """The application with a worker and answers by quotes, and a member with tables."""

    def __init__(self, state: State, client: TestClient, office: Office) -> None:
        self.client = client
        self.office = office
        self.key = key_of(state, Role.MEMBER)

    def ingest(self, text: str, filename: str, **fields: object) -> str:
        body = {"text": text, "filename": filename, "wait": 30, **fields}
        sent = self.client.post("/v1/documents", json=body, headers=self.key).json()
        assert sent["status"] == "indexed", sent
        return str(sent["id"])

    def make(self, **fields: object) -> Any:
        made = self.client.post("/v1/tables", json={"questions": [QUESTION], **fields}, headers=self.key)
        assert made.status_code == 201, made.text
        return made.json()

    def get(self, path: str, **params: str | int) -> Any:
        found = self.client.get(f"/v1/tables{path}", headers=self.key, params=params)
        assert found.status_code == 200, found.text
        return found.json()

    def sheet(self, table: str) -> list[dict[str, str]]:
        found = self.client.get(f"/v1/tables/{table}.csv", headers=self.key)
        assert (found.status_code, found.headers["content-type"]) == (200, "text/csv; charset=utf-8")
        return list(csv.DictReader(io.StringIO(found.text, newline="")))


@pytest.fixture
def house(state: State) -> Iterator[House]:
    models = stations(
        state,
        cast(Engine, NoEngine(revision="1", context_window=2000)),
        embedder=HashingEmbedder(max_tokens=64),
        reader=PointingReader("euros a month", asked="euros"),
        quotes=QuotesAs.ONLY,
        limits=ANY_EVIDENCE,
    )
    office = Office(state)
    office.answerer = models.answerer
    with client_of(state_with(state, models=models)) as client:
        models.worker.start()
        try:
            yield House(state, client, office)
        finally:
            models.worker.stop()


def test_a_table_fills_and_is_read_and_downloaded(house: House) -> None:
    one, two = house.ingest(FEE, "b.txt"), house.ingest(f"{RAISED}\n\n{PETS}", "a.txt")
    made = house.make(questions=[{"name": "Fee", "question": QUESTION}, COLOUR])
    assert (made["object"], made["state"], made["documents"]) == ("table", "running", 2)
    assert made["progress"] == {
        **{"total": 4, "waiting": 4},
        **dict.fromkeys(("asking", "answered", "unsure", "refused", "failed"), 0),
    }
    assert [row["Fee (state)"] for row in house.sheet(made["id"])] == ["waiting"] * 2
    assert house.office.fill() == 4

    found = house.get(f"/{made['id']}")
    assert (found["state"], found["progress"]["answered"], found["progress"]["waiting"]) == ("finished", 2, 0)
    assert [row["document_id"] for row in found["rows"]["data"]] == [two, one], "by name"
    assert found["usage"]["total_tokens"] == sum(row["usage"]["total_tokens"] for row in found["rows"]["data"]) > 0
    answer = found["rows"]["data"][0]["cells"][0]["answer"]
    cited = answer["citations"][0]
    content = house.client.get(
        f"/v1/documents/{two}/content",
        params={"start": cited["start_char"], "end": cited["end_char"]},
        headers=house.key,
    )
    assert content.text == cited["cited_text"] == RAISED
    ledger = house.client.get("/v1/usage", headers=house.key).json()
    assert ledger, "billed to the key"

    first, second = house.sheet(made["id"])
    assert (first["document_id"], first["document"], first["Fee (quote)"]) == (two, "a.txt", RAISED)
    assert first["Fee"] == answer["value"] or first["Fee"] == answer["answer"]
    assert first["Fee (state)"] in {"answered", "confirmed"}
    assert first[f"{COLOUR} (state)"] == "refused"
    asked_for = house.client.get(f"/v1/tables/{made['id']}", headers={**house.key, "Accept": "text/csv"})
    assert list(csv.DictReader(io.StringIO(asked_for.text, newline=""))) == [first, second]
    part = house.client.get(f"/v1/tables/{made['id']}.csv?limit=1", headers=house.key)
    assert part.status_code == 422, "a file is whole"
    assert int(second["tokens"]) == found["rows"]["data"][1]["usage"]["total_tokens"]


def test_rows_and_tables_are_paged(house: House) -> None:
    for at in range(3):
        house.ingest(f"{FEE} {at}", f"{at}.txt")
    made = [house.make()["id"] for _ in range(3)]
    listed = house.get("", limit=2)
    rest = house.get("", limit=2, cursor=listed["next_cursor"])
    assert [one["id"] for one in (*listed["data"], *rest["data"])] == made[::-1]

    rows = house.get(f"/{made[0]}", limit=2)["rows"]
    assert [row["filename"] for row in rows["data"]] == ["0.txt", "1.txt"]
    last = house.get(f"/{made[0]}", limit=2, cursor=rows["next_cursor"])["rows"]
    assert [row["filename"] for row in last["data"]] == ["2.txt"]
    assert not last["has_more"]


def test_a_formula_in_a_name_a_document_or_an_answer_is_escaped(house: House) -> None:
    house.ingest(FEE, "=1+1.txt")
    made = house.make(questions=[{"name": "=cmd()", "question": QUESTION}])
    (row,) = house.sheet(made["id"])

    assert row["document"] == "'=1+1.txt"
    assert "'=cmd()" in row
    assert "=cmd()" not in row


def test_a_table_is_hidden_from_others_deleted_and_resumed(house: House) -> None:
    house.ingest(FEE, "a.txt")
    table = house.make(collection_ids=None, filter=None)["id"]
    other = key_of(house.office.state, Role.READER)
    for method, path in (("GET", ""), ("GET", ".csv"), ("DELETE", ""), ("POST", "/resume")):
        assert house.client.request(method, f"/v1/tables/{table}{path}", headers=other).status_code == 404
    admin = key_of(house.office.state, Role.ADMIN)
    assert house.client.get(f"/v1/tables/{table}", headers=admin).status_code == 200
    assert house.client.post(f"/v1/tables/{table}/resume", headers=admin).status_code == 403

    resumed = house.client.post(f"/v1/tables/{table}/resume", headers=house.key)
    assert resumed.json()["state"] == "running"
    deleted = house.client.delete(f"/v1/tables/{table}", headers=house.key)
    assert deleted.json() == {"id": table, "object": "table", "deleted": True}
    assert house.office.fill() == 0


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"questions": []}, 422),
        ({"questions": ["x"] * 21}, 422),
        ({"questions": ["x", "x"]}, 422),
        ({"questions": ["x\0"]}, 422),
        ({"questions": ["\ud800"]}, 422),
        ({"questions": [{"name": "", "question": "x"}]}, 422),
        ({"questions": [7]}, 422),
        ({"document_ids": ["doc_9"]}, 404),
        ({"document_ids": ["\0"]}, 404),
        ({"document_ids": []}, 422),
        ({"collection_ids": ["col_9"]}, 404),
        ({"filter": {"year": {"$about": 1}}}, 422),
        ({"filter": {"year": 1}}, 422),
        ({"length": "endless"}, 422),
        ({"webhook_url": "https://example.org"}, 422),
    ],
)
def test_what_cannot_be_asked_is_refused(house: House, fields: dict[str, object], status: int) -> None:
    body = json.dumps({"questions": [QUESTION], **fields})
    headers = {**house.key, "Content-Type": "application/json"}
    made = house.client.post("/v1/tables", content=body, headers=headers)

    assert (made.status_code, made.headers["content-type"]) == (status, "application/problem+json"), made.text
