"""app.answering.generating.overflow: what does not fit the budget, and the summaries that replace it."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.generating.overflow import LeftOut, left_out, with_summaries
from retrieval.compress import compress, edges_first
from retrieval.types import Context, Hit
from tests.retrieval.fakes import chunk, hit, ranked

WORDS = ["revenue", "rose", "fell", "costs", "ships", "Oslo", "plant", "12", "3.5", "売上高は増加した。", "Zoë"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(lambda words: " ".join(words) + ".")
texts = st.lists(st.lists(sentences, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=5)


def count(text: str) -> int:
    return -(-len(text) // 3)


def neighbours(*texts: str) -> list[Hit]:
    """Hits for chunks of one document that follow each other, best first."""
    found, at = [], 0
    for rank, text in enumerate(texts, start=1):
        found.append(hit(chunk(rank, text, start_char=at), rank=rank))
        at += len(text)
    return found


def shown(hits: Sequence[Hit], budget: int) -> Context:
    return compress(hits, query="How did revenue develop?", budget=budget, count_tokens=count)


def rest(hits: Sequence[Hit], context: Context, budget: int, *, most_tokens: int = 10_000) -> list[LeftOut]:
    return left_out(hits, context, budget=budget, most_tokens=most_tokens, count_tokens=count)


@pytest.mark.parametrize("found", [ranked, neighbours])
@settings(max_examples=40)
@given(
    texts=texts,
    small=st.integers(0, 80),
    more=st.integers(0, 80),
    written=st.lists(st.text(max_size=120), max_size=5),
)
def test_the_budget_holds_whatever_is_written_and_every_hit_is_accounted_for_once(found, texts, small, more, written):
    hits = found(*texts)
    context = shown(hits, small)
    summaries = list(zip(rest(hits, context, small), written, strict=False))

    fuller, summarised = with_summaries(
        hits, context, summaries, budget=small + more, count_tokens=count, order=edges_first
    )

    assert fuller.tokens == sum(count(source.header) + count(source.body) for source in fuller.sources)
    assert fuller.tokens <= small + more
    assert [source.number for source in fuller.sources] == list(range(1, len(fuller.sources) + 1))
    presented = [source.hit.chunk.id for source in fuller.sources]
    assert sorted([*presented, *(dropped.chunk_id for dropped in fuller.dropped)]) == sorted(
        hit.chunk.id for hit in hits
    )
    assert set(summarised) <= set(presented)
    assert fuller.retrieved_tokens == context.retrieved_tokens
    if not summarised:
        assert fuller == context


@pytest.mark.parametrize("found", [ranked, neighbours])
@settings(max_examples=40)
@given(texts=texts, budget=st.integers(0, 80), most_tokens=st.integers(0, 60))
def test_what_is_left_out_slices_out_of_the_original_and_is_shown_nowhere(found, texts, budget, most_tokens):
    hits = found(*texts)
    context = shown(hits, budget)

    for item in rest(hits, context, budget, most_tokens=most_tokens):
        start = item.passage.start_char
        assert item.text == " … ".join(
            item.passage.text[span.start_char - start : span.end_char - start] for span in item.spans
        )
        kept = item.source.spans if item.source is not None else ()
        assert all(
            span.end_char <= other.start_char or other.end_char <= span.start_char
            for span in item.spans
            for other in kept
        )
        assert sum(count(piece) for piece in item.text.split(" … ")) <= most_tokens + len(item.spans)


def test_hits_that_fit_the_budget_leave_no_rest():
    hits = ranked("Revenue rose.", "Costs fell.")

    assert rest(hits, shown(hits, 1000), 1000) == []


def test_dropped_passages_come_before_the_rest_of_those_that_are_shown():
    hits = ranked("Revenue rose by 12 percent. The weather was fine in Oslo.", "Ships sail. The plant is closed.")
    context = shown(hits, 15)
    assert [dropped.reason for dropped in context.dropped] == ["budget"]

    dropped, remainder = rest(hits, context, 15)

    assert (dropped.source, dropped.text) == (None, "Ships sail. The plant is closed.")
    assert remainder.source is not None
    assert remainder.text == "The weather was fine in Oslo."


def test_a_summary_of_a_dropped_passage_is_a_source_that_still_holds_the_original():
    hits = ranked("Revenue rose by 12 percent. The weather was fine in Oslo.", "Ships sail. The plant is closed.")
    context = shown(hits, 15)
    item = rest(hits, context, 15)[0]

    fuller, summarised = with_summaries(
        hits, context, [(item, "Plant closed.")], budget=40, count_tokens=count, order=edges_first
    )

    assert summarised == ("chunk_2",)
    source = fuller.sources[1]
    assert source.header + source.body == "[2] 2.txt\nPlant closed.\n"
    assert [hits[1].chunk.text[span.start_char : span.end_char] for span in source.spans] == [hits[1].chunk.text]
    assert source.compressed
    assert fuller.dropped == ()


def test_a_summary_of_the_rest_follows_what_its_source_shows_and_makes_it_whole():
    hits = ranked("Revenue rose by 12 percent. The weather was fine in Oslo.", "Ships sail. The plant is closed.")
    context = shown(hits, 15)
    item = rest(hits, context, 15)[1]

    fuller, summarised = with_summaries(
        hits, context, [(item, "Fine weather.")], budget=40, count_tokens=count, order=edges_first
    )

    (source,) = fuller.sources
    assert source.body == "Revenue rose by 12 percent. … Fine weather.\n"
    assert [hits[0].chunk.text[span.start_char : span.end_char] for span in source.spans] == [hits[0].chunk.text]
    assert summarised == ("chunk_1",)
    assert fuller.dropped == context.dropped


def test_the_other_hits_of_a_summarised_passage_are_merged_into_it():
    hits = [
        *ranked("Revenue rose by 12 percent."),
        *(
            hit(chunk(key, text, document_id="doc_2", start_char=at), rank=key)
            for key, text, at in ((2, "Ships sail. ", 0), (3, "Sun.", 12))
        ),
    ]
    context = shown(hits, 13)
    assert [dropped.reason for dropped in context.dropped] == ["budget", "budget"]

    fuller, _ = with_summaries(
        hits, context, [(rest(hits, context, 13)[0], "Sun, ships.")], budget=40, count_tokens=count, order=edges_first
    )

    assert [(dropped.chunk_id, dropped.reason) for dropped in fuller.dropped] == [("chunk_3", "merged")]
    assert [found.id for found in fuller.sources[1].chunks] == ["chunk_2", "chunk_3"]


def test_summaries_that_do_not_fit_are_given_up_from_the_last():
    hits = ranked("Revenue rose by 12 percent.", "Ships sail far away.", "The plant is closed.")
    context = shown(hits, 13)
    items = rest(hits, context, 13)

    fuller, summarised = with_summaries(
        hits,
        context,
        [(items[0], "Ships sail."), (items[1], "closed " * 20)],
        budget=30,
        count_tokens=count,
        order=edges_first,
    )

    assert summarised == ("chunk_2",)
    assert [dropped.chunk_id for dropped in fuller.dropped] == ["chunk_3"]
