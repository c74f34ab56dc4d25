"""app.answering.verification.metered_models: each model call of a verification is on the ledger."""

from collections.abc import Sequence

import pytest

from app.answering.metering.token_usage import Purpose
from app.answering.question import Question
from app.answering.verification.metered_models import Verification
from app.db.session import Database
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.types import Judgement, Scope
from tests.app.answering.metered import meter_of
from tests.app.answering.sources import REPORT, source
from tests.databases import migrated_file, sqlite_database
from tests.retrieval.fakes import HashingEmbedder

__all__ = ["migrated_file", "sqlite_database"]

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("t", "u", "k", Role.READER),
    text="What did the board propose?",
    scope=Scope(tenant_id="t"),
)
PARAPHRASES = ("A dividend was suggested by the board.", "A payment of money was proposed by the whole board.")


class Agrees:
    """Implements `EntailmentJudge`."""

    model = "agrees"
    revision = "r1"

    def __init__(self, *, failing: bool = False) -> None:
        self._failing = failing

    def count_tokens(self, claim: str, passages: Sequence[str]) -> int:
        return 10 * len(passages)

    def judge(self, claim: str, passages: Sequence[str]) -> list[Judgement]:
        if self._failing:
            raise RuntimeError("the model broke")
        return [Judgement(1.0, 0.0) for _ in passages]


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


@pytest.mark.parametrize("judge", [None, Agrees()], ids=["embedder", "judge"])
def test_the_reported_calls_are_the_ledger_rows(ledger: Ledger, judge: Agrees | None) -> None:
    verification = Verification(embedder=HashingEmbedder(), entailment=judge)
    meter = meter_of(QUESTION, ledger)
    verifier = verification.verifier(QUESTION, [source(REPORT)], meter=meter)
    for claim in PARAPHRASES:
        verifier.best(claim)

    rows = ledger.usage("req_1")
    assert rows
    assert {(row.operation, row.status) for row in rows} == {(Operation.JUDGE, UsageStatus.COMPLETED)}
    assert {row.model for row in rows} == {judge.model if judge else HashingEmbedder().info.model}
    assert [(call.model, call.prompt_tokens) for call in meter.calls] == [(row.model, row.input_tokens) for row in rows]
    assert all(call.purpose is Purpose.VERIFY and call.prompt_tokens for call in meter.calls)


def test_a_claim_decided_by_words_alone_makes_no_metered_call(ledger: Ledger) -> None:
    meter = meter_of(QUESTION, ledger)
    verifier = Verification(embedder=HashingEmbedder()).verifier(QUESTION, [source(REPORT)], meter=meter)
    verifier.best("The board of Contoso proposed a dividend of 31 cents.")

    assert ledger.usage("req_1") == ()
    assert meter.calls == ()


def test_a_call_that_fails_is_settled_as_an_error(ledger: Ledger) -> None:
    verification = Verification(embedder=HashingEmbedder(), entailment=Agrees(failing=True))
    meter = meter_of(QUESTION, ledger)
    verifier = verification.verifier(QUESTION, [source(REPORT)], meter=meter)

    with pytest.raises(RuntimeError):
        verifier.best(PARAPHRASES[0])
    (row,) = ledger.usage("req_1")
    assert row.status == UsageStatus.ERROR
    assert [call.prompt_tokens for call in meter.calls] == [row.input_tokens], "it is on the bill all the same"
