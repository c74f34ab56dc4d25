"""app.answering.retrieving.question_vectors: a question is embedded once for an answer, and billed where it is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.answering.question import Question
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.session import Database
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Vectors
from retrieval.types import Scope
from tests.app.answering.metered import meter_of
from tests.databases import migrated_file, sqlite_database
from tests.retrieval.fakes import HashingEmbedder

__all__ = ["migrated_file", "sqlite_database"]

QUESTION = Question(
    request_id="req_1",
    endpoint="ask",
    principal=Principal("acme", "u", "k", Role.READER),
    text="Who came?",
    scope=Scope(tenant_id="acme"),
)


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


def test_a_question_is_embedded_when_its_vector_is_needed_once_and_billed(ledger: Ledger) -> None:
    embedder = HashingEmbedder(prompt_tokens=3)
    meter = meter_of(QUESTION, ledger)
    vector = QuestionVectors(embedder).of(QUESTION, meter)
    assert (embedder.embedded, meter.calls) == ([], ())

    np.testing.assert_array_equal(vector(), vector())
    (row,), (call,) = ledger.usage("req_1"), meter.calls
    assert embedder.embedded == [QUESTION.text]
    assert (row.operation, row.status, row.event_id) == (Operation.EMBED_QUERY, UsageStatus.COMPLETED, "req_1:1")
    assert row.input_tokens == call.prompt_tokens == embedder.count_query(QUESTION.text)


def test_whoever_asks_it_again_pays_nothing(ledger: Ledger) -> None:
    vectors = QuestionVectors(embedder := HashingEmbedder())
    first, again = QUESTION, replace(QUESTION, request_id="req_2")
    for question in (first, again):
        vectors.of(question, meter_of(question, ledger))()

    assert embedder.embedded == [QUESTION.text]
    assert ledger.usage("req_2") == ()


def test_e5_a_question_of_another_tenant_is_embedded_though_it_is_cached_for_its_own(ledger: Ledger) -> None:
    """Neither the waiting time nor the bill tells that somebody else asked it."""
    vectors = QuestionVectors(embedder := HashingEmbedder())
    rival = replace(QUESTION, request_id="req_2", principal=Principal("rival", "u", "k", Role.READER))
    for question in (QUESTION, rival):
        vectors.of(question, meter_of(question, ledger))()

    assert embedder.embedded == [QUESTION.text] * 2
    assert len(ledger.usage("req_2")) == 1


def test_a_vector_that_the_cache_has_dropped_is_still_the_answers(ledger: Ledger) -> None:
    vectors = QuestionVectors(embedder := HashingEmbedder(), most=1)
    vector = vectors.of(QUESTION, meter_of(QUESTION, ledger))
    vector()
    other = replace(QUESTION, request_id="req_2", text="Who left?")
    vectors.of(other, meter_of(other, ledger))()
    vector()

    assert embedder.embedded == ["Who came?", "Who left?"]


def test_a_model_that_fails_is_billed_as_an_error_and_nothing_is_cached(ledger: Ledger) -> None:
    class Breaking(HashingEmbedder):
        def embed_query(self, text: str) -> Vectors:
            raise RuntimeError("the model broke")

    vectors = QuestionVectors(Breaking())
    for number in (1, 2):
        question = replace(QUESTION, request_id=f"req_{number}")
        with pytest.raises(RuntimeError):
            vectors.of(question, meter_of(question, ledger))()
        assert [row.status for row in ledger.usage(question.request_id)] == [UsageStatus.ERROR]


def asked(vectors: QuestionVectors, text: str) -> Vectors:
    question = replace(QUESTION, text=text)
    return vectors.of(question, meter_of(question))()


def test_the_question_unused_for_longest_is_dropped_first() -> None:
    vectors = QuestionVectors(embedder := HashingEmbedder(), most=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        asked(vectors, text)

    assert embedder.embedded == ["a", "b", "c", "b"]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(st.text("aB ", min_size=1, max_size=3), max_size=30), most=st.integers(1, 4))
def test_every_vector_is_the_embedders_own(texts: list[str], most: int) -> None:
    vectors = QuestionVectors(HashingEmbedder(), most=most)
    for text in texts:
        np.testing.assert_array_equal(asked(vectors, text), HashingEmbedder().embed_query(text))


def test_what_is_handed_out_cannot_be_changed() -> None:
    vector = asked(QuestionVectors(HashingEmbedder()), "who?")

    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1
