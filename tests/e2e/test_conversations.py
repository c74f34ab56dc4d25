"""A conversation over HTTP with the real models: ask, follow up, list, read, delete; the ledger has its history."""

import json
from typing import Any

import pytest

from tests.e2e.test_first_answer import REPORT
from tests.server import Server


@pytest.fixture(scope="module")
def document_id(generating: Server) -> str:
    body = generating.upload("conversation.md", REPORT.encode(), metadata=json.dumps({"kind": "conversation"}))
    assert body["status"] == "indexed", body
    return str(body["id"])


def test_a_conversation_from_its_first_question_to_its_end(generating: Server, document_id: str) -> None:
    made = generating.http.post("/v1/conversations", json={"metadata": {"from": "test"}})
    assert made.status_code == 201
    conversation = made.json()["id"]

    def ask(question: str) -> dict[str, Any]:
        body = {"question": question, "conversation_id": conversation, "document_ids": [document_id]}
        response = generating.http.post("/v1/ask", json={**body, "max_output_tokens": 24})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    first = ask("When did the plant in Oslo close?")
    second = ask("Why did it close?")

    assert (first["standalone_question"], second["standalone_question"]) == (
        None,
        "Why did the plant in Oslo close?",
    )
    assert first["usage"]["components"]["history"] == 0
    told = generating.http.post("/v1/tokens/count", json={"text": "When did the plant in Oslo close?"}).json()["tokens"]
    assert second["usage"]["components"]["history"] >= told
    assert sum(second["usage"]["components"].values()) == second["usage"]["total_tokens"]

    whole = generating.http.get(f"/v1/conversations/{conversation}").json()
    assert [turn["request_id"] for turn in whole["data"]] == [first["id"], second["id"]]
    for turn, answer in zip(whole["data"], (first, second), strict=True):
        told = zip(turn["citations"], answer["citations"], strict=True)
        assert [{name: one[name] for name in own} for one, own in told] == answer["citations"]
    assert {one["state"] for turn in whole["data"] for one in turn["citations"]} == {"current"}
    assert whole["title"] == "When did the plant in Oslo close?"
    assert conversation in {item["id"] for item in generating.http.get("/v1/conversations").json()["data"]}

    key = generating.http.post("/v1/admin/keys", json={"name": "other", "user_id": "another", "role": "member"}).json()
    headers = {"Authorization": f"Bearer {key['secret']}"}
    assert generating.http.get(f"/v1/conversations/{conversation}", headers=headers).status_code == 404

    assert generating.http.delete(f"/v1/conversations/{conversation}").json()["deleted"]
    assert generating.http.get(f"/v1/conversations/{conversation}").status_code == 404
    body = {"question": "And then?", "conversation_id": conversation}
    assert generating.http.post("/v1/ask", json=body).status_code == 404
