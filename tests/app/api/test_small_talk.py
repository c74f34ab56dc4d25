"""Small talk over HTTP: it is replied to from the catalogue, without a search, a model or a bill."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.server.state import State
from app.types import Role
from tests.app.api.conversing import FIRST, SECOND, STANDALONE, Served, serve
from tests.app.api.credentials import key_of
from tests.app.db.samples import Library

__all__ = ["serve"]

LIST = "What documents do I have here?"


def test_a_reply_is_an_answer_that_costs_nothing(serve: Callable[..., Served], state: State) -> None:
    served = serve()
    Library(state.database, tenant_id="default").index("Blue ships.", filename="ships.txt")
    body = served.ask(LIST, None)

    assert body["answer"] == "There is 1 document here.\n\n- `ships.txt`"
    assert (body["answered"], body["reason"], body["finish_reason"]) == (True, None, "stop")
    assert body["citations"] == [] == body["uncited_spans"]
    assert body["abstention"]["stage"] is None
    assert (body["usage"]["total_tokens"], body["usage"]["auxiliary"]) == (0, [])
    assert served.ledger.usage(body["id"]) == ()
    assert served.search.questions == [] == served.engine.requests


@pytest.mark.parametrize("form", ["markdown", "text", "json"])
def test_streamed_and_whole_replies_are_equal(serve: Callable[..., Served], form: str) -> None:
    served = serve()
    whole = served.ask(LIST, None, format=form)
    text = served.client.post("/v1/ask", json={"question": LIST, "format": form, "stream": True}).text
    events = [block.split("\n") for block in text.strip().split("\n\n") if block.startswith("event:")]
    told = [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data, *_ in events]

    assert "".join(data["text"] for name, data in told if name == "delta") == whole["answer"]
    assert {data["part"] for name, data in told if name == "delta"} == {None}, "no model writes"
    kind = "json" if form == "json" else "reply"
    more: dict[str, object] = {"unsupported": []} if form == "json" else {}
    assert whole["parts"] == [{"kind": kind, "start": 0, "end": len(whole["answer"]), "citations": [], **more}]
    assert told[-1][1]["parts"] == whole["parts"]
    assert told[-1][0] == "done" and told[-1][1]["answered"]
    if form == "json":
        assert json.loads(whole["answer"])["sources"] == []


def test_chat_completions_reply_as_well(serve: Callable[..., Served]) -> None:
    served = serve()
    messages = [
        {"role": "user", "content": FIRST},
        {"role": "assistant", "content": "Blue [1]."},
        {"role": "user", "content": "Thanks!"},
    ]
    body: dict[str, Any] = {"model": "footnote", "messages": messages, "n": 2}
    completion = served.client.post("/v1/chat/completions", json=body).json()

    assert [choice["message"]["content"] for choice in completion["choices"]] == ["You are welcome."] * 2
    assert [choice["finish_reason"] for choice in completion["choices"]] == ["stop"] * 2
    assert completion["usage"]["total_tokens"] == 0
    assert served.search.questions == []


def test_responses_reply_without_a_file_search(serve: Callable[..., Served], state: State) -> None:
    served = serve()
    store = Library(state.database, tenant_id="default").collections.create("default", "ships").id
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    body: dict[str, Any] = {"model": "footnote", "input": "Thanks!", "tools": tools}
    response = served.client.post("/v1/responses", json=body).json()
    stream = served.client.post("/v1/responses", json={**body, "stream": True}).text
    names = [line.removeprefix("event: ") for line in stream.splitlines() if line.startswith("event: ")]

    assert [(item["type"], item["content"][0]["text"]) for item in response["output"]] == [
        ("message", "You are welcome.")
    ]
    assert response["usage"]["total_tokens"] == 0
    assert served.search.questions == []
    assert not [name for name in names if "file_search" in name]
    assert names[-1] == "response.completed"


def test_a_key_is_told_only_of_the_collections_that_it_may_read(serve: Callable[..., Served], state: State) -> None:
    served = serve()
    library = Library(state.database, tenant_id="default")
    other = library.collections.create("default", "others").id
    library.index("secret", filename="secret.txt")
    library.index("open", filename="open.txt", collection_id=other)
    headers = key_of(state, Role.READER, collections=(other,))
    answer = served.client.post("/v1/ask", json={"question": LIST}, headers=headers).json()

    assert answer["answer"] == "There is 1 document here.\n\n- `open.txt`"


def test_it_is_kept_in_its_conversation_and_explains_no_later_question(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    served.ask(FIRST, conversation)
    thanks = served.ask("Thanks!", conversation)
    last = served.ask(SECOND, conversation)

    assert thanks["standalone_question"] is None
    assert [turn["answer"] for turn in served.turns(conversation)][1] == "You are welcome."
    assert served.search.questions == [FIRST, STANDALONE]
    assert last["standalone_question"] == STANDALONE


def test_the_conversation_of_another_does_not_exist_for_small_talk_either(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    conversation = served.begin()
    body = {"question": "hello", "conversation_id": conversation}

    assert served.client.post("/v1/ask", json=body, headers=key_of(state, Role.READER)).status_code == 404
    assert served.turns(conversation) == []


def test_a_dry_run_replies_nothing(serve: Callable[..., Served]) -> None:
    served = serve()
    body = served.ask("hello", None, dry_run=True)

    assert (body["answered"], body["reason"], body["answer"]) == (False, "dry_run", "")
    assert served.search.questions == []
