"""app.answering.quoting.quoter: one method selects sentences for three calls, each metered under its number."""

from dataclasses import replace

import pytest

from app.answering.calls import CallNumber
from app.answering.locator import AnswerSpan, Located
from app.answering.question import Question
from app.answering.quoting.quoter import CALLS, Quoter
from app.answering.quoting.selection import THRESHOLD
from app.db.session import Database
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.types import Context, Scope, Span
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
CONTEXT = Context((source(TEXT),), (), 10)


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


def located(probability: float) -> Located:
    start = TEXT.index("4 May")
    span = AnswerSpan(CONTEXT.sources[0], Span(start, start + 5), "4 May", probability)
    return Located((span,), threshold=0.4, tokens=7)


@pytest.mark.parametrize("call", sorted(CALLS))
def test_a_selection_is_metered_under_its_call(ledger: Ledger, call: CallNumber) -> None:
    selection = Quoter(embedder=HashingEmbedder(), ledger=ledger, calls={call}).select(
        QUESTION, CONTEXT, None, call=call
    )

    assert [quote.text for quote in selection.quotes] == ["The plant in Oslo closed on 4 May."]
    (row,) = ledger.usage("req_1")
    assert (row.event_id, row.operation, row.status) == (
        f"req_1:{int(call)}",
        Operation.EMBED_QUERY,
        UsageStatus.COMPLETED,
    )
    assert row.input_tokens == selection.tokens > 0


@pytest.mark.parametrize(("call", "threshold"), [(CallNumber.ANSWER, 1 - 0.6), (CallNumber.FIND_SENTENCES, THRESHOLD)])
def test_pointers_refuse_nothing_and_ignore_the_questions_threshold(
    ledger: Ledger, call: CallNumber, threshold: float
) -> None:
    question = replace(QUESTION, abstention_threshold=0.6)
    selection = Quoter(embedder=HashingEmbedder(), ledger=ledger, calls=CALLS).select(
        question, CONTEXT, None, call=call
    )

    assert selection.threshold == threshold
    assert not selection.as_pointers().decides


@pytest.mark.parametrize(("probability", "texts"), [(0.9, ["The plant in Oslo closed on 4 May."]), (0.1, [])])
def test_what_the_span_reader_found_is_quoted_without_another_call(
    ledger: Ledger, probability: float, texts: list[str]
) -> None:
    embedder = HashingEmbedder()
    selection = Quoter(embedder=embedder, ledger=ledger, calls=CALLS).select(
        QUESTION, CONTEXT, located(probability), call=CallNumber.ANSWER
    )

    assert [quote.text for quote in selection.quotes] == texts
    assert (embedder.embedded, ledger.usage("req_1")) == ([], ())


def test_without_sources_nothing_is_metered(ledger: Ledger) -> None:
    quoter = Quoter(embedder=HashingEmbedder(), ledger=ledger, calls=CALLS)

    assert quoter.select(QUESTION, Context((), (), 0), None, call=CallNumber.ANSWER).quotes == ()
    assert not ledger.usage("req_1")
