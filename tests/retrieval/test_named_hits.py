"""retrieval.named_hits: passages of named documents among those of all others."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.name_index import NamedDocument
from retrieval.named_hits import NAME_WEIGHT, ranked_by_name
from retrieval.types import Hit, Scores
from tests.retrieval.fakes import chunk

ACME = NamedDocument("acme", 1.0, frozenset({"acme"}))


def hit(key: int, document_id: str, *, fused: float, dense: float | None = 0.5) -> Hit:
    return Hit(chunk(key, "text", document_id=document_id), Scores(fused=fused, dense=dense))


def test_passages_of_a_named_document_come_before_as_good_ones_of_others() -> None:
    hits = (hit(1, "other", fused=0.9), hit(2, "acme", fused=0.8), hit(3, "other", fused=0.7))
    inside = (hit(4, "acme", fused=1.0), hit(5, "acme", fused=0.9))

    found = ranked_by_name(hits, inside, [ACME], top_k=3)

    assert [one.chunk.key for one in found] == [4, 5, 1]
    assert [round(one.scores.fused, 3) for one in found] == [1.0, 0.935, round(1 - NAME_WEIGHT, 3)]


def test_a_document_that_is_hardly_about_the_question_stays_behind_what_is() -> None:
    barely = NamedDocument("acme", 0.5, frozenset({"acme"}))
    hits = (hit(1, "other", fused=1.0, dense=0.7), hit(2, "other", fused=0.9, dense=0.6))
    inside = (hit(3, "acme", fused=1.0, dense=0.0),)

    assert [one.chunk.key for one in ranked_by_name(hits, inside, [barely], top_k=3)] == [1, 2, 3]


def test_scores_of_any_scale_are_compared_by_the_best_of_their_search() -> None:
    hits = (hit(1, "other", fused=0.03), hit(2, "other", fused=0.01))
    inside = (hit(3, "acme", fused=0.02), hit(4, "acme", fused=0.0004))

    assert [one.chunk.key for one in ranked_by_name(hits, inside, [ACME], top_k=4)] == [3, 1, 4, 2]


shares = st.dictionaries(st.sampled_from("abc"), st.floats(0.1, 1), min_size=1)
drawn = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1), st.none() | st.floats(-1, 1)), max_size=6)


@given(found=drawn, within=drawn, shares=shares, top_k=st.integers(1, 8))
def test_every_passage_is_there_once_best_first_with_a_score_of_at_most_one(
    found: list[tuple[str, float, float | None]],
    within: list[tuple[str, float, float | None]],
    shares: dict[str, float],
    top_k: int,
) -> None:
    hits = [hit(at, name, fused=fused, dense=dense) for at, (name, fused, dense) in enumerate(found)]
    inside = [
        hit(100 + at, name, fused=fused, dense=dense)
        for at, (name, fused, dense) in enumerate(within)
        if name in shares
    ]
    named = [NamedDocument(name, share, frozenset({name})) for name, share in shares.items()]

    ranked = ranked_by_name(hits, inside, named, top_k=top_k)

    keys = [one.chunk.key for one in ranked]
    expected = {one.chunk.key for one in inside} | {
        one.chunk.key for one in hits if one.chunk.document_id not in shares
    }
    assert len(keys) == len(set(keys)) == min(top_k, len(expected))
    assert set(keys) <= expected
    scores = [one.scores.fused for one in ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 + 1e-9 for score in scores)
