"""Conversations over HTTP: follow-ups are understood, turns kept, histories on the bill, others' do not exist."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.answering.answer import Answer, TextDelta
from app.answering.conversations import Conversations
from app.answering.finder import Finder
from app.answering.followup.model import Rewriter
from app.answering.question import Limits, Question
from app.api.application import create_app
from app.api.schemas.conversations import MakingBody
from app.db.conversations import ConversationRepository
from app.server.state import State
from app.types import Operation, Principal, Role, Turn, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine, Observer
from generation.types import FinishReason, GenerationRequest, ModelInfo
from retrieval.search import Search
from retrieval.types import Scope, SearchMode, SearchResult
from tests.app.answering.answerers import make_answerer
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.answering.test_summaries import HITS, FinishedStream
from tests.app.api.conftest import ADMIN_KEY
from tests.app.api.test_access_matrix import key_of
from tests.app.server.stations import state_with, stations
from tests.retrieval.fakes import HashingEmbedder

ANSWER = "Every ship of the northern line was painted blue."
FIRST = "What colour were the ships of the Northern Line?"
SECOND = "How large were they?"
STANDALONE = "How large were the ships of the Northern Line?"


class TalkingEngine(IdleEngine):
    """Implements `Engine`: says one thing to questions, another to rewritings."""

    def __init__(
        self, *, says: str = ANSWER, reason: FinishReason = FinishReason.STOP, rewrites: str = STANDALONE
    ) -> None:
        self.info = ModelInfo(model="scripted", revision="0", context_window=9000, device="cpu", dtype="float32")
        self.says, self.reason, self.rewrites = says, reason, rewrites
        self.requests: list[GenerationRequest] = []

    def submit(self, request: GenerationRequest, *, observer: Observer) -> FinishedStream:
        self.requests.append(request)
        if request.id.endswith(":0"):
            cut = len(self.rewrites) > request.sampling.max_tokens
            reason = FinishReason.LENGTH if cut else FinishReason.STOP
            return FinishedStream(request, self.rewrites[: request.sampling.max_tokens], reason, observer)
        return FinishedStream(request, self.says, self.reason, observer)


class RecordingSearch:
    """Finds the same hits whatever is asked, and remembers that."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def remembered(self, query: str, *, tenant_id: str) -> None:
        """Nothing is."""

    def search(self, question: str, *, scope: Scope, top_k: int, mode: SearchMode) -> SearchResult:
        self.questions.append(question)
        return SearchResult(tuple(HITS), embedding_tokens=3)


class Served:
    """An application over a scripted engine."""

    def __init__(
        self,
        state: State,
        engine: TalkingEngine,
        *,
        history_tokens: int,
        model: bool,
        repository: ConversationRepository | None = None,
    ) -> None:
        tokenizer, ledger = CharacterTokenizer(), Ledger(state.database, boot_id="boot")
        self.engine, self.search, self.ledger, self.state = engine, RecordingSearch(), ledger, state
        rewriter = Rewriter(engine=cast(Engine, engine), tokenizer=tokenizer, tokenizer_revision="0", ledger=ledger)
        self.answerer = make_answerer(
            finder=Finder(search=cast(Search, self.search), embedder=HashingEmbedder(max_tokens=64), ledger=ledger),
            engine=cast(Engine, engine),
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=ledger,
            limits=Limits(max_context_tokens=900, max_output_tokens=200, min_evidence=-1.0, max_waiting=4),
            conversations=Conversations(
                repository or state.history.conversations, count_tokens=tokenizer.count, history_tokens=history_tokens
            ),
            rewriter=rewriter if model else None,
        )
        models = replace(stations(state, cast(Engine, engine), tokenizer=tokenizer), answerer=self.answerer)
        app = create_app(lambda: nullcontext(state_with(state, models=models)), version=state.serving.version)
        self.client = TestClient(app, headers={"Authorization": f"Bearer {ADMIN_KEY}"})

    def begin(self, **body: object) -> str:
        response = self.client.post("/v1/conversations", json=body)
        assert response.status_code == 201
        return str(response.json()["id"])

    def ask(self, question: str, conversation_id: str | None, **fields: object) -> dict[str, Any]:
        body = {"question": question, "conversation_id": conversation_id, **fields}
        response = self.client.post("/v1/ask", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def turns(self, conversation_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get(f"/v1/conversations/{conversation_id}").json()["data"]
        return found


@pytest.fixture
def serve(state: State) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:

        def start(
            engine: TalkingEngine | None = None,
            *,
            history_tokens: int = 500,
            model: bool = False,
            repository: ConversationRepository | None = None,
        ) -> Served:
            served = Served(
                state,
                engine or TalkingEngine(),
                history_tokens=history_tokens,
                model=model,
                repository=repository,
            )
            stack.enter_context(served.client)
            return served

        yield start


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
        assert turn["citations"] == answer["citations"] != []
        assert turn["answered"]


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
        assert sum(answer["usage"]["components"].values()) == row.input_tokens
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
    done = json.loads(lines[len(lines) - 1 - lines[::-1].index("event: done") + 1].removeprefix("data: "))

    assert (done["standalone_question"], done["conversation_id"]) == (STANDALONE, conversation)
    assert [turn["answer"] for turn in served.turns(conversation)] == [whole["answer"]] * 2


def question_in(conversation: str) -> Question:
    return Question(
        request_id="req_left",
        endpoint="ask",
        principal=Principal("default", "u", "k", Role.ADMIN),
        text=FIRST,
        scope=Scope(tenant_id="default"),
        conversation_id=conversation,
    )


class GatedRepository(ConversationRepository):
    """Holds what is to be stored until it is let in."""

    def __init__(self, state: State) -> None:
        super().__init__(state.database)
        self.reached, self.open, self.stored = threading.Event(), threading.Event(), threading.Event()

    def append(self, conversation_id: str, turn: Turn) -> bool:
        self.reached.set()
        assert self.open.wait(10)
        done = super().append(conversation_id, turn)
        self.stored.set()
        return done


def test_a_reader_who_leaves_while_the_turn_is_stored_changes_nothing(
    serve: Callable[..., Served], state: State
) -> None:
    gated = GatedRepository(state)
    served = serve(repository=gated)
    conversation = served.begin()

    async def read() -> None:
        answerer = served.answerer
        prepared = await asyncio.to_thread(answerer.prepare, question_in(conversation))
        reader = asyncio.create_task(answerer.answer(prepared))
        assert await asyncio.to_thread(gated.reached.wait, 10)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        gated.open.set()
        assert await asyncio.to_thread(gated.stored.wait, 10)

    asyncio.run(read())
    assert [turn["request_id"] for turn in served.turns(conversation)] == ["req_left"]


def test_a_reader_who_leaves_at_the_last_word_changes_nothing(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    whole = served.ask(FIRST, None)["answer"]
    question = question_in(conversation)

    async def read() -> bool:
        stream = served.answerer.stream(await asyncio.to_thread(served.answerer.prepare, question))
        said = ""
        async for event in stream:
            assert not isinstance(event, Answer)
            said += event.text if isinstance(event, TextDelta) else ""
            if said == whole:
                await stream.aclose()
                return True
        return False

    assert asyncio.run(read())
    assert [turn["answer"] for turn in served.turns(conversation)] == [whole]


def test_nothing_is_generated_for_a_reader_who_left_during_the_search(serve: Callable[..., Served]) -> None:
    served = serve()
    question = question_in(served.begin())
    served.answerer.running.abandon(question)

    served.answerer.running.release(served.answerer.prepare(question))
    assert (len(served.search.questions), served.engine.requests) == (1, [])
    served.answerer.running.release(served.answerer.prepare(replace(question, request_id="req_stays")))
    assert [request.id for request in served.engine.requests] == ["req_stays"], "others are answered"


def test_questions_asked_together_are_all_kept(serve: Callable[..., Served]) -> None:
    served = serve()
    conversation = served.begin()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: served.ask(f"{FIRST} {number}", conversation), range(8)))

    turns = served.turns(conversation)
    assert [turn["ordinal"] for turn in turns] == list(range(1, 9))
    assert {turn["request_id"] for turn in turns} == {answer["id"] for answer in answers}


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_that_is_not_there_is_404_before_anything_is_spent(
    serve: Callable[..., Served], stream: bool
) -> None:
    served = serve()
    body = {"question": FIRST, "conversation_id": "conv_nowhere", "stream": stream}
    response = served.client.post("/v1/ask", json=body)

    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert (served.engine.requests, served.search.questions) == ([], [])


def test_others_conversations_do_not_exist_and_an_administrator_sees_the_tenants(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    ann, ben = key_of(state, Role.READER), key_of(state, Role.MEMBER)
    rival = key_of(state, Role.ADMIN, tenant="rival")
    made = served.client.post("/v1/conversations", headers=ann).json()["id"]
    for headers in (ben, rival):
        assert served.client.get(f"/v1/conversations/{made}", headers=headers).status_code == 404
        assert served.client.delete(f"/v1/conversations/{made}", headers=headers).status_code == 404
        body = {"question": FIRST, "conversation_id": made}
        assert served.client.post("/v1/ask", json=body, headers=headers).status_code == 404
        assert served.client.get("/v1/conversations", headers=headers).json()["data"] == []

    assert served.client.get(f"/v1/conversations/{made}").status_code == 200
    assert [one["id"] for one in served.client.get("/v1/conversations").json()["data"]] == [made]
    assert served.client.delete(f"/v1/conversations/{made}", headers=ann).json() == {"id": made, "deleted": True}
    assert served.client.get(f"/v1/conversations/{made}", headers=ann).status_code == 404


def test_a_shared_conversation_is_read_as_its_owner_reads_it_and_not_gone_on_with(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    ann, ben = key_of(state, Role.READER), key_of(state, Role.MEMBER)
    made = served.client.post("/v1/conversations", headers=ann).json()["id"]
    path = f"/v1/conversations/{made}"
    served.client.post("/v1/ask", json={"question": FIRST, "conversation_id": made}, headers=ann)
    changed = served.client.patch(path, json={"shared": True, "title": "Ships"}, headers=ann).json()
    own = served.client.get(path, headers=ann).json()

    assert (changed["shared"], changed["title"]) == (True, "Ships")
    assert served.client.get(path, headers=ben).json() == own
    assert own["data"][0]["citations"]
    for method, body in (("PATCH", {"shared": False}), ("DELETE", None)):
        assert served.client.request(method, path, json=body, headers=ben).status_code == 403
    spent = len(served.engine.requests)
    follow_up = {"question": SECOND, "conversation_id": made}
    assert served.client.post("/v1/ask", json=follow_up, headers=ben).status_code == 403
    assert len(served.engine.requests) == spent
    for stranger in (key_of(state, Role.READER, collections=("col_1",)), key_of(state, Role.ADMIN, tenant="rival")):
        assert served.client.get(path, headers=stranger).status_code == 404
        assert served.client.patch(path, json={}, headers=stranger).status_code == 404

    served.client.patch(path, json={"shared": False}, headers=ann)
    assert served.client.get(path, headers=ben).status_code == 404


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


def test_what_a_key_finds_stays_out_of_a_conversation_of_a_key_that_may_not_see_it(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    limited = key_of(state, Role.READER, collections=("col_1",))
    theirs = served.client.post("/v1/conversations", headers=limited).json()["id"]
    open_one = served.client.post("/v1/conversations", headers=key_of(state, Role.READER)).json()["id"]

    response = served.client.post("/v1/ask", json={"question": FIRST, "conversation_id": theirs})
    assert response.status_code == 409
    assert served.client.get(f"/v1/conversations/{open_one}", headers=limited).status_code == 404
    assert [one["id"] for one in served.client.get("/v1/conversations", headers=limited).json()["data"]] == [theirs]


def test_pages_of_the_list_follow_each_other(serve: Callable[..., Served]) -> None:
    served = serve()
    made = [served.begin(title=f"T{number}", metadata={"n": number}) for number in range(3)]
    first = served.client.get("/v1/conversations", params={"limit": 2}).json()
    rest = served.client.get("/v1/conversations", params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [one["id"] for one in first["data"] + rest["data"]] == made[::-1]
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)
    assert rest["data"][0]["metadata"] == {"n": 0}


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
