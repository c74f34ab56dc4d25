"""app.answering.quoting.passage_reader: each model that selects quotes is metered under the number of its call."""

from dataclasses import replace

import pytest

from app.answering.metering.call_kinds import CallNumber
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.quoting.passage_reader import PassageReader
from app.answering.quoting.selection import NEAREST
from app.answering.states.reading import ANSWERED, Selection
from app.db.session import Database
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.types import Context, Scope
from tests.app.answering.gated_reader import FIRST_BATCH, GatedReader
from tests.app.answering.groundings import grounding_of
from tests.app.answering.metered import meter_of
from tests.app.answering.pointing_reader import SURE, PointingReader
from tests.app.answering.sources import source
from tests.databases import migrated_file, sqlite_database
from tests.retrieval.fakes import HashingEmbedder

__all__ = ["migrated_file", "sqlite_database"]

TEXT = "The plant in Oslo closed on 4 May. Nobody was hurt."
QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="When was the plant in Oslo closed?",
    scope=Scope(tenant_id="t"),
)
GERMAN = "Wann wurde das Werk in Oslo geschlossen?"
CONTEXT = Context((source(TEXT),), (), 10)
GROUNDING = grounding_of(QUESTION, CONTEXT)


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


@pytest.fixture
def meter(ledger: Ledger) -> Meter:
    return meter_of(QUESTION, ledger)


def select(
    meter: Meter, reader: PointingReader | None, *, question: Question = QUESTION, abstention: float | None = 1.0
) -> Selection:
    """The selection; unless told otherwise every question is answered."""
    passage_reader = PassageReader(embedder=HashingEmbedder(), reader=reader)
    return passage_reader.open(grounding_of(question, CONTEXT), meter=meter, abstention=abstention).read()


def test_what_both_models_read_is_metered_under_their_calls(ledger: Ledger, meter: Meter) -> None:
    selection = select(meter, PointingReader("4 May"))

    assert selection.quotes[0].text == "The plant in Oslo closed on 4 May."
    rows = {row.event_id: (row.operation, row.model, row.status, row.input_tokens) for row in ledger.usage("req_1")}
    read, chosen = meter.calls
    assert rows == {
        f"req_1:{int(CallNumber.READ)}": (
            Operation.JUDGE,
            read.model,
            UsageStatus.COMPLETED,
            read.prompt_tokens,
        ),
        f"req_1:{int(CallNumber.FIND_QUOTES)}": (
            Operation.EMBED_QUERY,
            chosen.model,
            UsageStatus.COMPLETED,
            chosen.prompt_tokens,
        ),
    }
    assert [(call.purpose, call.model) for call in meter.calls] == [("locate", "pointing"), ("extract", "hashing")]
    assert read.prompt_tokens == len(QUESTION.text.split()) + len(TEXT.split())
    assert chosen.prompt_tokens > 0


@pytest.mark.parametrize(
    ("reader", "question"),
    [
        pytest.param(None, QUESTION, id="no reader"),
        pytest.param(PointingReader("4 May"), replace(QUESTION, text=GERMAN), id="another language"),
    ],
)
def test_where_nothing_is_read_only_the_embedder_is_metered(
    ledger: Ledger, meter: Meter, reader: PointingReader | None, question: Question
) -> None:
    selection = select(meter, reader, question=question)

    (row,) = ledger.usage("req_1")
    assert (row.event_id, row.operation) == (f"req_1:{int(CallNumber.FIND_QUOTES)}", Operation.EMBED_QUERY)
    assert [(call.purpose, call.prompt_tokens) for call in meter.calls] == [("extract", row.input_tokens)]
    assert not selection.decides


def test_a_reader_that_breaks_leaves_no_open_row(ledger: Ledger, meter: Meter) -> None:
    with pytest.raises(RuntimeError):
        select(meter, PointingReader("4 May", failing=True))

    assert [row.status for row in ledger.usage("req_1")] == [UsageStatus.ERROR]


def test_a_selection_that_is_stopped_ends_with_its_batch_and_bills_what_was_read(ledger: Ledger, meter: Meter) -> None:
    reader = GatedReader("4 May")
    reader.open.set()
    passage_reader = PassageReader(embedder=HashingEmbedder(), reader=reader)

    opened = passage_reader.open(GROUNDING, meter=meter)
    meter.close()
    selection = opened.read()

    assert selection.quotes == ()
    assert [(call.purpose, call.prompt_tokens) for call in meter.calls] == [("locate", FIRST_BATCH)]
    (row,) = ledger.usage("req_1")
    assert (row.status, row.input_tokens) == (UsageStatus.CLIENT_ABORT, FIRST_BATCH)
    assert reader.passages == [], "no other batch was read"


def test_a_selection_that_nobody_wants_calls_no_model(ledger: Ledger, meter: Meter) -> None:
    meter.close()
    passage_reader = PassageReader(embedder=HashingEmbedder(), reader=PointingReader("4 May"))

    opened = passage_reader.open(GROUNDING, meter=meter)

    assert (opened.reads, opened.read().quotes) == (False, ())
    assert not ledger.usage("req_1")


@pytest.mark.parametrize("has_reader", [False, True], ids=["no reader", "a reader"])
def test_the_first_call_is_on_the_ledger_when_a_selection_is_open_and_no_model_has_read(
    ledger: Ledger, meter: Meter, has_reader: bool
) -> None:
    reader = PointingReader("4 May")
    passage_reader = PassageReader(embedder=HashingEmbedder(), reader=reader if has_reader else None)

    opened = passage_reader.open(GROUNDING, meter=meter)

    assert opened.reads
    assert [row.status for row in ledger.usage("req_1")] == [UsageStatus.RESERVED]
    assert (meter.calls, reader.passages) == ((), [])
    assert opened.read() is opened.read(), "the models read once"
    assert {row.status for row in ledger.usage("req_1")} == {UsageStatus.COMPLETED}


def test_without_sources_nothing_is_metered(ledger: Ledger, meter: Meter) -> None:
    passage_reader = PassageReader(embedder=HashingEmbedder(), reader=PointingReader("4 May"))

    opened = passage_reader.open(grounding_of(QUESTION), meter=meter)

    assert (opened.reads, opened.read().quotes) == (False, ())
    assert not ledger.usage("req_1")


def test_the_readers_thresholds_are_the_servers_where_the_question_has_none(meter: Meter) -> None:
    selection = select(meter, PointingReader("4 May", margins=(-SURE,)), abstention=None)

    assert selection.threshold == ANSWERED
    assert (selection.outcome == "answered") == (selection.score >= ANSWERED)
    assert bool(selection.quotes) == (selection.score >= NEAREST)


def test_who_wants_fewer_refusals_says_how_sure_one_must_be(meter: Meter) -> None:
    reader = PointingReader("4 May")
    score = select(meter, reader).score
    assert score > NEAREST

    answered = select(meter_of(QUESTION), reader, abstention=1 - score / 2)
    unsure = select(meter_of(QUESTION), reader, abstention=(1 - score) / 2)

    assert [one.outcome for one in (answered, unsure)] == ["answered", "unsure"]
    assert answered.threshold == pytest.approx(score / 2)
    assert unsure.threshold == pytest.approx((1 + score) / 2)
    assert answered.quotes == unsure.quotes


def test_who_asks_for_less_than_the_nearest_passages_gets_an_answer(meter: Meter) -> None:
    """With a threshold below the least at which quotes are shown at all, nothing is left in between."""
    selection = select(meter, PointingReader("nowhere"), abstention=1 - NEAREST / 1000)

    assert selection.threshold < NEAREST
    assert selection.outcome == ("answered" if selection.score >= selection.threshold else "refused")
