"""retrieval.search orders the hits that were read by their score and leaves the others behind them."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from retrieval.search import passage, reranked
from tests.retrieval.fakes import chunk, ranked

A, B, C, D = ranked("a", "b", "c", "d")


def test_the_hits_that_were_read_come_first_by_their_score_and_the_others_keep_their_order() -> None:
    order = reranked([A, B, C, D], [0.1, 0.9])

    assert [hit.chunk.text for hit in order] == ["b", "a", "c", "d"]
    assert [hit.scores.rerank for hit in order] == [0.9, 0.1, None, None]


def test_equal_scores_change_nothing_but_the_scores() -> None:
    assert [hit.chunk for hit in reranked([A, B, C], [0.5, 0.5, 0.5])] == [A.chunk, B.chunk, C.chunk]


def test_the_scores_of_the_search_stay() -> None:
    (first, _) = reranked([A, B], [0.1, 0.9])

    assert first.scores.fused == B.scores.fused


@given(scores=st.lists(st.floats(0, 1), max_size=6), others=st.integers(0, 3))
def test_every_hit_stays_once_and_only_those_that_were_read_move(scores: list[float], others: int) -> None:
    hits = ranked(*(f"text {rank}" for rank in range(len(scores) + others)))

    order = reranked(hits, scores)

    assert sorted(hit.chunk.key for hit in order) == [hit.chunk.key for hit in hits]
    read = [hit.scores.rerank for hit in order[: len(scores)] if hit.scores.rerank is not None]
    assert read == sorted(scores, reverse=True)
    assert list(order[len(scores) :]) == hits[len(scores) :]


def test_a_passage_is_read_under_its_headings() -> None:
    assert passage(chunk(text="It rose.", heading_path=("Report", "Revenue"))) == "Report > Revenue\nIt rose."
    assert passage(chunk(text="It rose.")) == "It rose."


def test_rows_are_read_under_their_table_header() -> None:
    row = replace(chunk(text="Oslo | 700,000", heading_path=("Cities",)), table_header="city | people")

    assert passage(row) == "Cities\ncity | people\nOslo | 700,000"
