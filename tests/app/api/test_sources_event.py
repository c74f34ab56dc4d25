"""POST /v1/ask as a stream: the event `sources` shows the passages that are read, and no others."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.server.state import State
from app.types import Role
from generation.ports import Engine
from retrieval.search import Search
from retrieval.types import Hit
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.sources import REPORT
from tests.app.api.conftest import client_of
from tests.app.api.openai.openai_server import Service
from tests.app.api.openai.test_response_format import FixedSearch, ScriptedEngine
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.retrieval.fakes import TopicEmbedder, chunk, hit
from tests.statements import executions_of

QUESTION = "Who became chief financial officer of Northwind?"
LOG = "Ships\n\nThe harbour master of Northwind logged\nforty ships."
HITS = (
    hit(chunk(1, REPORT, document_id="doc_1", filename="report.pdf", page_start=3, page_end=3), rank=1),
    hit(
        chunk(
            2, LOG, document_id="doc_2", version=7, filename="log.txt", start_char=500, heading_path=("Log", "Ships")
        ),
        rank=2,
    ),
)
OF_DOCUMENTS = re.compile(r"(?:FROM|JOIN) (?:document|chunk)\w*")


@dataclass(slots=True)
class Asked:
    """An application over a fixed search, and the statements that its database gets."""

    http: TestClient
    state: State

    def passages(self) -> list[dict[str, Any]]:
        """The passages of the event `sources`."""
        response = self.http.post("/v1/ask", json={"question": QUESTION, "stream": True})
        assert response.status_code == 200, response.text
        return passages(response.text)


def passages(stream: str) -> list[dict[str, Any]]:
    """The passages of a streamed answer's event `sources`, which are those that its ids name."""
    blocks = dict(event.split("\ndata: ", 1) for event in stream.split("\n\n") if "\ndata: " in event)
    body = json.loads(blocks["event: sources"])
    found: list[dict[str, Any]] = body["passages"]
    assert [one["chunk_id"] for one in found] == body["presented"]
    return found


@pytest.fixture
def serve(state: State) -> Iterator[Any]:
    closing: list[TestClient] = []

    def start(found: tuple[Hit, ...]) -> Asked:
        models = stations(
            state,
            cast(Engine, ScriptedEngine("Zoë Müller [1].")),
            embedder=TopicEmbedder("Northwind"),
            search=cast(Search, FixedSearch(found)),
            reader=PointingReader("Zoë Müller"),
            limits=ANY_EVIDENCE,
        )
        http = client_of(state_with(state, models=models))
        http.__enter__()
        closing.append(http)
        return Asked(http, state)

    yield start
    for http in closing:
        http.__exit__(None, None, None)


def test_each_source_is_told_with_its_name_place_and_first_words(serve) -> None:
    found = {one["chunk_id"]: one for one in serve(HITS).passages()}

    excerpt = found["chunk_1"].pop("excerpt")
    assert len(excerpt) <= 200
    assert excerpt.endswith("…")
    assert REPORT.startswith(excerpt.removesuffix("…"))
    assert found["chunk_1"] == {
        "chunk_id": "chunk_1",
        "document_id": "doc_1",
        "version": 1,
        "name": "report.pdf",
        "place": "page 3",
        "page_start": 3,
        "page_end": 3,
        "start_char": 0,
        "end_char": len(REPORT),
    }
    assert found["chunk_2"] == {
        "chunk_id": "chunk_2",
        "document_id": "doc_2",
        "version": 7,
        "name": "log.txt",
        "place": "Ships",
        "page_start": None,
        "page_end": None,
        "start_char": 500,
        "end_char": 500 + len(LOG),
        "excerpt": "The harbour master of Northwind logged forty ships.",
    }


def test_no_document_is_read_to_tell_its_passage(serve, state: State) -> None:
    paged = HITS[:1]  # of a format without pages the sections are read, for the footnotes
    asked = serve(paged)
    assert asked.passages()  # the first question of a server may load what later ones need

    with executions_of(state.database) as executed:
        assert len(asked.passages()) == len(paged)

    assert executed, "the ask reads and writes, only not documents"
    assert [found for statement, _ in executed for found in OF_DOCUMENTS.findall(statement)] == []


def test_nothing_of_another_tenant_is_told(openai_service: Service) -> None:
    openai_service.upload("Zanzibar's lighthouse burned in 1841.", "lighthouse.txt")

    def asked(secret: str) -> list[dict[str, Any]]:
        body = {"question": "When did Zanzibar's lighthouse burn?", "stream": True}
        headers = {"Authorization": f"Bearer {secret}"}
        return passages(openai_service.http.post("/v1/ask", json=body, headers=headers, timeout=30).text)

    own = asked(openai_service.key(Role.READER))
    assert [one["excerpt"] for one in own if one["name"] == "lighthouse.txt"] == [
        "Zanzibar's lighthouse burned in 1841."
    ]
    assert asked(openai_service.key(Role.READER, tenant="stranger")) == []
