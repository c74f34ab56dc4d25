"""app.answering.generating.summaries: every summary is billed and fits the budget; a failed one is dropped."""

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import pytest

from app.answering.generating.summaries import Summariser
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.states.sources import Fitted
from app.db.session import Database
from app.errors import StoreUnavailable
from app.types import Operation, Principal, Reservation, Role, UsageStatus
from app.usage.ledger.events import UsageEvent
from app.usage.ledger.ledger import Ledger
from generation.errors import EngineFull
from generation.ports import Engine, Observer
from generation.types import (
    Completion,
    Delta,
    FinishReason,
    GenerationRequest,
    ModelInfo,
    Timings,
)
from retrieval.compress import compress, edges_first
from retrieval.types import Context, Scope
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.metered import meter_of
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.databases import migrated_file, sqlite_database
from tests.generation.fakes import LetterTokenizer, ScriptedRunner, scripted_engine
from tests.retrieval.fakes import ranked

__all__ = ["migrated_file", "sqlite_database"]

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.MEMBER),
    text="How did revenue develop?",
    scope=Scope(tenant_id="t"),
)
HITS = ranked(
    "Revenue rose by twelve percent in spring. It had fallen the year before, when two plants stood still.",
    "The board of the Oslo plant met four times. It spoke about revenue, costs and a new turbine hall.",
    "Every ship of the northern line was painted blue. It cost less than red paint would have cost them.",
    "How to develop photographs is told in a chapter of its own. It needs a dark room and three trays.",
    "Most of the staff walk to work along the river. The others come by boat, which takes half an hour.",
)
COUNT = CharacterTokenizer().count


class FinishedStream:
    """Says one text in one piece."""

    def __init__(self, request: GenerationRequest, says: str, reason: FinishReason, observer: Observer) -> None:
        self._request, self._says, self._reason, self._observer = request, says, reason, observer
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        completion = Completion(
            id=self._request.id,
            text=self._says,
            token_ids=tuple(map(ord, self._says)),
            finish_reason=self._reason,
            prompt_tokens=len(self._request.prompt),
            cached_tokens=0,
            delivered_tokens=len(self._says),
            timings=Timings(queue_ms=0.0, first_token_ms=1.0, total_ms=2.0),
        )
        if self._says:
            yield Delta(self._says, len(self._says))
        self._observer.finish(completion)
        yield completion

    def close(self) -> None:
        self.closed = True


class SummarisingEngine(IdleEngine):
    """Implements `Engine`: says the first words of the passage it is shown, or what it is told to say."""

    def __init__(
        self,
        *,
        says: str | None = None,
        reason: FinishReason = FinishReason.STOP,
        window: int = 9000,
        takes: int = 1000,
        on_submit: Callable[[GenerationRequest], None] = lambda request: None,
    ) -> None:
        """`takes` requests are accepted, the others are refused."""
        self.info = ModelInfo(model="scripted", revision="0", context_window=window, device="cpu", dtype="float32")
        self._says, self._reason, self._takes, self._on_submit = says, reason, takes, on_submit
        self.requests: list[GenerationRequest] = []
        self.streams: list[FinishedStream] = []

    def submit(self, request: GenerationRequest, *, observer: Observer) -> FinishedStream:
        self._on_submit(request)
        if len(self.requests) == self._takes:
            raise EngineFull(retry_after_s=1)
        self.requests.append(request)
        says = self.beginning(request) if self._says is None else self._says
        self.streams.append(FinishedStream(request, says[: request.sampling.max_tokens], self._reason, observer))
        return self.streams[-1]

    @staticmethod
    def beginning(request: GenerationRequest) -> str:
        """The whole words that fit of the passage."""
        ((start, stop),) = request.sources
        words = CharacterTokenizer().decode(request.prompt[start:stop]).split()
        said = ""
        for word in words:
            if len(said) + len(word) + 1 > request.sampling.max_tokens:
                break
            said = f"{said} {word}".strip()
        return said


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


def fit(budget: int) -> Context:
    return compress(HITS, query=QUESTION.text, budget=budget, count_tokens=COUNT)


def fitted(
    engine: Engine,
    ledger: Ledger,
    *,
    budget: int = 360,
    question: Question = QUESTION,
    meter: Meter | None = None,
) -> Fitted:
    summariser = Summariser(engine=engine, tokenizer=CharacterTokenizer())
    meter = meter or meter_of(question, ledger, engine=engine)
    return summariser.fitted(question, HITS, budget=budget, fit=fit, order=edges_first, meter=meter)


def test_what_does_not_fit_is_read_from_summaries_and_its_sources_hold_the_originals(ledger: Ledger) -> None:
    engine = SummarisingEngine()
    result = fitted(engine, ledger)

    assert result.summarised
    assert result.context.tokens <= 360
    by_id = {source.hit.chunk.id: source for source in result.context.sources}
    for request, chunk_id in zip(engine.requests, result.summarised, strict=False):
        assert SummarisingEngine.beginning(request) in " ".join(source.body for source in by_id.values())
        source = by_id[chunk_id]
        chunk = source.hit.chunk
        assert [chunk.text[span.start_char : span.end_char] for span in source.spans] == [chunk.text]
    assert not {dropped.chunk_id for dropped in result.context.dropped} & set(result.summarised)


def test_each_summary_is_a_row_written_before_the_engine_sees_it_and_settled_by_it(ledger: Ledger) -> None:
    before: list[UsageEvent] = []
    engine = SummarisingEngine(on_submit=lambda request: before.append(ledger.usage("req_1")[-1]))
    meter = meter_of(QUESTION, ledger, engine=engine)
    fitted(engine, ledger, meter=meter)

    rows = ledger.usage("req_1")
    assert [row.event_id for row in rows] == [request.id for request in engine.requests]
    assert [row.event_id for row in rows] == [f"req_1:{number}" for number in range(4, 4 + len(rows))]
    assert [row.status for row in before] == [UsageStatus.RESERVED] * len(rows)
    for row, request in zip(rows, engine.requests, strict=True):
        assert (row.operation, row.status, row.count_quality) == (Operation.REWRITE, UsageStatus.COMPLETED, "exact")
        assert row.components.total == row.input_tokens == len(request.prompt)
        assert 0 < row.output_tokens <= row.max_output_tokens == request.sampling.max_tokens
        assert sum(share.tokens for share in row.documents) == row.components.context
        assert (row.model, row.tokenizer_revision) == ("scripted", "r1")
        assert (request.salt, request.user) == ("t", "u")
    assert [(call.purpose, call.total_tokens) for call in meter.calls] == [
        ("summarise", row.input_tokens + row.output_tokens) for row in rows
    ]


@pytest.mark.parametrize("budget", range(0, 660, 30))
def test_the_budget_is_never_exceeded(ledger: Ledger, budget: int) -> None:
    context = fitted(SummarisingEngine(), ledger, budget=budget).context

    assert context.tokens == sum(COUNT(source.header) + COUNT(source.body) for source in context.sources) <= budget


@pytest.mark.parametrize(("window", "asked"), [(300, False), (490, False), (600, True), (700, True), (9000, True)])
def test_a_summary_always_fits_the_window_however_long_the_passage(ledger: Ledger, window: int, asked: bool) -> None:
    engine = SummarisingEngine(window=window)
    fitted(engine, ledger)

    assert all(len(request.prompt) + request.sampling.max_tokens <= window for request in engine.requests)
    assert bool(engine.requests) == asked


def test_where_everything_fits_the_generator_is_not_asked(ledger: Ledger) -> None:
    engine = SummarisingEngine()

    assert fitted(engine, ledger, budget=3600) == Fitted(fit(2000))
    assert (engine.requests, ledger.usage("req_1")) == ([], ())


@pytest.mark.parametrize(
    ("engine", "status"),
    [
        (SummarisingEngine(takes=0), UsageStatus.SERVER_ABORT),
        (SummarisingEngine(reason=FinishReason.ERROR), UsageStatus.ERROR),
        (SummarisingEngine(reason=FinishReason.DEADLINE), UsageStatus.SERVER_ABORT),
        (SummarisingEngine(says=""), UsageStatus.COMPLETED),
        (SummarisingEngine(says="Nothing."), UsageStatus.COMPLETED),
        (SummarisingEngine(says="Revenue is measured in bananas."), UsageStatus.COMPLETED),
        (SummarisingEngine(says="Revenue rose by 99 percent."), UsageStatus.COMPLETED),
        (SummarisingEngine(says="Revenue fell by twelve percent in spring."), UsageStatus.COMPLETED),
        (SummarisingEngine(says="At Contoso revenue rose by twelve percent in spring."), UsageStatus.COMPLETED),
    ],
    ids=["refused", "failed", "late", "empty", "nothing", "invented", "wrong number", "opposite", "other name"],
)
def test_without_a_usable_summary_the_context_is_as_if_none_had_been_asked_for(
    ledger: Ledger, engine: SummarisingEngine, status: UsageStatus
) -> None:
    meter = meter_of(QUESTION, ledger, engine=engine)
    result = fitted(engine, ledger, meter=meter)

    assert (result.context, result.summarised) == (fit(360), ())
    rows = ledger.usage("req_1")
    assert {row.status for row in rows} == {status}
    assert sum(call.total_tokens for call in meter.calls) == sum(row.input_tokens + row.output_tokens for row in rows)


def test_of_several_summaries_the_one_that_fails_is_dropped_and_says_so(ledger: Ledger) -> None:
    whole = fitted(SummarisingEngine(), ledger)
    part = fitted(SummarisingEngine(takes=1), ledger, question=replace(QUESTION, request_id="req_2"))

    assert len(whole.summarised) > len(part.summarised) == 1
    lost = set(whole.summarised) - set(part.summarised)
    assert lost <= {dropped.chunk_id for dropped in part.context.dropped if dropped.reason == "budget"}


def test_sentences_the_passage_does_not_support_are_left_out_and_repeated_ones_said_once(ledger: Ledger) -> None:
    says = "It says:\n\nBlue ship. It is fun. Blue ship. Every ship of the nor"
    result = fitted(SummarisingEngine(says=says, reason=FinishReason.LENGTH), ledger, budget=300)

    assert result.summarised == ("chunk_3",)
    assert [source.body for source in result.context.sources if source.hit.chunk.id == "chunk_3"] == ["Blue ship.\n"]


def test_a_ledger_that_fails_stops_what_is_under_way() -> None:
    class FailingLedger:
        """Takes one reservation."""

        reserved = 0

        def reserve(self, reservation: Reservation) -> None:
            self.reserved += 1
            if self.reserved > 1:
                raise StoreUnavailable("The database is locked.")

    engine = SummarisingEngine()
    with pytest.raises(StoreUnavailable):
        fitted(engine, cast(Ledger, FailingLedger()))

    assert [stream.closed for stream in engine.streams] == [True]


def test_a_summary_is_about_the_question_as_it_was_rewritten(ledger: Ledger) -> None:
    engine = SummarisingEngine()
    asked = replace(QUESTION, text="And how did that develop?")

    fitted(engine, ledger, question=asked.standing_alone(QUESTION.text), meter=meter_of(asked, ledger, engine=engine))

    assert engine.requests
    assert all(QUESTION.text in CharacterTokenizer().decode(request.prompt) for request in engine.requests)


def test_half_of_the_time_left_is_kept_for_the_answer(ledger: Ledger) -> None:
    engine = SummarisingEngine()

    fitted(engine, ledger, question=replace(QUESTION, deadline=time.monotonic() + 100))

    assert engine.requests
    assert all(request.deadline_s is not None and request.deadline_s <= 50 for request in engine.requests)


def test_a_question_whose_time_is_up_asks_for_no_summary(ledger: Ledger) -> None:
    engine = SummarisingEngine()

    assert fitted(engine, ledger, question=replace(QUESTION, deadline=0.0)) == Fitted(fit(360))
    assert (engine.requests, ledger.usage("req_1")) == ([], ())


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_reader_who_leaves_ends_the_summaries_under_way(ledger: Ledger, gate: threading.Event) -> None:
    running = threading.Event()

    def wait(plan: object) -> None:
        running.set()
        assert gate.wait(30)

    engine = scripted_engine(ScriptedRunner(before_step=wait))
    meter = meter_of(QUESTION, ledger, engine=engine)
    summariser = Summariser(engine=engine, tokenizer=LetterTokenizer())
    with ThreadPoolExecutor() as pool:
        future = pool.submit(summariser.fitted, QUESTION, HITS, budget=360, fit=fit, order=edges_first, meter=meter)
        assert running.wait(30)
        meter.close()
        gate.set()
        result = future.result(10)
    engine.close()

    assert result == Fitted(fit(360))
    assert {row.status for row in ledger.usage("req_1")} == {UsageStatus.CLIENT_ABORT}


def test_a_reader_who_left_before_is_asked_no_summary(ledger: Ledger) -> None:
    engine = SummarisingEngine()
    meter = meter_of(QUESTION, ledger, engine=engine)
    meter.close()

    assert fitted(engine, ledger, meter=meter) == Fitted(fit(360))
    assert (engine.requests, ledger.usage("req_1")) == ([], ())
