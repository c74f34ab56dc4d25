"""An answer of odd characters is streamed so that the standard's reader and ours read the text of the whole answer."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.application import create_app
from app.cli.answer_events import answer_events
from app.client import Client
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.types import ModelInfo
from tests.app.evaluation.application import Unconstrained
from tests.app.server.stations import ANY_EVIDENCE
from tests.faults.metered import MODEL, metered
from tests.fuzz.application import TEXTS
from tests.fuzz.event_reference import events_in
from tests.generation.fakes import EOS, LetterTokenizer, ScriptedRunner
from tests.server import ADMIN_KEY

ODD = (
    "Forty\u2028ships\u2029came\x85in\x0b\x0c\x1c\r\nwith\rsalt 🙂👩‍👩‍👧\ufeff."
    "\n\ndata: x\n\nevent: done\n: note\n\n[DONE] é\u0301"
)
BODY: dict[str, Any] = {"question": "How many ships?", "max_output_tokens": len(ODD) + 1}


@pytest.fixture
def client(tmp_path) -> Iterator[TestClient]:
    engine = LocalEngine(
        ScriptedRunner(ODD),
        LetterTokenizer(),
        EngineConfig(model=MODEL),
        info=ModelInfo(model=MODEL, revision="0", context_window=8192, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    with metered(tmp_path / "data", engine=engine, limits=ANY_EVIDENCE) as state:
        with TestClient(create_app(lambda: nullcontext(state), version="0"), headers=headers) as client:
            for name, text in TEXTS.items():
                client.post("/v1/documents", json={"text": text, "filename": name, "wait": 30}).raise_for_status()
            yield client


def test_an_answer_of_odd_characters_is_streamed_as_it_is(client):
    whole = client.post("/v1/ask", json=BODY).json()["answer"]
    assert {"\u2028", "\x85", "🙂", "\ufeff"} <= set(whole)

    stream = client.post("/v1/ask", json={**BODY, "stream": True}).content
    events = [(name, json.loads(data)) for name, data in events_in(stream)]
    ours = [*answer_events(Client(client), {**BODY, "stream": True})]

    for read in (events, ours):
        assert "".join(data["text"] for name, data in read if name == "delta") == whole
        assert [name for name, _ in read][-1] == "done"


def test_a_chat_completion_of_odd_characters_is_streamed_as_it_is(client):
    body: dict[str, Any] = {"model": "footnote", "messages": [{"role": "user", "content": BODY["question"]}]}
    body["max_tokens"] = BODY["max_output_tokens"]
    whole = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    assert {"\u2028", "\x85", "🙂", "\ufeff"} <= set(whole)

    *events, last = events_in(client.post("/v1/chat/completions", json={**body, "stream": True}).content)

    assert last == ("message", "[DONE]")
    choices = [choice for _, data in events for choice in json.loads(data)["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == whole


def test_a_response_of_odd_characters_is_streamed_as_it_is(client):
    body = {"model": "footnote", "input": BODY["question"], "max_output_tokens": BODY["max_output_tokens"]}
    whole = client.post("/v1/responses", json=body).json()["output"][0]["content"][0]["text"]
    assert {"\u2028", "\x85", "🙂", "\ufeff"} <= set(whole)

    events = events_in(client.post("/v1/responses", json={**body, "stream": True}).content)
    read = [(name, json.loads(data)) for name, data in events]

    assert "".join(data["delta"] for name, data in read if name == "response.output_text.delta") == whole
    assert read[-1][1]["response"]["output"][0]["content"][0]["text"] == whole
