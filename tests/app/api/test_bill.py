"""One bill for every answer: its total is the sum of all its model calls, which are the ledger's rows."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.answering.answers.answer import Answer
from app.answering.conversations.conversations import Conversations
from app.answering.generating.summaries import Summariser
from app.answering.metering.call_kinds import CallNumber
from app.answering.question import Question
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.documents.meant import DocumentsMeant
from app.answering.understanding.followup.model import Rewriter
from app.answering.verification.metered_models import Verification
from app.api.schemas.token_usage import UsageBody
from app.db.catalogue import CatalogueRepository
from app.models.extractive import NoEngine
from app.server.state import State
from app.types import Operation, Principal, Role
from generation.ports import Engine
from generation.types import FinishReason
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Hit, Scope, SearchMode
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.comparing_judge import ComparingJudge
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.bills import assert_adds_up
from tests.app.api.conftest import client_of
from tests.app.api.conversing import TalkingEngine
from tests.app.api.test_reader import OFF_TOPIC, QUESTION, hits
from tests.app.api.test_reranking import LongestFirst
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.retrieval.fakes import TopicEmbedder

FOLLOW_UP = "And how many of them left?"
GENERATED = "Forty ships came [2]. The harbour was quiet."


class VectorSearch:
    """Finds the same hits whatever is asked, and needs the question's vector as the search does."""

    def search(
        self, question: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        if mode is not SearchMode.LEXICAL:
            vector()
        return hits()


class Billed:
    """The application over a scripted engine, with every model that can be called for an answer."""

    def __init__(self, state: State, quotes: QuotesAs, *, reason: FinishReason = FinishReason.STOP) -> None:
        """`reason` ends what the engine generates."""
        self.embedder, tokenizer, self.ledger = TopicEmbedder("ship"), CharacterTokenizer(), state.usage.ledger
        talking = TalkingEngine(says=GENERATED, rewrites="How many ships left?", reason=reason)
        engine = talking if quotes is not QuotesAs.ONLY else NoEngine(revision="1", context_window=9000)
        self.reader = PointingReader("forty ships", asked="ships")
        catalogue = CatalogueRepository(state.database)
        self.answerer = make_answerer(
            finder=Finder(
                search=cast(Search, VectorSearch()), vectors=QuestionVectors(self.embedder), reranker=LongestFirst()
            ),
            engine=cast(Engine, engine),
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=self.ledger,
            limits=replace(ANY_EVIDENCE, max_context_tokens=400),
            passage_reader=PassageReader(
                embedder=self.embedder,
                reader=self.reader,
                judge=ComparingJudge("forty ships"),
            ),
            quotes=quotes,
            quote_unverified=True,
            summariser=Summariser(engine=cast(Engine, engine), tokenizer=tokenizer)
            if quotes is not QuotesAs.ONLY
            else None,
            rewriter=Rewriter(tokenizer=tokenizer) if quotes is not QuotesAs.ONLY else None,
            verification=Verification(embedder=self.embedder),
            conversations=Conversations(state.history.conversations, count_tokens=tokenizer.count, history_tokens=500),
            replies=CatalogueReplies(catalogue, DocumentsMeant(catalogue)),
        )
        made = replace(stations(state, cast(Engine, engine), tokenizer=tokenizer), answerer=self.answerer)
        self.client = client_of(state_with(state, models=made))

    def post(self, path: str, body: dict[str, Any]) -> str:
        response = self.client.post(path, json=body)
        assert response.status_code == 200, response.text
        return response.text

    def usage(self, route: str, question: str, conversation: str | None, fields: dict[str, Any]) -> tuple[str, Any]:
        """The id of a question's request and the `usage` that the route gives."""
        if route == "chat":
            body = {"model": "footnote", "messages": [{"role": "user", "content": question}], "n": 2}
            answer = json.loads(self.post("/v1/chat/completions", body))
            return answer["id"], answer["usage"]
        body = {"question": question, "conversation_id": conversation, **fields}
        if route == "ask":
            answer = json.loads(self.post("/v1/ask", body))
            return answer["id"], answer["usage"]
        events = self.post("/v1/ask", {**body, "stream": True}).split("\n\n")
        told = [event.split("\n") for event in events if event.startswith("event: ")]
        data = {name.removeprefix("event: "): json.loads(said.removeprefix("data: ")) for name, said, *_ in told}
        return data["done"]["id"], data["usage"]


Serve = Callable[..., Billed]


@pytest.fixture
def serve(state: State) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(quotes: QuotesAs, **changes: Any) -> Billed:
            billed = Billed(state, quotes, **changes)
            stack.enter_context(billed.client)
            return billed

        yield start


@pytest.fixture
def every(serve: Serve) -> dict[QuotesAs, Billed]:
    """A service for each way in which quotes answer."""
    return {quotes: serve(quotes) for quotes in QuotesAs}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    question=st.sampled_from([QUESTION, OFF_TOPIC, "Hello!", FOLLOW_UP]),
    route=st.sampled_from(["ask", "stream", "chat"]),
    goes_on=st.booleans(),
    fields=st.fixed_dictionaries(
        {"dry_run": st.booleans()},
        optional={
            "abstention_threshold": st.sampled_from([1e-12, 0.5, 1.0]),
            "mode": st.sampled_from(["lexical", "dense"]),
            "format": st.sampled_from(["text", "json"]),
            "rerank": st.booleans(),
            "strict": st.just(value=True),
        },
    ),
    quotes=st.sampled_from(QuotesAs),
)
def test_every_answers_bill_adds_up_and_is_the_ledgers(
    every: dict[QuotesAs, Billed], question: str, route: str, *, goes_on: bool, fields: dict[str, Any], quotes: QuotesAs
) -> None:
    billed = every[quotes]
    conversation = None
    if goes_on:
        conversation = billed.client.post("/v1/conversations", json={}).json()["id"]
        billed.usage("ask", QUESTION, conversation, {})

    request_id, usage = billed.usage(route, question, conversation, fields)

    assert_adds_up(usage, billed.ledger.usage(request_id))


SEARCHED = {"embed_query", "rerank"}
CHOSEN = {*SEARCHED, "locate", "extract", "compare"}


@pytest.mark.parametrize(
    ("quotes", "question", "fields", "purposes"),
    [
        (QuotesAs.ONLY, QUESTION, {}, CHOSEN),
        (QuotesAs.FIRST, QUESTION, {}, CHOSEN),
        (QuotesAs.FIRST, QUESTION, {"abstention_threshold": 1e-12}, CHOSEN),
        (QuotesAs.ONLY, QUESTION, {"dry_run": True}, SEARCHED),
        (QuotesAs.NOTHING, QUESTION, {}, {*CHOSEN, "answer", "verify"}),
        (QuotesAs.NOTHING, QUESTION, {"dry_run": True}, {*CHOSEN, "answer (planned)"}),
        (QuotesAs.ONLY, OFF_TOPIC, {}, CHOSEN),
        (QuotesAs.ONLY, "Hello!", {}, set()),
    ],
    ids=["quoted", "quoted first", "unsure", "dry run", "generated", "planned", "refused", "small talk"],
)
def test_the_calls_are_those_of_the_path_to_the_answer(
    serve: Serve, quotes: QuotesAs, question: str, fields: dict[str, Any], purposes: set[str]
) -> None:
    billed = serve(quotes)
    request_id, usage = billed.usage("ask", question, None, fields)

    assert_adds_up(usage, billed.ledger.usage(request_id))
    called = {call["purpose"] + (" (planned)" if call["planned"] else "") for call in usage["calls"]}
    assert called == purposes
    assert (usage["total_tokens"] > 0) == bool(purposes)


def test_a_rewritten_follow_up_has_its_rewriting_on_the_bill(serve: Serve) -> None:
    billed = serve(QuotesAs.FIRST)
    conversation = billed.client.post("/v1/conversations", json={}).json()["id"]
    billed.usage("ask", QUESTION, conversation, {})

    request_id, usage = billed.usage("ask", "How many of them left?", conversation, {})

    assert_adds_up(usage, billed.ledger.usage(request_id))
    (rewriting,) = [call for call in usage["calls"] if call["purpose"] == "rewrite"]
    assert usage["components"]["rewriting"] == rewriting["prompt_tokens"] + rewriting["completion_tokens"]
    assert usage["completion_tokens"] == rewriting["completion_tokens"] > 0, "and nothing else was written"


def test_a_questions_embedding_is_billed_once(serve: Serve) -> None:
    billed = serve(QuotesAs.ONLY)

    request_id, usage = billed.usage("ask", QUESTION, None, {"rerank": False})
    _, again = billed.usage("ask", QUESTION, None, {"rerank": False})

    tokens = {call["purpose"]: call["prompt_tokens"] for call in usage["calls"]}
    assert tokens["embed_query"] == billed.embedder.count_query(QUESTION)
    embedded = [row.input_tokens for row in billed.ledger.usage(request_id) if row.operation is Operation.EMBED_QUERY]
    assert embedded == [tokens["embed_query"], tokens["extract"]]
    assert {call["purpose"]: call["prompt_tokens"] for call in again["calls"]} == {
        purpose: number for purpose, number in tokens.items() if purpose != "embed_query"
    }, "its vector is remembered, and choosing quotes reads the same without it"


def test_quotes_from_a_search_by_words_alone_have_a_row_for_the_questions_embedding(serve: Serve) -> None:
    billed = serve(QuotesAs.ONLY)

    request_id, usage = billed.usage("ask", QUESTION, None, {"mode": "lexical"})

    rows = {row.event_id.rpartition(":")[2]: row for row in billed.ledger.usage(request_id)}
    assert rows[str(int(CallNumber.EMBED_QUERY))].input_tokens == billed.embedder.count_query(QUESTION)
    assert_adds_up(usage, billed.ledger.usage(request_id))


@pytest.mark.parametrize("reason", [FinishReason.CANCELLED, FinishReason.LENGTH])
def test_a_generation_that_is_cut_off_is_on_the_bill(serve: Serve, reason: FinishReason) -> None:
    billed = serve(QuotesAs.NOTHING, reason=reason)

    request_id, usage = billed.usage("ask", QUESTION, None, {})

    assert_adds_up(usage, billed.ledger.usage(request_id))
    assert usage["components"]["context"] > 0


def test_an_answer_that_is_cancelled_while_passages_are_read_is_billed_for_what_was_read(
    serve: Serve,
) -> None:
    billed = serve(QuotesAs.ONLY)
    principal = Principal(tenant_id="default", user_id="", key_id="key_1", role=Role.ADMIN, collections=None)
    question = Question(
        request_id="req_left", endpoint="ask", principal=principal, text=QUESTION, scope=Scope("default")
    )
    meter = billed.answerer.meters.of(question)
    marked = billed.reader.mark

    def leave(*given: Any, **named: Any) -> Any:
        meter.close()
        return marked(*given, **named)

    billed.reader.mark = leave  # type: ignore[method-assign]

    async def ask() -> Answer:
        return await billed.answerer.open(question, meter=meter).whole()

    answer = asyncio.run(ask())

    assert answer.reason == "cancelled"
    usage = UsageBody.of(answer.usage).model_dump()
    assert_adds_up(usage, billed.ledger.usage("req_left"))
    assert {call["purpose"] for call in usage["calls"]} >= {"embed_query", "rerank"}
