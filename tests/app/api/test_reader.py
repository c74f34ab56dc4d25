"""POST /v1/ask with a span reader: the model is pointed at what may answer, or not asked, and reading is metered."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.answering.citing.citation import CONFIRMED, THRESHOLD
from app.answering.languages.table import REFUSAL
from app.answering.states.reading import ANSWERED
from app.server.state import State
from app.types import Operation, UsageStatus
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from generation.tokenizer import ChatTokenizer
from retrieval.search import Search
from retrieval.types import Hit
from tests.app.answering.pointing_reader import PointingReader
from tests.app.api.bills import PROMPT, assert_adds_up
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch, ScriptedEngine
from tests.app.server.stations import LIMITS, state_with, stations
from tests.generation.tiny import tiny_tokenizer
from tests.retrieval.fakes import TopicEmbedder, chunk, hit

QUESTION = "How many ships did the harbour master log?"
OFF_TOPIC = "Which enzyme splits lactose in milk?"
PASSAGES = (
    "The harbour was dredged in April. It is deep. Ships of every size can enter it.",
    "The harbour master logged forty ships in May. Nobody counted them in June. He retired in July.",
)
SAYS = "Forty ships [2]."


def hits() -> tuple[Hit, ...]:
    """Both passages, of two documents, as evidence."""
    found = [
        hit(chunk(rank, text, document_id=f"doc_{rank}"), rank=rank) for rank, text in enumerate(PASSAGES, start=1)
    ]
    return tuple(replace(one, scores=replace(one.scores, dense=0.8)) for one in found)


class Service:
    """The application over a scripted engine and a fixed search, with a reader."""

    def __init__(self, client: TestClient, engine: ScriptedEngine, state: State) -> None:
        self._client, self.engine, self._state = client, engine, state

    def ask(self, question: str = QUESTION, **fields: Any) -> Any:
        response = self._client.post("/v1/ask", json={"question": question, **fields})
        assert response.status_code == 200, response.text
        return response.json()

    def events(self, question: str = QUESTION, **fields: Any) -> list[tuple[str, Any]]:
        text = self._client.post("/v1/ask", json={"question": question, "stream": True, **fields}).text
        blocks = [block.split("\n") for block in text.strip().split("\n\n") if block.startswith("event:")]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data, *_ in blocks]

    def prompt(self) -> str:
        """What the engine was last asked."""
        return ChatTokenizer(tiny_tokenizer()).decode(self.engine.requests[-1].prompt)

    def bill(self, request_id: str) -> tuple[UsageEvent, ...]:
        """The request's rows of the ledger."""
        return Ledger(self._state.database, boot_id="boot").usage(request_id)

    def rows(self, request_id: str) -> list[tuple[Operation, str, UsageStatus, int | None]]:
        return [(row.operation, row.model, row.status, row.input_tokens) for row in self.bill(request_id)]


@pytest.fixture
def serve(state: State) -> Iterator[Callable[..., Service]]:
    closing: list[Callable[[], object]] = []

    def start(reader: PointingReader, **limits: Any) -> Service:
        engine = ScriptedEngine(SAYS)
        models = stations(
            state,
            engine,
            tokenizer=cast(Any, ChatTokenizer(tiny_tokenizer())),
            embedder=TopicEmbedder("ship", "Schiff"),
            search=cast(Search, FixedSearch(hits())),
            reader=reader,
            limits=replace(LIMITS, **limits),
        )
        client = client_of(state_with(state, models=models))
        client.__enter__()
        closing.append(lambda: client.__exit__(None, None, None))
        return Service(client, engine, state)

    yield start
    for close in closing:
        close()


def test_the_model_reads_last_what_may_be_the_answer(serve) -> None:
    service = serve(PointingReader("forty ships"))

    body = service.ask()

    assert body["answered"]
    assert body["answer"] == SAYS
    prompt = service.prompt()
    behind = prompt[prompt.rindex(QUESTION) :]
    assert behind.index("[2] The harbour master logged forty ships in May.") < behind.index(
        'Possible answer: """ forty ships [2] """'
    )
    assert body["abstention"]["stage"] is None


def test_the_reading_is_on_the_bill_and_its_words_are_context(serve) -> None:
    service = serve(PointingReader("forty ships"))

    body = service.ask()

    auxiliary = {found["purpose"]: found["tokens"] for found in body["usage"]["auxiliary"]}
    judged = [row for row in service.rows(body["id"]) if row[0] is Operation.JUDGE and row[1] == "pointing"]
    assert judged == [(Operation.JUDGE, "pointing", UsageStatus.COMPLETED, auxiliary["locate"])]
    embedded = [row for row in service.rows(body["id"]) if row[0] is Operation.EMBED_QUERY]
    assert (Operation.EMBED_QUERY, "hashing", UsageStatus.COMPLETED, auxiliary["extract"]) in embedded
    assert sum(body["usage"]["by_document"].values()) == body["usage"]["components"]["context"]
    assert sum(body["usage"]["components"][part] for part in PROMPT) == len(service.engine.requests[-1].prompt)


@pytest.mark.parametrize("words", ["fifty ships", "forty ships"])
def test_a_dry_run_counts_the_prompt_that_would_be_sent(serve, words: str) -> None:
    service = serve(PointingReader(words), abstention_threshold=1.0)

    dry = service.ask(dry_run=True)
    wet = service.ask()

    planned = [call["prompt_tokens"] for call in dry["usage"]["calls"] if call["planned"]]
    made = [call["prompt_tokens"] for call in wet["usage"]["calls"] if call["purpose"] == "answer"]
    assert planned == made == [len(service.engine.requests[-1].prompt)]
    assert_adds_up(dry["usage"], service.bill(dry["id"]))


def test_where_no_source_answers_nothing_is_generated(serve) -> None:
    service = serve(PointingReader("fifty ships"))

    body = service.ask(OFF_TOPIC)

    assert (body["answered"], body["reason"], body["answer"]) == (False, "not_in_sources", REFUSAL)
    assert (body["abstention"]["stage"], body["abstention"]["threshold"]) == ("reader", 1 - ANSWERED)
    assert body["abstention"]["score"] == 1 - body["answers"] > 1 - ANSWERED
    assert_adds_up(body["usage"], service.bill(body["id"]))
    assert {call["purpose"] for call in body["usage"]["calls"]} == {"embed_query", "locate", "extract"}
    assert (body["quoted_spans"], body["lead"]) == ([], None)
    assert service.engine.requests == []
    assert [row[0] for row in service.rows(body["id"])] == [
        Operation.EMBED_QUERY,
        Operation.JUDGE,
        Operation.EMBED_QUERY,
    ]


def test_a_refusal_is_the_same_streamed(serve) -> None:
    service = serve(PointingReader("fifty ships"))

    body, streamed = service.ask(OFF_TOPIC), service.events(OFF_TOPIC)

    assert "".join(data["text"] for name, data in streamed if name == "delta") == body["answer"]
    (done,) = [data for name, data in streamed if name == "done"]
    assert done["abstention"] == body["abstention"]
    assert (done["answers"], done["lead"], done["quoted_spans"]) == (body["answers"], None, [])


@pytest.mark.parametrize("fields", [{"abstention_threshold": 1.0}, {"on_no_evidence": "answer"}])
def test_who_wants_an_answer_anyway_gets_one(serve, fields: dict[str, Any]) -> None:
    service = serve(PointingReader("fifty ships"))

    assert not service.ask(OFF_TOPIC)["answered"]
    assert service.ask(OFF_TOPIC, **fields)["answered"]


def test_a_question_that_may_be_answered_is_left_to_the_model_without_a_pointer(serve) -> None:
    """Where words would answer and none are likely to, the model reads the passages and decides itself."""
    service = serve(PointingReader("forty ships"))

    body = service.ask(abstention_threshold=1e-12)

    assert body["answered"]
    assert "Possible answer" not in service.prompt()


@pytest.mark.parametrize(
    "question", ["Tell me about the ships the harbour master logged in May.", "Why did the harbour master log ships?"]
)
def test_where_no_few_words_answer_the_model_is_pointed_at_sentences(serve, question: str) -> None:
    service = serve(PointingReader("forty ships"))

    body = service.ask(question)

    behind = service.prompt()[service.prompt().rindex("Possible answer:") :]
    assert behind.startswith('Possible answer: """ The harbour master logged forty ships in May. [2]')
    assert body["answered"]
    rows = [(row[0], row[3]) for row in service.rows(body["id"])]
    auxiliary = {found["purpose"]: found["tokens"] for found in body["usage"]["auxiliary"]}
    assert (Operation.JUDGE, auxiliary["locate"]) in rows
    assert (Operation.EMBED_QUERY, auxiliary["extract"]) in rows
    assert sum(body["usage"]["by_document"].values()) == body["usage"]["components"]["context"]


def test_open_questions_are_refused_too_where_no_source_answers(serve) -> None:
    service = serve(PointingReader("fifty ships"))

    body = service.ask("How does lactase split milk sugar?")

    assert (body["answered"], body["abstention"]["stage"]) == (False, "reader")
    assert service.engine.requests == []


def test_a_schema_of_ones_own_is_never_answered_by_a_sentence(serve) -> None:
    service = serve(PointingReader("fifty ships"))
    service.engine.says = '{"ships": 40}'
    schema = {"type": "object", "properties": {"ships": {"type": "integer"}}, "required": ["ships"]}

    body = service.ask(OFF_TOPIC, format="json", json_schema=schema)

    assert body["answer"] == '{"ships": 40}'
    assert service.ask(OFF_TOPIC, format="json")["abstention"]["stage"] == "reader"


def test_a_refusal_with_a_marker_behind_it_is_no_answer(serve) -> None:
    service = serve(PointingReader("forty ships"))
    service.engine.says = "I don't know. [2]"

    body = service.ask()

    assert (body["answered"], body["reason"], body["abstention"]["stage"]) == (False, "not_in_sources", "model")


def test_other_languages_are_not_pointed_at_anything(serve) -> None:
    service = serve(PointingReader("forty ships"))

    body = service.ask("Wie viele Schiffe hat der Hafenmeister im Mai gezählt?")

    assert body["answered"]
    assert "Possible answer" not in service.prompt()
    assert "locate" not in {found["purpose"] for found in body["usage"]["auxiliary"]}


@pytest.mark.parametrize("says", [SAYS, "The harbour was dredged in April [1]."])
def test_a_generated_answer_is_as_likely_to_answer_as_the_passages_it_cites(serve, says: str) -> None:
    service = serve(PointingReader("forty ships"))
    service.engine.says = says

    body, events = service.ask(), service.events()

    (cited,) = body["citations"]
    assert cited["answers"] == body["answers"]
    assert 0 <= body["answers"] < 1
    assert cited["verified"] == (cited["support"] >= THRESHOLD and cited["answers"] >= CONFIRMED)
    assert (body["quoted_spans"], body["lead"]) == ([], None)
    (done,) = [data for name, data in events if name == "done"]
    assert (done["answers"], done["lead"], done["quoted_spans"]) == (body["answers"], None, [])


def test_an_answer_from_the_pointed_passage_is_likelier_to_answer_than_one_from_another(serve) -> None:
    service = serve(PointingReader("forty ships"))

    pointed = service.ask()["answers"]
    service.engine.says = "The harbour was dredged in April [1]."

    assert service.ask()["answers"] < pointed
