"""POST /v1/admin/reconcile reports and repairs inconsistencies."""

from fastapi.testclient import TestClient

from app.documents.consistency import Inconsistency
from app.server.state import State
from tests.originals import path_of


def test_a_sound_installation_is_consistent(client: TestClient) -> None:
    body = client.post("/v1/admin/reconcile", json={}).json()

    assert body == {"object": "reconciliation", "consistent": True, "versions": 0, "chunks": 0, "findings": []}


def test_an_unrepairable_finding_is_reported_with_its_count(client: TestClient, state: State) -> None:
    document = client.post("/v1/documents", json={"text": "Some text.", "filename": "a.txt"}).json()
    path_of(state.corpus.files, document["id"], 1).unlink()

    body = client.post("/v1/admin/reconcile", json={"repair": True}).json()

    assert body["consistent"] is False
    (finding,) = body["findings"]
    assert finding["code"] == Inconsistency.MISSING_ORIGINALS
    assert (finding["count"], finding["mendable"], finding["mended"]) == (1, False, False)
    assert finding["detail"].startswith("1 originals of document versions are missing")
    assert 'footnote_inconsistencies{kind="missing_originals"} 1.0' in client.get("/metrics").text
