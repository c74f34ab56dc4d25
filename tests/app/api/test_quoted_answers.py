"""Answers by quotes over HTTP, with a span reader: answered, unsure or refused, with a language model or without."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, cast

import pytest

from app.answering.citing.citation import CONFIRMED
from app.answering.conversations.conversations import Conversations
from app.answering.languages.refusals import unsure
from app.answering.languages.table import REFUSAL
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.models.extractive import NoEngine
from app.server.collectors import EngineCollector
from app.server.state import State
from app.types import Operation
from generation.ports import Engine
from retrieval.search import Search
from retrieval.types import Hit
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch, ScriptedEngine
from tests.app.api.test_reader import OFF_TOPIC, QUESTION, hits
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.retrieval.fakes import TopicEmbedder

SENTENCE = "The harbour master logged forty ships in May."
GENERATED = "Forty ships came [2]."
UNSURELY: dict[str, Any] = {"abstention_threshold": 1e-12}
"""Nothing is sure enough to be an answer."""

FIELDS = ("answered", "reason", "answers", "lead", "quoted_spans", "parts", "abstention")


class Served:
    """The application over a fixed search, with a reader that points at "forty ships", and with conversations."""

    def __init__(
        self,
        state: State,
        quotes: QuotesAs,
        *,
        quote_unverified: bool = True,
        found: tuple[Hit, ...] = (),
        other: str = "",
        **limits: Any,
    ) -> None:
        embedder, tokenizer, ledger = TopicEmbedder("ship"), CharacterTokenizer(), state.usage.ledger
        self.engine = ScriptedEngine(GENERATED)
        engine = cast(Engine, self.engine if quotes is QuotesAs.FIRST else NoEngine(revision="1", context_window=2000))
        answerer = make_answerer(
            finder=Finder(search=cast(Search, FixedSearch(found or hits())), vectors=QuestionVectors(embedder)),
            engine=engine,
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=ledger,
            limits=replace(ANY_EVIDENCE, **limits),
            passage_reader=PassageReader(
                embedder=embedder, reader=PointingReader("forty ships", asked="ships", other=other)
            ),
            quotes=quotes,
            quote_unverified=quote_unverified,
            conversations=Conversations(state.history.conversations, count_tokens=tokenizer.count, history_tokens=500),
        )
        models = replace(stations(state, engine, tokenizer=tokenizer), answerer=answerer)
        running = state_with(state, models=models)
        running.telemetry.metrics.register(EngineCollector(engine))
        self.client = client_of(running)

    def post(self, path: str, **body: Any) -> str:
        response = self.client.post(path, json=body)
        assert response.is_success, response.text
        return response.text

    def ask(self, question: str = QUESTION, **fields: Any) -> Any:
        return json.loads(self.post("/v1/ask", question=question, **fields))

    def events(self, question: str = QUESTION, **fields: Any) -> list[tuple[str, Any]]:
        text = self.post("/v1/ask", question=question, stream=True, **fields)
        blocks = [block.split("\n") for block in text.strip().split("\n\n") if block.startswith("event:")]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data, *_ in blocks]

    def chat(self, question: str = QUESTION, **fields: Any) -> Any:
        """The message of a chat completion, whole."""
        body = self.post("/v1/chat/completions", **_chat(question, fields))
        return json.loads(body)["choices"][0]["message"]

    def streamed_chat(self, question: str = QUESTION, **fields: Any) -> dict[str, str]:
        """What the deltas of a streamed chat completion add up to."""
        text = self.post("/v1/chat/completions", stream=True, **_chat(question, fields))
        message: dict[str, str] = {}
        for line in text.splitlines():
            if line.startswith("data: {"):
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    for name in ("content", "refusal"):
                        message[name] = message.get(name, "") + (choice["delta"].get(name) or "")
        return message


def _chat(question: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"model": "footnote", "messages": [{"role": "user", "content": question}], **fields}


def sliced(body: Any, span: Any) -> str:
    text: str = body["answer"][span["start"] : span["end"]]
    return text


Serve = Callable[..., Served]
BOTH = pytest.mark.parametrize("quotes", [QuotesAs.ONLY, QuotesAs.FIRST])


@pytest.fixture
def serve(state: State) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(quotes: QuotesAs, **limits: Any) -> Served:
            served = Served(state, quotes, **limits)
            stack.enter_context(served.client)
            return served

        yield start


@BOTH
def test_the_words_that_answer_lead_and_their_sentence_is_quoted(serve: Serve, quotes: QuotesAs) -> None:
    served = serve(quotes)
    body = served.ask()

    assert (body["answered"], body["reason"]) == (True, None)
    assert body["answer"].startswith(f"**forty ships** [2]\n\n> {SENTENCE} [2]")
    assert sliced(body, body["lead"]) == "forty ships"
    first = body["quoted_spans"][0]
    assert sliced(body, first) == SENTENCE
    assert [sliced(body, span) for span in first["highlights"]] == ["forty ships"]
    assert body["answers"] == first["answers"]
    assert {one["cited_text"] for one in body["citations"][:2]} == {SENTENCE}
    for one in body["citations"]:
        assert one["verified"] == (one["answers"] >= CONFIRMED)
        assert sliced(body, {"start": one["answer_start"], "end": one["answer_end"]}) == f"[{one['index']}]"
    assert served.engine.requests == []


@BOTH
def test_the_bill_has_what_both_models_read_and_no_generated_token(serve: Serve, quotes: QuotesAs) -> None:
    body = serve(quotes).ask()
    usage = body["usage"]

    assert usage["prompt_tokens"] == usage["total_tokens"] == sum(call["prompt_tokens"] for call in usage["calls"]) > 0
    assert usage["completion_tokens"] == usage["components"]["completion"] == 0
    assert body["model"] == "pointing", "the model that was called"
    assert [found["purpose"] for found in usage["auxiliary"]] == ["embed_query", "extract", "locate"]
    assert all(found["tokens"] > 0 for found in usage["auxiliary"])


def test_every_models_reading_is_on_the_ledger(serve: Serve, state: State) -> None:
    body = serve(QuotesAs.FIRST).ask()

    rows = state.usage.ledger.usage(body["id"])
    tokens = {found["purpose"]: found["tokens"] for found in body["usage"]["auxiliary"]}
    assert sorted((row.operation, row.input_tokens) for row in rows) == sorted(
        [
            (Operation.EMBED_QUERY, tokens["embed_query"]),
            (Operation.EMBED_QUERY, tokens["extract"]),
            (Operation.JUDGE, tokens["locate"]),
        ]
    )


def test_the_report_of_documents_has_what_was_read_of_each(serve: Serve) -> None:
    served = serve(QuotesAs.FIRST)
    body = served.ask()
    (located,) = (call["prompt_tokens"] for call in body["usage"]["calls"] if call["purpose"] == "locate")

    found = served.client.get("/v1/admin/usage/documents", params={"start_time": 0}).json()["data"]

    read = {one["document_id"]: one for one in found if one["num_retrieved"]}
    assert read.keys() >= {one["document_id"] for one in body["citations"]} != set()
    assert {one["num_retrieved"] for one in read.values()} == {1}
    assert sum(one["context_tokens"] for one in read.values()) == located


@BOTH
def test_the_nearest_passages_are_quoted_as_no_answer(serve: Serve, quotes: QuotesAs) -> None:
    served = serve(quotes)
    body = served.ask(**UNSURELY)

    assert (body["answered"], body["reason"], body["lead"]) == (False, "unsure", None)
    assert body["answer"].startswith(f"{unsure('')}\n\n> {SENTENCE} [2]")
    assert sliced(body, body["quoted_spans"][0]) == SENTENCE
    assert [sliced(body, span) for span in body["quoted_spans"][0]["highlights"]] == ["forty ships"]
    assert [one["verified"] for one in body["citations"]] == [False] * len(body["quoted_spans"])
    assert body["citations"][0]["cited_text"] == SENTENCE
    assert body["abstention"]["stage"] == "reader"
    assert body["abstention"]["score"] == pytest.approx(1 - body["answers"])
    assert body["abstention"]["threshold"] == pytest.approx(1e-12)
    assert served.engine.requests == []


@BOTH
def test_where_nothing_is_near_the_question_is_refused(serve: Serve, quotes: QuotesAs) -> None:
    served = serve(quotes)
    body = served.ask(OFF_TOPIC)

    assert (body["answered"], body["reason"], body["answer"]) == (False, "not_in_sources", REFUSAL)
    assert (body["citations"], body["quoted_spans"], body["lead"]) == ([], [], None)
    assert body["abstention"]["stage"] == "reader"
    assert served.engine.requests == []


@pytest.mark.parametrize("form", ["markdown", "text", "json"])
@pytest.mark.parametrize(
    ("question", "fields"), [(QUESTION, {}), (QUESTION, UNSURELY), (OFF_TOPIC, {})], ids=["sure", "unsure", "refused"]
)
def test_a_streamed_answer_equals_the_whole_one(serve: Serve, question: str, fields: dict[str, Any], form: str) -> None:
    served = serve(QuotesAs.FIRST)
    body, events = served.ask(question, format=form, **fields), served.events(question, format=form, **fields)

    assert "".join(data["text"] for name, data in events if name == "delta") == body["answer"]
    assert {data["part"] for name, data in events if name == "delta"} == {None}, "no model writes"
    assert [data for name, data in events if name == "citation"] == body["citations"]
    (done,) = [data for name, data in events if name == "done"]
    assert {name: done[name] for name in FIELDS} == {name: body[name] for name in FIELDS}


@pytest.mark.parametrize(("fields", "said"), [({}, "forty ships"), (UNSURELY, SENTENCE)], ids=["sure", "unsure"])
def test_json_has_the_lead_or_the_quotes_and_their_sources(serve: Serve, fields: dict[str, Any], said: str) -> None:
    body = serve(QuotesAs.FIRST).ask(format="json", **fields)
    document = json.loads(body["answer"])

    assert document["answer"].startswith(said)
    assert document["sources"] == list(dict.fromkeys(one["index"] for one in body["citations"]))
    assert body["answered"] == (not fields)
    assert all(
        body["answer"][one["answer_start"] : one["answer_end"]] == str(one["index"]) for one in body["citations"]
    )


@pytest.mark.parametrize(
    ("question", "fields"), [(QUESTION, {}), (QUESTION, UNSURELY), (OFF_TOPIC, {})], ids=["sure", "unsure", "refused"]
)
def test_a_turn_of_a_conversation_keeps_the_quotes(serve: Serve, question: str, fields: dict[str, Any]) -> None:
    served = serve(QuotesAs.FIRST)
    conversation = json.loads(served.post("/v1/conversations"))["id"]
    body = served.ask(question, conversation_id=conversation, **fields)

    (turn,) = served.client.get(f"/v1/conversations/{conversation}").json()["data"]

    assert turn["answer"] == body["answer"]
    assert turn["answered"] == body["answered"]
    for name in ("reason", "answers", "lead", "quoted_spans", "parts", "abstention"):
        assert turn["making"][name] == body[name]


@pytest.mark.parametrize("response_format", [{"type": "text"}, {"type": "json_object"}], ids=["prose", "JSON"])
@pytest.mark.parametrize(
    ("question", "limits"), [(QUESTION, {}), (QUESTION, UNSURELY), (OFF_TOPIC, {})], ids=["sure", "unsure", "refused"]
)
def test_chat_completions_are_the_same_streamed(
    serve: Serve, question: str, limits: dict[str, float], response_format: dict[str, str]
) -> None:
    served = serve(QuotesAs.FIRST, **limits)
    whole = served.chat(question, response_format=response_format)
    streamed = served.streamed_chat(question, response_format=response_format)

    assert (streamed["content"], streamed["refusal"]) == (whole["content"] or "", whole["refusal"] or "")
    assert whole["content"] or whole["refusal"]


@pytest.mark.parametrize(
    "fields",
    [{"on_no_evidence": "answer"}, {"format": "json", "json_schema": {"type": "string"}}],
    ids=["without sources too", "a schema of one's own"],
)
def test_what_quotes_cannot_answer_is_generated_where_there_is_a_model(serve: Serve, fields: dict[str, Any]) -> None:
    served = serve(QuotesAs.FIRST)
    body = served.ask(**fields)

    assert len(served.engine.requests) == 1
    assert body["answer"].startswith("Forty ships came")
    assert (body["quoted_spans"], body["lead"]) == ([], None)


def test_log_probabilities_need_the_model(serve: Serve) -> None:
    served = serve(QuotesAs.FIRST)

    assert served.chat(logprobs=True)["content"].startswith("Forty ships came")
    assert len(served.engine.requests) == 1


def test_an_unverified_generated_answer_is_followed_by_quotes_where_quotes_come_first(serve: Serve) -> None:
    served = serve(QuotesAs.FIRST)
    served.engine.says = "Ninety zeppelins [1]."

    body = served.ask(on_no_evidence="answer")

    assert body["answer"].startswith(f"Ninety zeppelins [1].\n\n> {SENTENCE} [2]")
    assert sliced(body, body["quoted_spans"][0]) == SENTENCE


@pytest.mark.parametrize(
    ("strict", "said", "reason"), [(False, "Ninety zeppelins [1].", None), (True, REFUSAL, "not_verified")]
)
def test_no_quotes_follow_it_where_the_setting_keeps_answers_as_they_are(
    serve: Serve, strict: bool, said: str, reason: str | None
) -> None:
    served = serve(QuotesAs.FIRST, quote_unverified=False)
    served.engine.says = "Ninety zeppelins [1]."

    body = served.ask(on_no_evidence="answer", strict=strict)

    assert (body["answer"], body["quoted_spans"], body["reason"]) == (said, [], reason)
    assert served.ask()["quoted_spans"], "quotes are still the answer to what they can answer"


@BOTH
def test_a_dry_run_quotes_nothing(serve: Serve, quotes: QuotesAs) -> None:
    body = serve(quotes).ask(dry_run=True)

    assert (body["reason"], body["answer"], len(body["sources"]["presented"])) == ("dry_run", "", 2)
    assert (body["quoted_spans"], body["lead"], body["answers"]) == ([], None, None)
    assert [found["purpose"] for found in body["usage"]["auxiliary"]] == ["embed_query"]


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_c9_a_question_longer_than_the_window_is_422_with_the_counts_and_costs_nothing(
    serve: Serve, state: State, quotes: QuotesAs, stream: bool
) -> None:
    served = serve(quotes)
    conversation = json.loads(served.post("/v1/conversations"))["id"]
    body = {"question": "why " * 3000, "stream": stream, "conversation_id": conversation}

    refused = served.client.post("/v1/ask", json=body)

    problem = refused.json()
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert problem["type"] == "urn:footnote:problem:context-length-exceeded"
    assert problem["prompt_tokens"] > problem["context_window"]
    assert problem["max_output_tokens"] == 0
    assert state.usage.ledger.usage(refused.headers["x-request-id"]) == ()
    assert served.client.get(f"/v1/conversations/{conversation}").json()["data"] == []


@BOTH
def test_c9_chat_completions_have_openais_error_for_it(serve: Serve, quotes: QuotesAs) -> None:
    refused = serve(quotes).client.post("/v1/chat/completions", json=_chat("why " * 3000, {}))

    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "context_length_exceeded")
