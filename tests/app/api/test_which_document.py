"""POST /v1/ask about "this document" where several are in scope: the reply asks which, and no model is called."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from app.answering.languages.table import languages
from app.answering.understanding.catalogue_replies import NAMED
from app.answering.understanding.documents.meant import KNOWN
from app.server.state import State
from generation.ports import Engine
from tests.app.answering.retrieving.outlined import index
from tests.app.answering.retrieving.test_overviews import MEMO, PLAN, THIS
from tests.app.api.conversing import TalkingEngine
from tests.app.api.test_overviews import SHOWN, Shelf

WHICH = "Which document do you mean?"
ASKED_BACK = f"{WHICH}\n\n- `memo.txt`\n- `plan.pdf` (Strategic Plan 2022)"


@pytest.fixture
def shelf(state: State) -> Iterator[Shelf]:
    """A plan and a memo, on a server whose answers are quotes."""
    shelf = Shelf(state)
    index(shelf.library, "plan.pdf", *PLAN, title="Strategic Plan 2022")
    index(shelf.library, "memo.txt", *MEMO)
    with shelf.client:
        yield shelf


def cited(body: Any) -> set[str]:
    return {citation["filename"] for citation in body["citations"]}


@pytest.mark.parametrize("asked", [THIS, "Summarise this document.", "tl;dr", "What does the report cover?"])
def test_the_documents_are_listed_and_no_model_is_called(shelf: Shelf, asked: str) -> None:
    body = shelf.ask(asked)

    assert body["answer"] == ASKED_BACK
    assert (body["answered"], body["reason"], body["citations"]) == (True, None, [])
    assert body["parts"] == [{"kind": "clarify", "start": 0, "end": len(ASKED_BACK), "citations": []}]
    assert (body["usage"]["total_tokens"], body["usage"]["auxiliary"]) == (0, [])
    assert shelf.ledger.usage(body["id"]) == ()


def test_of_many_the_newest_are_listed(shelf: Shelf) -> None:
    for number in range(NAMED):
        index(shelf.library, f"{number}.txt", *MEMO, f"It is number {number}.")
    first, listed = shelf.ask()["answer"].split("\n\n")

    assert first == f"{WHICH} There are {NAMED + 2} documents here. The newest {NAMED} are:"
    assert listed.splitlines() == [f"- `{number}.txt`" for number in reversed(range(NAMED))]


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ("Worum geht es in diesem Dokument?", "de"),
        ("De quoi parle ce document ?", "fr"),
        ("¿De qué trata este documento?", "es"),
    ],
)
def test_it_is_asked_in_the_language_of_the_question(shelf: Shelf, asked: str, language: str) -> None:
    replies = languages()[language].replies

    assert replies is not None
    assert shelf.ask(asked)["answer"].startswith(replies.which_document)


def test_one_document_in_scope_is_the_one(shelf: Shelf) -> None:
    plan = next(one["id"] for one in shelf.client.get("/v1/documents").json()["data"] if one["filename"] == "plan.pdf")

    assert shelf.ask(document_ids=[plan])["answer"] == SHOWN


def test_a_document_that_is_named_is_the_one(shelf: Shelf) -> None:
    body = shelf.ask("What is the memo about?")

    assert (body["answers"], cited(body)) == (KNOWN, {"memo.txt"})


def test_of_several_with_the_same_name_only_these_are_listed(shelf: Shelf) -> None:
    index(shelf.library, "memo-of-may.txt", *MEMO, "It is of May.")

    assert shelf.ask("Summarise the memo")["answer"] == f"{WHICH}\n\n- `memo-of-may.txt`\n- `memo.txt`"


def test_a_name_is_found_whatever_marks_it_has(shelf: Shelf) -> None:
    index(shelf.library, "apple_10q.pdf", *MEMO, "It is of Apple.")
    alone = shelf.ask("Summarise the 10-Q")
    index(shelf.library, "Nvidia 10-Q.pdf", *MEMO, "It is of Nvidia.")

    assert (alone["answers"], cited(alone)) == (KNOWN, {"apple_10q.pdf"})
    assert shelf.ask("Summarise the 10-Q")["answer"] == f"{WHICH}\n\n- `Nvidia 10-Q.pdf`\n- `apple_10q.pdf`"
    assert cited(shelf.ask("What is Apple's 10_Q about?")) == {"apple_10q.pdf"}


def test_copies_that_nobody_can_tell_apart_are_not_asked_about(shelf: Shelf) -> None:
    index(shelf.library, "memo.txt", *MEMO, "It was sent again.")

    assert cited(shelf.ask("Summarise the memo")) == {"memo.txt"}


def test_the_reply_names_the_document(shelf: Shelf) -> None:
    conversation = shelf.client.post("/v1/conversations", json={}).json()["id"]
    asked_back = shelf.ask(conversation_id=conversation)
    body = shelf.ask("the strategic plan", conversation_id=conversation)
    again = shelf.ask(THIS, conversation_id=conversation)

    assert asked_back["answer"] == ASKED_BACK
    assert body["answer"] == SHOWN
    assert cited(again) == {"plan.pdf"}


@pytest.mark.parametrize(
    "form",
    [
        "text",
        "json",
    ],
)
def test_the_reply_names_the_document_in_other_forms_too(shelf: Shelf, form: str) -> None:
    conversation = shelf.client.post("/v1/conversations", json={}).json()["id"]
    shelf.ask(conversation_id=conversation, format=form)

    assert cited(shelf.ask("the strategic plan", conversation_id=conversation, format=form)) == {"plan.pdf"}


def test_a_reply_that_names_none_is_a_question_like_any_other(shelf: Shelf) -> None:
    conversation = shelf.client.post("/v1/conversations", json={}).json()["id"]
    shelf.ask(conversation_id=conversation)
    body = shelf.ask("the plan of the harbour", conversation_id=conversation)

    assert (body["answered"], body["reason"]) == (False, "no_evidence")


def test_without_a_question_back_a_name_alone_is_searched_for(shelf: Shelf) -> None:
    assert shelf.ask("the strategic plan")["reason"] == "no_evidence"


def test_it_is_streamed_and_in_json_too(shelf: Shelf) -> None:
    text = shelf.client.post("/v1/ask", json={"question": THIS, "stream": True}).text
    blocks = [block.split("\n") for block in text.strip().split("\n\n") if block.startswith("event: delta")]

    assert "".join(json.loads(data.removeprefix("data: "))["text"] for _, data, *_ in blocks) == ASKED_BACK
    assert json.loads(shelf.ask(format="json")["answer"]) == {"answer": ASKED_BACK.replace("`", ""), "sources": []}


def test_a_language_model_is_not_called_either(state: State) -> None:
    engine = TalkingEngine(says="It is about everything.")
    shelf = Shelf(state, cast(Engine, engine))
    index(shelf.library, "plan.pdf", *PLAN, title="Strategic Plan 2022")
    index(shelf.library, "memo.txt", *MEMO)
    with shelf.client:
        body = shelf.ask()
        schema = {"type": "object"}
        filled = shelf.client.post("/v1/ask", json={"question": THIS, "format": "json", "json_schema": schema})

    assert body["answer"] == ASKED_BACK
    assert WHICH not in filled.text, "the reply would not satisfy the schema"


def chat(shelf: Shelf, *messages: str) -> str:
    said = [{"role": "user" if at % 2 == 0 else "assistant", "content": text} for at, text in enumerate(messages)]
    response = shelf.client.post("/v1/chat/completions", json={"model": "footnote", "messages": said})
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def test_chat_completions_ask_back_too_but_not_behind_turns_that_may_tell(shelf: Shelf) -> None:
    assert chat(shelf, THIS) == ASKED_BACK
    assert chat(shelf, THIS, ASKED_BACK, "memo.txt").startswith(f"> {MEMO[1]}")
    assert WHICH not in chat(shelf, "How much water was delivered?", "Twenty thousand bottles.", "Summarise it.")
