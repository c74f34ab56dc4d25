"""Citations of every kind of answer are counted once, without delaying the answer."""

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol, cast

import pytest
from structlog.testing import capture_logs

from app.answering.answers.answer import Answer, TextDelta
from app.answering.closing import CitationRecord
from app.answering.conversations.conversations import Conversations
from app.answering.question import Question
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.answer_citations import AnswerCitationRepository, AnswerOutcome
from app.errors import StoreUnavailable
from app.server.state import State
from app.types import Principal, Role
from generation.ports import Engine
from generation.types import FinishReason
from retrieval.search import Search
from retrieval.types import Scope
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import client_of
from tests.app.api.conversing import TalkingEngine
from tests.app.api.credentials import key_of
from tests.app.api.openai.test_response_format import FixedSearch
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.retrieval.fakes import HashingEmbedder, ranked

PASSAGES = ("Two ships passed the light house in March.", "Nine whales were seen there in the spring of 1905.")
SAYS = "Two ships passed the light house in March [1]. Nine whales were seen in 1905 [2]. Two ships passed [1]."
QUESTION = "How many ships passed the light house in March?"
ASK = {"question": QUESTION}
CHAT = {"model": "footnote", "messages": [{"role": "user", "content": QUESTION}]}


class Serve(Protocol):
    def __call__(
        self, *, engine: TalkingEngine | None = None, record: CitationRecord | None = None, quotes: bool = False
    ) -> "Served": ...


class Served:
    """An application over a scripted engine that keeps conversations and what answers cite."""

    def __init__(self, state: State, *, engine: TalkingEngine, record: CitationRecord, quotes: bool) -> None:
        tokenizer, embedder = CharacterTokenizer(), HashingEmbedder(max_tokens=64)
        self.answerer = make_answerer(
            finder=Finder(
                search=cast(Search, FixedSearch(tuple(ranked(*PASSAGES)))), vectors=QuestionVectors(embedder)
            ),
            engine=cast(Engine, engine),
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=state.usage.ledger,
            limits=ANY_EVIDENCE,
            passage_reader=PassageReader(embedder=embedder) if quotes else None,
            quotes=QuotesAs.ONLY if quotes else QuotesAs.NOTHING,
            conversations=Conversations(state.history.conversations, count_tokens=tokenizer.count, history_tokens=500),
            citations=record,
        )
        models = replace(stations(state, cast(Engine, engine), tokenizer=tokenizer), answerer=self.answerer)
        self.client = client_of(state_with(state, models=models))

    def post(self, path: str, body: Mapping[str, object], **headers: str) -> str:
        response = self.client.post(path, json=body, headers=headers)
        assert response.status_code == 200, response.text
        return response.text

    def counts(self, **headers: str) -> dict[str, tuple[int, int]]:
        """(answers, citations) by document, as the report has them."""
        page = self.client.get("/v1/admin/usage/documents", params={"start_time": 0}, headers=headers)
        data: list[dict[str, Any]] = page.json()["data"]
        return {one["document_id"]: (one["num_cited"], one["num_citations"]) for one in data}


@pytest.fixture
def serve(state: State) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(
            *, engine: TalkingEngine | None = None, record: CitationRecord | None = None, quotes: bool = False
        ) -> Served:
            served = Served(
                state,
                engine=engine or TalkingEngine(says=SAYS),
                record=record or AnswerCitationRepository(state.database, clock=state.usage.ledger.seconds),
                quotes=quotes,
            )
            stack.enter_context(served.client)
            return served

        yield start


class Unwritable:
    """Implements `CitationRecord`: takes nothing."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def record(
        self, request_id: str, *, tenant_id: str, citations: Mapping[str, int], outcome: AnswerOutcome | None = None
    ) -> None:
        raise self._error

    def newer_versions(self, versions: Mapping[str, int], *, tenant_id: str) -> Mapping[str, int]:
        raise StoreUnavailable


class Swapped(AnswerCitationRepository):
    """As if the first document got its seventh version while the answer was written."""

    def newer_versions(self, versions: Mapping[str, int], *, tenant_id: str) -> Mapping[str, int]:
        return {"doc_1": 7} if "doc_1" in versions else {}


class Slow:
    """Implements `CitationRecord`: keeps nothing before it is let."""

    def __init__(self) -> None:
        self.begun, self.open, self.kept = threading.Event(), threading.Event(), threading.Event()

    def record(
        self, request_id: str, *, tenant_id: str, citations: Mapping[str, int], outcome: AnswerOutcome | None = None
    ) -> None:
        self.begun.set()
        assert self.open.wait(20)
        self.kept.set()

    def newer_versions(self, versions: Mapping[str, int], *, tenant_id: str) -> Mapping[str, int]:
        return {}


WAYS: dict[str, tuple[str, Mapping[str, object]]] = {
    "ask": ("/v1/ask", ASK),
    "ask, streamed": ("/v1/ask", {**ASK, "stream": True}),
    "chat": ("/v1/chat/completions", CHAT),
    "chat, streamed": ("/v1/chat/completions", {**CHAT, "stream": True}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_ask_counts_what_the_answer_cites(serve: Serve, way: str) -> None:
    served = serve()

    served.post(*WAYS[way])
    assert served.counts() == {"doc_1": (1, 2), "doc_2": (1, 1)}
    served.post(*WAYS[way])

    assert served.counts() == {"doc_1": (2, 4), "doc_2": (2, 2)}


@pytest.mark.parametrize("way", WAYS)
def test_answers_that_are_quoted_count_too(serve: Serve, way: str) -> None:
    """Nothing is generated, so that no call has the document in its context."""
    served = serve(quotes=True)

    served.post(*WAYS[way])

    answers, citations = served.counts()["doc_1"]
    assert answers == 1
    assert citations >= 1


@pytest.mark.parametrize("stream", [False, True])
def test_answers_in_a_conversation_count_once(serve: Serve, stream: bool) -> None:
    served = serve()
    conversation = served.client.post("/v1/conversations", json={}).json()["id"]

    served.post("/v1/ask", {**ASK, "conversation_id": conversation, "stream": stream})

    assert served.counts() == {"doc_1": (1, 2), "doc_2": (1, 1)}
    (turn,) = served.client.get(f"/v1/conversations/{conversation}").json()["data"]
    assert [citation["document_id"] for citation in turn["citations"]] == ["doc_1", "doc_2", "doc_1"]


def test_the_same_request_sent_again_counts_once(serve: Serve) -> None:
    served = serve()
    key = {"Idempotency-Key": "once"}

    assert served.post("/v1/ask", ASK, **key) == served.post("/v1/ask", ASK, **key)

    assert served.counts() == {"doc_1": (1, 2), "doc_2": (1, 1)}


@pytest.mark.parametrize(
    "body",
    [
        {**ASK, "dry_run": True},
        {**ASK, "format": "json"},  # the model's text as it is: it has no footnotes
    ],
    ids=["a dry run", "JSON"],
)
def test_what_has_no_footnotes_counts_nothing(serve: Serve, body: dict[str, object]) -> None:
    served = serve(engine=TalkingEngine(says='{"answer": "Two ships.", "sources": [1]}'))

    served.post("/v1/ask", body)

    assert not any(any(counts) for counts in served.counts().values())


@pytest.mark.parametrize("reason", [FinishReason.ERROR, FinishReason.CANCELLED, FinishReason.DEADLINE])
def test_an_answer_that_did_not_end_counts_nothing(serve: Serve, reason: FinishReason) -> None:
    served = serve(engine=TalkingEngine(says=SAYS, reason=reason))

    served.client.post("/v1/ask", json={**ASK, "stream": True})

    assert served.counts() == {"doc_1": (0, 0), "doc_2": (0, 0)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [StoreUnavailable(), RuntimeError("a bug")], ids=["no database", "a bug"])
def test_what_cannot_be_written_down_is_logged_and_the_answer_whole(serve: Serve, way: str, error: Exception) -> None:
    """The order of keys is fixed, and what is of the request alone is cut out: the rest must be equal."""
    served, broken = serve(), serve(record=Unwritable(error))
    wanted = said(served.post(*WAYS[way]))

    with capture_logs() as logs:
        answer = said(broken.post(*WAYS[way]))

    assert answer == wanted
    (line,) = [line for line in logs if line["event"] == "citations.unwritten"]
    assert (line["log_level"], line["error"]) == ("warning", type(error).__name__)
    assert line["request_id"].startswith("req_")


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_says_that_a_document_was_replaced_while_it_was_written(serve: Serve, state: State, way: str) -> None:
    replaced = serve(record=Swapped(state.database)).post(*WAYS[way])

    pieces = replaced.replace('": ', '":').split('"file_id"' if "chat" in way else '"answer_start"')[1:]
    told = {
        ('"document_id":"doc_1"' in piece, '"current_version":7' in piece, '"version":1' in piece) for piece in pieces
    }
    assert told == {(True, True, True), (False, False, True)}
    assert "current_version" not in serve().post(*WAYS[way])


def said(answer: str) -> tuple[int, ...]:
    """How often an answer has its text and its citations, and how it ends."""
    words = ("Two ships", "cited_text", '"finish_reason"', "error", "[DONE]", "event: done")
    return tuple(answer.count(word) for word in words)


def question(request_id: str) -> Question:
    principal = Principal("default", "u", "k", Role.ADMIN)
    return Question(
        request_id=request_id, endpoint="ask", principal=principal, text=QUESTION, scope=Scope(tenant_id="default")
    )


@pytest.mark.parametrize("quotes", [False, True], ids=["generated", "quoted"])
def test_no_word_of_an_answer_waits_for_its_citations_and_its_end_only_a_while(serve: Serve, quotes: bool) -> None:
    slow = Slow()
    answerer = serve(record=slow, quotes=quotes).answerer

    async def read() -> Answer:
        told, whole = "", None
        async for event in answerer.open(question("req_slow")).events():
            assert not slow.kept.is_set()
            told += event.text if isinstance(event, TextDelta) else ""
            whole = event if isinstance(event, Answer) else None
        slow.open.set()
        assert whole is not None
        assert whole.text == told
        return whole

    started = time.monotonic()
    answer = asyncio.run(read())

    assert answer.citations
    assert slow.kept.is_set(), "it goes on when nobody waits for it"
    assert time.monotonic() - started < 15


def test_a_reader_who_leaves_at_the_last_word_has_an_answer_that_counts(serve: Serve) -> None:
    """Its last word is a footnote that is put there when the model has ended."""
    served = serve(engine=TalkingEngine(says="Two ships passed the light house in March."))

    async def read(*, until: str) -> str:
        stream = served.answerer.open(question(f"req_{until}")).events()
        told = ""
        async for event in stream:
            assert not until or not isinstance(event, Answer)
            told += event.text if isinstance(event, TextDelta) else ""
            if until and told == until:
                await stream.aclose()
        return told

    whole = asyncio.run(read(until=""))
    assert whole.endswith("[1]")
    asyncio.run(read(until=whole))

    assert served.counts() == {"doc_1": (2, 2), "doc_2": (0, 0)}


def test_a_tenants_administrator_sees_no_other_tenants_citations(serve: Serve, state: State) -> None:
    served = serve()
    rival = key_of(state, Role.ADMIN, tenant="rival")

    served.post("/v1/ask", ASK)

    assert served.counts(**rival) == {}
