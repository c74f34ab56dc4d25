"""Conversations over HTTP: follow-ups are understood, turns kept, histories on the bill, others' do not exist."""

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from app.api.schemas.conversations import MakingBody
from app.server.state import State
from app.types import Operation, Principal, Role, Turn, UsageStatus
from generation.types import FinishReason
from tests.app.api.bills import PROMPT
from tests.app.api.conversing import ANSWER, FIRST, SECOND, STANDALONE, Served, TalkingEngine, serve

__all__ = ["serve"]


def test_a_follow_up_is_searched_for_as_it_is_understood_and_both_are_kept(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    first, second = served.ask(FIRST, conversation), served.ask(SECOND, conversation)

    assert served.search.questions == [FIRST, STANDALONE]
    assert (first["standalone_question"], second["standalone_question"]) == (None, STANDALONE)
    assert first["conversation_id"] == second["conversation_id"] == conversation
    turns = served.turns(conversation)
    assert [(turn["question"], turn["standalone_question"]) for turn in turns] == [(FIRST, None), (SECOND, STANDALONE)]
    for number, (turn, answer) in enumerate(zip(turns, (first, second), strict=True), start=1):
        assert (turn["ordinal"], turn["request_id"], turn["answer"]) == (number, answer["id"], answer["answer"])
        kept = [
            {name: one[name] for name in own} for one, own in zip(turn["citations"], answer["citations"], strict=True)
        ]
        assert kept == [{**own, "verified": False} for own in answer["citations"]] != []  # their documents are gone
        assert turn["answered"]


def test_a_follow_up_reads_the_documents_that_the_last_answer_cited(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    first, second = served.ask(FIRST, conversation), served.ask(SECOND, conversation)
    other = served.ask("What is the height of Mount Everest?", conversation)

    cited = {citation["chunk_id"] for citation in first["citations"]}
    assert len(cited) == 1 < len(first["sources"]["presented"])
    assert second["sources"]["presented"] == list(cited)
    assert other["sources"]["presented"] == first["sources"]["presented"]


def test_a_question_asked_standing_alone_is_neither_rewritten_nor_explained_and_is_kept(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    conversation = served.begin()
    served.ask(FIRST, conversation)
    alone = served.ask(SECOND, conversation, standalone=True)

    assert served.search.questions == [FIRST, SECOND]
    assert alone["standalone_question"] is None
    assert alone["usage"]["history_tokens"] == 0 if "history_tokens" in alone["usage"] else True
    assert len(alone["sources"]["presented"]) > 1, "the documents of the last answer are not preferred"
    assert [turn["question"] for turn in served.turns(conversation)] == [FIRST, SECOND]


def test_a_conversation_names_the_documents_it_cites_that_are_deleted(client, state) -> None:
    kept = client.post("/v1/documents", json={"text": "Ships were blue.", "filename": "kept.txt"}).json()["id"]
    principal = Principal(tenant_id="default", user_id="admin", key_id="k", role=Role.ADMIN)
    conversation = state.history.conversations.create(principal)
    cited = [{"document_id": one} for one in ("doc_gone", kept, "doc_gone", "doc_other")]
    turn = Turn(
        request_id="req_1",
        question="Q?",
        standalone=None,
        answer="A",
        answered=True,
        citations=tuple(cited),
        making=None,
    )
    assert state.history.conversations.append(conversation.id, turn)

    body = client.get(f"/v1/conversations/{conversation.id}").json()
    assert body["deleted_documents"] == ["doc_gone", "doc_other"]
    client.delete(f"/v1/documents/{kept}")
    body = client.get(f"/v1/conversations/{conversation.id}").json()
    assert body["deleted_documents"] == ["doc_gone", kept, "doc_other"]


def test_without_a_conversation_nothing_is_kept_and_nothing_rewritten(serve: Callable[..., Served]) -> None:
    served = serve()
    answer = served.ask(SECOND, None)

    assert (answer["conversation_id"], answer["standalone_question"]) == (None, None)
    assert served.search.questions == [SECOND]
    assert served.client.get("/v1/conversations").json()["data"] == []


def test_the_history_on_the_bill_is_the_last_whole_turns_that_fit(serve: Callable[..., Served]) -> None:
    served = serve(history_tokens=250)
    conversation = served.begin()
    questions = [f"Who painted ship number {number}?" for number in range(5)]
    answers = [served.ask(question, conversation) for question in questions]

    told = [len(question) + len(answer["answer"]) for question, answer in zip(questions, answers, strict=True)]
    for number, answer in enumerate(answers):
        history = answer["usage"]["components"]["history"]
        (row,) = [row for row in served.ledger.usage(answer["id"]) if row.operation is Operation.CHAT]
        expected = 0
        for cost in reversed(told[:number]):
            if expected + cost > 250:
                break
            expected += cost
        assert history == row.components.history == expected <= 250
        assert sum(answer["usage"]["components"][part] for part in PROMPT) == row.input_tokens
    assert answers[4]["usage"]["components"]["history"] == answers[3]["usage"]["components"]["history"] > 0


def test_a_refusal_is_kept_as_one(serve: Callable[..., Served]) -> None:
    served = serve(TalkingEngine(says="I don't know."))
    conversation = served.begin()
    served.ask(FIRST, conversation)

    assert [turn["answered"] for turn in served.turns(conversation)] == [False]


@pytest.mark.parametrize("reason", [FinishReason.ERROR, FinishReason.CANCELLED, FinishReason.DEADLINE])
def test_an_answer_that_did_not_end_is_not_kept(serve: Callable[..., Served], reason: FinishReason) -> None:
    served = serve(TalkingEngine(reason=reason))
    conversation = served.begin()
    served.client.post("/v1/ask", json={"question": FIRST, "conversation_id": conversation})

    assert len(served.engine.requests) == 1
    assert served.turns(conversation) == []


def test_a_dry_run_shows_the_history_and_keeps_nothing(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    served.ask(FIRST, conversation)
    dry = served.ask(SECOND, conversation, dry_run=True)

    assert dry["usage"]["components"]["history"] > 0
    assert dry["standalone_question"] == STANDALONE
    assert len(served.turns(conversation)) == 1


def test_a_stream_tells_what_was_understood_and_is_kept_too(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    whole = served.ask(FIRST, conversation)
    body = {"question": SECOND, "conversation_id": conversation, "stream": True}
    lines = served.client.post("/v1/ask", json=body).text.splitlines()
    deltas = [line for event, line in pairwise(lines) if event == "event: delta"]
    told = "".join(json.loads(line.removeprefix("data: "))["text"] for line in deltas)
    done = json.loads(lines[len(lines) - 1 - lines[::-1].index("event: done") + 1].removeprefix("data: "))

    assert (done["standalone_question"], done["conversation_id"]) == (STANDALONE, conversation)
    assert told.startswith(ANSWER)
    assert [turn["answer"] for turn in served.turns(conversation)] == [whole["answer"], told]


@pytest.mark.parametrize("says", [ANSWER, "I don't know."])
def test_a_turn_tells_how_its_answer_was_made_as_the_answer_did(serve: Callable[..., Served], says: str) -> None:
    served = serve(TalkingEngine(says=says))
    conversation = served.begin()
    answer = served.ask(FIRST, conversation)

    (turn,) = served.turns(conversation)
    assert answer["usage"]["total_tokens"] > 0
    assert turn["making"] == {name: answer[name] for name in MakingBody.model_fields}


def test_a_turn_of_before_that_was_kept_tells_nothing_of_it(serve: Callable[..., Served], state: State) -> None:
    served = serve()
    conversation = served.begin()
    old = Turn(request_id="req_old", question=FIRST, standalone=None, answer="Blue.", answered=True, citations=())
    state.history.conversations.append(conversation, old)

    assert [turn["making"] for turn in served.turns(conversation)] == [None]


def test_the_messages_of_a_chat_explain_its_last_question(serve: Callable[..., Served]) -> None:
    served = serve()
    messages = [
        {"role": "user", "content": FIRST},
        {"role": "assistant", "content": "Blue [1]."},
        {"role": "user", "content": SECOND},
    ]
    body = {"model": "footnote", "messages": messages}
    assert served.client.post("/v1/chat/completions", json=body).status_code == 200

    assert served.search.questions == [STANDALONE]


MODELS_WORDS = "How large were the blue ships of the Northern Line?"


def test_by_setting_the_model_rewrites_and_its_call_is_on_the_bill(serve: Callable[..., Served]) -> None:
    served = serve(TalkingEngine(rewrites=f"{MODELS_WORDS}\n"), model=True)
    conversation = served.begin()
    first, second = served.ask(FIRST, conversation), served.ask(SECOND, conversation)

    assert served.search.questions == [FIRST, MODELS_WORDS]
    assert second["standalone_question"] == MODELS_WORDS
    assert len(served.ledger.usage(first["id"])) == 2  # what the rules leave alone is not shown to the model
    rows = {row.operation: row for row in served.ledger.usage(second["id"])}
    row = rows[Operation.REWRITE]
    assert (row.event_id, row.status) == (f"{second['id']}:0", UsageStatus.COMPLETED)
    assert row.components.total == row.input_tokens
    assert row.components.question == len(SECOND)
    assert {"purpose": "rewrite", "tokens": row.input_tokens + row.output_tokens} in second["usage"]["auxiliary"]


@pytest.mark.parametrize(
    "rewrites",
    [
        "",
        "They were large.",
        "How large were they in Bergen?",
        "How large were they in 1905?",
        "How large were the ships " + "and " * 90 + "boats?",
    ],
    ids=["empty", "an answer", "an invented name", "an invented number", "too long"],
)
def test_a_rewriting_that_will_not_do_leaves_the_rules(serve: Callable[..., Served], rewrites: str) -> None:
    served = serve(TalkingEngine(rewrites=rewrites), model=True)
    conversation = served.begin()
    served.ask(FIRST, conversation)
    answer = served.ask(SECOND, conversation)

    assert answer["standalone_question"] == STANDALONE
    spent = [row for row in served.ledger.usage(answer["id"]) if row.operation is Operation.REWRITE]
    assert sum(row.input_tokens + row.output_tokens for row in spent) == sum(
        entry["tokens"] for entry in answer["usage"]["auxiliary"] if entry["purpose"] == "rewrite"
    )


def test_small_talk_in_a_conversation_is_not_shown_to_the_model(serve: Callable[..., Served]) -> None:
    engine = TalkingEngine()
    served = serve(engine, model=True)
    conversation = served.begin()
    served.ask(FIRST, conversation)
    calls = len(engine.requests)
    reply = served.ask("What can you do?", conversation)

    assert len(engine.requests) == calls
    assert (reply["usage"]["total_tokens"], reply["usage"]["auxiliary"]) == (0, [])
    assert [turn["question"] for turn in served.turns(conversation)] == [FIRST, "What can you do?"]
