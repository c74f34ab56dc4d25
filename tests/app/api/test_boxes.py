"""GET /v1/documents/{id}/boxes returns where on the page a passage is printed."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.documents.passage_boxes import MOST_CHARS, PassageBoxes
from app.server.state import State
from app.types import Role
from ingestion.extraction import LocalExtractor
from ingestion.types import ChunkDraft, PageBoxes, PageSpan
from tests.app.api.conftest import client_of
from tests.app.db.samples import EMBEDDER, generation_of, vectors_of
from tests.app.server.stations import state_with
from tests.ingestion.pdf_file import Shown, locked_pdf, pdf_bytes, set_pdf
from tests.originals import path_of

PAGES = [["The first page ends here."], ["The second page begins here."]]
TEXT = "The first page ends here.\n\nThe second page begins here."
NOWHERE = {"object": "list", "data": [], "exact": False, "coverage": 0.0}


def upload(client: TestClient, name: str, content: bytes, **fields: str) -> str:
    document_id: str = client.post("/v1/documents", files={"file": (name, content)}, data=fields).json()["id"]
    return document_id


def index_next(state: State) -> None:
    """Do a worker's work on the next job."""
    claimed = state.corpus.jobs.claim("boot-test")
    assert claimed is not None
    job, document = claimed
    path = path_of(state.corpus.files, document.id, document.version)
    extraction = LocalExtractor().extract(path, filename=document.filename, password="hunter2")
    state.corpus.jobs.commit(
        job,
        extraction=extraction,
        passages=[ChunkDraft(0, 0, len(extraction.text), None, None, (), extraction.text, extraction.text, 9)],
        vectors=vectors_of(1),
        generation=generation_of(state.database, EMBEDDER),
        embedding_tokens=9,
    )


def boxes(client: TestClient, document_id: str, start: int, end: int, **query: Any) -> Any:
    return client.get(f"/v1/documents/{document_id}/boxes", params={"start": start, "end": end, **query})


@pytest.fixture
def document_id(client: TestClient, state: State) -> str:
    made = upload(client, "a.pdf", pdf_bytes(PAGES))
    index_next(state)
    return made


def test_a_passage_has_a_box_a_line_on_each_of_its_pages(client: TestClient, document_id: str) -> None:
    body = boxes(client, document_id, TEXT.index("ends"), TEXT.index("begins")).json()

    assert (body["object"], body["exact"], body["coverage"]) == ("list", True, 1.0)
    assert [(page["page"], page["width"], page["height"], len(page["boxes"])) for page in body["data"]] == [
        (1, 612, 792, 1),
        (2, 612, 792, 1),
    ]
    (left, top, right, bottom), *_ = body["data"][1]["boxes"]
    assert left == pytest.approx(72, abs=1)
    assert top < 792 - 724 < 792 - 720 < bottom
    assert right < 200


def test_how_many_of_the_words_have_a_box_is_told(client: TestClient, state: State) -> None:
    printed = "Of these eight words six are in sight."
    made = upload(
        client, "a.pdf", set_pdf([[Shown(72, 700, "Of these eight words six"), Shown(700, 640, "are in sight.")]])
    )
    index_next(state)
    text = client.get(f"/v1/documents/{made}/content").text
    assert text.split() == printed.split()

    body = boxes(client, made, 0, len(text)).json()

    assert (body["exact"], body["coverage"]) == (False, 5 / 8)
    assert boxes(client, made, 0, text.index("six")).json()["coverage"] == 1.0


def test_a_page_that_is_not_in_the_file_any_more_has_no_words(
    client: TestClient, state: State, document_id: str
) -> None:
    path = path_of(state.corpus.files, document_id, 1)
    path.chmod(0o600)
    path.write_bytes(pdf_bytes(PAGES[:1]))

    body = boxes(client, document_id, 0, len(TEXT)).json()

    assert (len(body["data"]), body["exact"], body["coverage"]) == (1, False, 0.5)


def test_a_passage_ends_where_the_text_does(client: TestClient, document_id: str) -> None:
    body = boxes(client, document_id, len(TEXT) - 5, len(TEXT) + 10_000).json()

    assert [len(page["boxes"]) for page in body["data"]] == [1]
    assert boxes(client, document_id, len(TEXT), len(TEXT) + 5).json()["data"] == []
    assert boxes(client, document_id, 4, 4).json() == {"object": "list", "data": [], "exact": True, "coverage": 1.0}


def test_another_version_is_asked_for_by_its_number(client: TestClient, state: State, document_id: str) -> None:
    client.put(f"/v1/documents/{document_id}", files={"file": ("a.pdf", pdf_bytes([["A new text is here."]]))})
    index_next(state)

    assert boxes(client, document_id, 0, 5).json()["data"][0]["boxes"] != []
    assert [page["page"] for page in boxes(client, document_id, 0, 60, version=1).json()["data"]] == [1, 2]
    assert [page["page"] for page in boxes(client, document_id, 0, 60).json()["data"]] == [1]
    assert boxes(client, document_id, 0, 5, version=3).status_code == 404


def test_other_formats_have_no_boxes(client: TestClient, state: State) -> None:
    document_id = upload(client, "a.txt", b"The first page ends here.")
    index_next(state)

    assert boxes(client, document_id, 0, 9).json() == NOWHERE


def test_a_file_that_needs_its_password_has_no_boxes(client: TestClient, state: State) -> None:
    document_id = upload(client, "a.pdf", locked_pdf(PAGES, password="hunter2"), password="hunter2")
    index_next(state)

    assert boxes(client, document_id, 0, 9).json() == NOWHERE


def test_a_document_that_is_not_indexed_has_none(client: TestClient) -> None:
    assert boxes(client, upload(client, "a.pdf", pdf_bytes(PAGES)), 0, 9).status_code == 404


def test_a_document_of_another_tenant_is_not_there(client: TestClient, state: State, document_id: str) -> None:
    _, secret = state.access.keys.create(
        tenant_id="rival", user_id="u", name="k", role=Role.ADMIN, collections=None, expires_at=None
    )

    response = client.get(
        f"/v1/documents/{document_id}/boxes?start=0&end=5", headers={"Authorization": f"Bearer {secret}"}
    )

    assert response.status_code == 404


@pytest.mark.parametrize(
    "query", ["start=5&end=4", "start=-1&end=4", "start=0", "end=4", "start=x&end=4", f"start=0&end={MOST_CHARS + 1}"]
)
def test_an_invalid_passage_range_is_422(client: TestClient, document_id: str, query: str) -> None:
    assert client.get(f"/v1/documents/{document_id}/boxes?{query}").status_code == 422


class SlowParser:
    """Finds nothing, and only once `gate` is set."""

    def __init__(self) -> None:
        self.busy = threading.Event()
        self.gate = threading.Event()

    def locate(self, path: Path, spans: Sequence[PageSpan]) -> tuple[PageBoxes, ...]:
        self.busy.set()
        assert self.gate.wait(timeout=20)
        return ()

    def close(self) -> None:
        self.gate.set()


def test_too_many_simultaneous_box_requests_are_503_with_retry_after(state: State, document_id: str) -> None:
    corpus, parser = state.corpus, SlowParser()
    with (
        PassageBoxes(corpus.contents, corpus.files, parser=parser, most_waiting=1) as passage_boxes,
        client_of(state_with(state, passage_boxes=passage_boxes)) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(boxes, client, document_id, 0, 5)
        assert parser.busy.wait(timeout=20)

        response = boxes(client, document_id, 0, 5)

        parser.gate.set()
        assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
        assert first.result(timeout=20).status_code == 200
        assert boxes(client, document_id, 0, 5).status_code == 200
