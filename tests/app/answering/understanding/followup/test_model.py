"""A rewritten question counts only when it keeps what was asked and invents nothing."""

import pytest

from app.answering.question import Message, Question
from app.answering.understanding.followup.model import Rewriter, is_rewriting
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.types import FinishReason
from retrieval.types import Scope
from tests.app.answering.generating.test_summaries import SummarisingEngine
from tests.app.answering.metered import meter_of
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.databases import migrated_file, sqlite_database

__all__ = ["migrated_file", "sqlite_database"]

ASKED = "And what did Contoso pay for it in 2019?"
SAID = ["Did Northwind sell the Oslo plant?", "Yes, to Contoso [1]."]
GOOD = "What did Contoso pay Northwind for the Oslo plant in 2019?"
QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.MEMBER),
    text="What did Contoso pay for the Oslo plant in 2019?",
    asked=ASKED,
    scope=Scope(tenant_id="t"),
    history=(Message("user", SAID[0]), Message("assistant", SAID[1])),
)


@pytest.mark.parametrize("text", [GOOD, ASKED])
def test_a_rewriting_that_keeps_names_and_numbers_is_accepted(text: str) -> None:
    assert is_rewriting(text, asked=ASKED, said=SAID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Contoso paid 3 million in 2019.",
        "What did Northwind pay for the Oslo plant in 2019?",
        "What did Contoso pay for the Oslo plant?",
        "What did Contoso pay for the Oslo plant in 2019 and 2020?",
        "What did Contoso pay Fabrikam for it in 2019?",
        f"{'very ' * 90}{GOOD}",
    ],
)
def test_a_rewriting_that_loses_or_invents_something_is_rejected(text: str) -> None:
    assert not is_rewriting(text, asked=ASKED, said=SAID)


REWRITER = Rewriter(tokenizer=CharacterTokenizer())


@pytest.fixture
def ledger(sqlite_database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


def test_the_call_is_written_down_with_the_history_it_shows(ledger: Ledger) -> None:
    engine = SummarisingEngine(says=f' "{GOOD}"\n')
    meter = meter_of(QUESTION, ledger, engine=engine)
    result = REWRITER.rewritten(QUESTION, meter=meter)

    assert (result.text, result.as_asked) == (GOOD, ASKED)
    (row,), (request,) = ledger.usage("req_1"), engine.requests
    assert (row.operation, row.status, row.event_id) == (Operation.REWRITE, UsageStatus.COMPLETED, "req_1:0")
    assert row.components.total == row.input_tokens == len(request.prompt)
    assert row.components.question == len(ASKED)
    assert row.components.history == sum(len(text) + 1 for text in SAID)
    assert sum(call.total_tokens for call in meter.calls) == row.input_tokens + row.output_tokens


@pytest.mark.parametrize(
    ("engine", "status"),
    [
        (SummarisingEngine(takes=0), UsageStatus.SERVER_ABORT),
        (SummarisingEngine(says=GOOD, reason=FinishReason.ERROR), UsageStatus.ERROR),
        (SummarisingEngine(says=GOOD, reason=FinishReason.LENGTH), UsageStatus.COMPLETED),
        (SummarisingEngine(says="Nobody knows."), UsageStatus.COMPLETED),
    ],
    ids=["refused", "failed", "cut short", "no question"],
)
def test_what_fails_leaves_the_rules_and_is_paid_for(
    ledger: Ledger, engine: SummarisingEngine, status: UsageStatus
) -> None:
    meter = meter_of(QUESTION, ledger, engine=engine)
    result = REWRITER.rewritten(QUESTION, meter=meter)

    (row,) = ledger.usage("req_1")
    assert (result, row.status) == (QUESTION, status)
    assert sum(call.total_tokens for call in meter.calls) == row.input_tokens + row.output_tokens


def test_a_reader_who_left_and_a_question_without_history_cost_nothing(ledger: Ledger) -> None:
    engine = SummarisingEngine(says=GOOD)
    meter = meter_of(QUESTION, ledger, engine=engine)
    meter.close()
    alone = Question(
        request_id="req_2", endpoint="ask", principal=QUESTION.principal, text="Why?", scope=QUESTION.scope
    )

    assert REWRITER.rewritten(QUESTION, meter=meter) is QUESTION
    assert REWRITER.rewritten(alone, meter=meter_of(alone, ledger, engine=engine)) is alone
    assert (engine.requests, ledger.usage("req_1")) == ([], ())
