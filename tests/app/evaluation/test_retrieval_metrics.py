"""app.evaluation.retrieval_metrics against values computed by hand."""

from math import log2

import pytest

from app.evaluation.retrieval_metrics import finds_span, ranked_documents, ranking_scores
from app.evaluation.types import GoldSpan
from retrieval.types import Hit
from tests.retrieval.fakes import chunk, hit, ranked


def test_ndcg_recall_and_mrr_equal_values_computed_by_hand() -> None:
    scores = ranking_scores({"q": {"a": 1, "b": 1, "z": 0}}, {"q": ["x", "a", "z", "y", "w", "v", "b"]})

    ideal = 1 + 1 / log2(3)
    assert scores["ndcg@10"]["q"] == pytest.approx((1 / log2(3) + 1 / log2(8)) / ideal)
    assert (scores["recall@5"]["q"], scores["recall@10"]["q"], scores["recall@20"]["q"]) == (0.5, 1, 1)
    assert scores["mrr"]["q"] == 0.5


def test_ndcg_uses_the_relevance_grade_as_its_gain() -> None:
    scores = ranking_scores({"q": {"a": 3, "b": 1}}, {"q": ["b", "a"]})

    assert scores["ndcg@10"]["q"] == pytest.approx((1 + 3 / log2(3)) / (3 + 1 / log2(3)))


def test_a_question_without_any_hit_scores_nothing_instead_of_being_left_out() -> None:
    scores = ranking_scores({"q": {"a": 1}, "r": {"a": 1}}, {"q": [], "r": ["a"]})

    assert all(scores[name] == {"q": 0, "r": 1} for name in scores)
    assert ranking_scores({"q": {"a": 1}}, {"q": []})["mrr"] == {"q": 0}


def test_a_ranking_is_scored_in_its_given_order_not_by_document_name() -> None:
    names = [f"d{number}" for number in range(30)]

    for order in (names, names[::-1]):
        assert ranking_scores({"q": {order[4]: 1}}, {"q": order})["mrr"]["q"] == pytest.approx(1 / 5)


def found(document: str, text: str, start: int) -> Hit:
    from dataclasses import replace

    return hit(replace(chunk(1, text, start_char=start), external_id=document))


def test_a_document_stands_where_its_best_chunk_does() -> None:
    hits = [found("b", "x", 0), found("a", "x", 0), found("b", "y", 1), found("c", "z", 0)]

    assert ranked_documents(hits) == ["b", "a", "c"]
    assert ranked_documents(ranked("no external id")) == []


def test_a_gold_span_counts_when_one_chunk_holds_it_whole() -> None:
    gold = GoldSpan("d", 8, 14, "second")

    assert finds_span([found("d", "a first second", 0)], [gold]) == 1
    assert finds_span([found("d", "a first sec", 0), found("d", "ond", 11)], [gold]) == 0
    assert finds_span([found("e", "a first second", 0)], [gold]) == 0
