"""app.answering.retrieving.finder: what is searched, what is reranked, and that each model call is on the bill."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.session import Database
from app.errors import InvalidRequest
from app.types import Operation, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Hit, Scope, SearchMode
from tests.app.answering.metered import meter_of
from tests.databases import migrated_file, sqlite_database
from tests.retrieval.fakes import HashingEmbedder, chunk, hit

__all__ = ["migrated_file", "sqlite_database"]

QUESTION = Question(
    request_id="req_1",
    endpoint="search",
    principal=Principal("t", "u", "k", Role.READER),
    text="revenue rose",
    scope=Scope(tenant_id="t"),
    top_k=3,
)


class LastWordReranker:
    """Implements `Reranker`: a passage scores by the number it ends in; `read` keeps what it was given."""

    model = "last word"
    revision = "r7"

    def __init__(self, *, failing: bool = False) -> None:
        self.read: list[tuple[str, list[str]]] = []
        self._failing = failing

    def count_tokens(self, query: str, passages: Sequence[str]) -> int:
        return sum(len(query.split()) + len(passage.split()) for passage in passages)

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if self._failing:
            raise RuntimeError("the model broke")
        self.read.append((query, list(passages)))
        return [int(passage.split()[-1]) / 100 for passage in passages]


@pytest.fixture
def ledger(sqlite_database: Database) -> Ledger:
    return Ledger(sqlite_database, boot_id="boot")


class FixedSearch:
    """Finds the same six chunks in the same order whatever is asked, in scope or not."""

    def __init__(self) -> None:
        texts = [f"revenue rose {'and so on ' * number}{number}" for number in range(6)]
        self._hits = [hit(chunk(number, text, heading_path=("Report",))) for number, text in enumerate(texts)]

    def search(
        self, query: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        if mode is not SearchMode.LEXICAL:
            vector()
        return tuple(self._hits[: top_k if scope.document_ids is None else len(scope.document_ids)])


@pytest.fixture
def finder(ledger: Ledger) -> Callable[..., Finder]:
    """The search likes number 0 best and number 5 least, the reranker the other way round."""

    def build(reranker: LastWordReranker | None = None, *, candidates: int = 4) -> Finder:
        return Finder(
            search=cast(Search, FixedSearch()),
            vectors=QuestionVectors(HashingEmbedder()),
            reranker=reranker,
            rerank_candidates=candidates,
        )

    return build


@pytest.fixture
def meter(ledger: Ledger) -> Meter:
    return meter_of(QUESTION, ledger)


def found_keys(finder: Finder, meter: Meter, question: Question = QUESTION) -> list[int]:
    return [hit.chunk.key for hit in finder.find(question, meter).hits]


def test_without_a_reranker_the_searchs_order_stands_and_only_the_embedding_is_paid(
    finder: Callable[..., Finder], ledger: Ledger, meter: Meter
) -> None:
    found = finder().find(QUESTION, meter)

    assert [hit.chunk.key for hit in found.hits] == [0, 1, 2]
    assert all(hit.scores.rerank is None for hit in found.hits)
    assert found.rerank_ms == 0.0
    (row,) = ledger.usage("req_1")
    assert (row.operation, row.input_tokens, row.status) == (Operation.EMBED_QUERY, 4, UsageStatus.COMPLETED)


def test_a_search_that_fails_is_charged_what_the_embedder_read_its_prompt_included(
    ledger: Ledger, meter: Meter
) -> None:
    class BrokenSearch(FixedSearch):
        def search(
            self, query: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
        ) -> tuple[Hit, ...]:
            vector()
            raise RuntimeError("the index broke")

    embedder = HashingEmbedder(prompt_tokens=3)
    finder = Finder(search=cast(Search, BrokenSearch()), vectors=QuestionVectors(embedder))

    with pytest.raises(RuntimeError):
        finder.find(QUESTION, meter)

    (row,) = ledger.usage("req_1")
    assert (row.input_tokens, row.status) == (embedder.count_query(QUESTION.text), UsageStatus.COMPLETED)
    assert row.input_tokens == 3 + embedder.count_tokens(QUESTION.text)


def test_the_reranker_reads_more_than_is_asked_for_and_its_best_are_returned(
    finder: Callable[..., Finder], meter: Meter
) -> None:
    reranker = LastWordReranker()

    found = finder(reranker, candidates=4).find(QUESTION, meter)

    assert [hit.chunk.key for hit in found.hits] == [3, 2, 1]
    assert [hit.scores.rerank for hit in found.hits] == [0.03, 0.02, 0.01]
    assert found.rerank_ms > 0
    ((query, passages),) = reranker.read
    assert query == "revenue rose"
    assert [passage.partition("\n")[0] for passage in passages] == ["Report"] * 4


@pytest.mark.parametrize(("least", "kept"), [(0.04, [5, 4]), (0.06, []), (None, [5, 4, 3])])
def test_passages_that_score_too_little_after_reranking_are_left_out(
    finder: Callable[..., Finder], meter: Meter, least: float | None, kept: list[int]
) -> None:
    reranking = finder(LastWordReranker(), candidates=6)

    assert found_keys(reranking, meter, replace(QUESTION, min_score=least)) == kept


def test_hits_beyond_the_candidates_follow_in_the_searchs_order(finder: Callable[..., Finder], meter: Meter) -> None:
    everything = replace(QUESTION, top_k=6)

    assert found_keys(finder(LastWordReranker(), candidates=2), meter, everything) == [1, 0, 2, 3, 4, 5]


def test_what_the_reranker_reads_is_on_the_bill_to_the_token(
    finder: Callable[..., Finder], ledger: Ledger, meter: Meter
) -> None:
    reranker = LastWordReranker()

    finder(reranker).find(QUESTION, meter)

    ((query, passages),) = reranker.read
    rows = {row.operation: row for row in ledger.usage("req_1")}
    assert set(rows) == {Operation.EMBED_QUERY, Operation.RERANK}
    row = rows[Operation.RERANK]
    assert row.input_tokens == reranker.count_tokens(query, passages) > 0
    assert (row.status, row.count_quality, row.output_tokens) == (UsageStatus.COMPLETED, "exact", 0)
    assert (row.model, row.tokenizer_revision) == ("last word", "r7")
    assert [(call.purpose, call.prompt_tokens) for call in meter.calls] == [
        ("embed_query", 4),
        ("rerank", row.input_tokens),
    ]


def test_a_question_may_switch_reranking_off(finder: Callable[..., Finder], ledger: Ledger, meter: Meter) -> None:
    reranker = LastWordReranker()

    assert found_keys(finder(reranker), meter, replace(QUESTION, rerank=False)) == [0, 1, 2]
    assert reranker.read == []
    assert len(ledger.usage("req_1")) == 1


def test_a_question_that_insists_where_there_is_none_is_refused_before_anything_is_spent(
    finder: Callable[..., Finder], ledger: Ledger, meter: Meter
) -> None:
    with pytest.raises(InvalidRequest, match="no reranker") as refusal:
        finder().find(replace(QUESTION, rerank=True), meter)

    assert refusal.value.param == "rerank"
    assert ledger.usage("req_1") == ()


def test_a_lexical_search_is_reranked_and_pays_for_nothing_else(
    finder: Callable[..., Finder], ledger: Ledger, meter: Meter
) -> None:
    found = finder(LastWordReranker()).find(replace(QUESTION, mode=SearchMode.LEXICAL), meter)

    assert found.hits[0].scores.rerank is not None
    assert [row.operation for row in ledger.usage("req_1")] == [Operation.RERANK]


@pytest.mark.parametrize("document_ids", [(), ("doc_1",)])
def test_one_hit_or_none_has_no_order_to_pay_for(
    finder: Callable[..., Finder], ledger: Ledger, meter: Meter, document_ids: tuple[str, ...]
) -> None:
    reranker = LastWordReranker()
    narrow = replace(QUESTION, scope=Scope(tenant_id="t", document_ids=document_ids), top_k=1)

    finder(reranker, candidates=1).find(narrow, meter)

    assert reranker.read == []
    assert Operation.RERANK not in {row.operation for row in ledger.usage("req_1")}


def test_a_reranker_that_breaks_leaves_no_open_row(finder: Callable[..., Finder], ledger: Ledger, meter: Meter) -> None:
    with pytest.raises(RuntimeError):
        finder(LastWordReranker(failing=True)).find(QUESTION, meter)

    assert [row.status for row in ledger.usage("req_1")] == [UsageStatus.COMPLETED, UsageStatus.ERROR]
