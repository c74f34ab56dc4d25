"""retrieval.compress keeps its budget, its offsets and its numbering."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.compress import compress
from retrieval.types import Hit, Scores
from tests.retrieval.compressing import count_words, shown
from tests.retrieval.fakes import chunk, hit, ranked
from tests.retrieval.promises import Counter, check, check_slices, found_in, reasons


def count_pairs(text: str) -> int:
    """Pairs of characters: cheap to join, since halves of a pair meet."""
    return (len(text) + 1) // 2


def count_nastily(text: str) -> int:
    """Neither additive nor monotone: a join may cost much more than its parts, or less."""
    return sum(ord(char) for char in text[::3]) % 23 + (7 if "…" in text else 0) + len(text) // 9


COUNTERS: list[Counter] = [count_words, len, count_pairs, count_nastily]


each_counter = pytest.mark.parametrize("count", COUNTERS, ids=[counter.__name__ for counter in COUNTERS])


prose = st.lists(
    st.sampled_from(
        ["Acme rose. ", "Nobody knew why; ", "see Fig. 2. ", "第一句。", "\n\n", "x" * 30, " ", "(it) ", "cats! "]
    ),
    max_size=14,
).map("".join)


@each_counter
@settings(deadline=None)
@given(
    found=found_in(prose), budget=st.integers(0, 90), query=st.sampled_from(["acme cats", "fig", "", "zebra", "第一"])
)
def test_every_promise_holds_for_any_hits_and_budget(
    count: Counter, found: tuple[list[Hit], dict[str, str]], budget: int, query: str
) -> None:
    hits, contents = found

    context = compress(hits, query=query, budget=budget, count_tokens=count)

    check(context, hits, budget=budget, count=count)
    check_slices(context, contents)


@each_counter
def test_everything_goes_in_whole_when_there_is_room(count: Counter) -> None:
    hits = ranked("Alpha rose. It fell.", "Beta.", "Gamma 第一句。第二句。")

    context = compress(hits, query="alpha", budget=10_000, count_tokens=count)

    check(context, hits, budget=10_000, count=count)
    assert sorted(shown(context)) == [one.chunk.text for one in hits]
    assert shown(context) == [hits[rank].chunk.text for rank in (0, 2, 1)]
    assert not any(source.compressed for source in context.sources)
    assert context.dropped == ()


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        compress([], query="", budget=-1, count_tokens=len)


def test_no_budget_is_an_empty_context_even_if_words_are_free() -> None:
    context = compress(ranked("a", "b"), query="a", budget=0, count_tokens=lambda text: 0)

    assert (context.sources, context.tokens) == ((), 0)
    assert set(reasons(context).values()) == {"budget"}


def test_of_a_chunk_too_long_the_sentences_about_the_question_stay_in_document_order() -> None:
    text = (
        "Acme was founded in 1990. Lunch was cold. Revenue rose in spring. Dogs barked. Revenue of Acme fell in winter."
    )
    hits = ranked(text, "Short.")

    context = compress(hits, query="What was the revenue of Acme?", budget=14, count_tokens=count_words)

    assert shown(context)[0] == "Acme was founded in 1990. … Revenue of Acme fell in winter."
    assert context.sources[0].compressed
    assert [text[span.start_char : span.end_char] for span in context.sources[0].spans] == [
        "Acme was founded in 1990.",
        "Revenue of Acme fell in winter.",
    ]


def test_neighbouring_sentences_are_joined_with_their_own_space() -> None:
    text = "Acme rose.\nAcme fell. Nothing at all happened on that very long day in the middle of the year."

    context = compress(ranked(text), query="acme", budget=7, count_tokens=count_words)

    assert shown(context) == ["Acme rose.\nAcme fell."]
    assert len(context.sources[0].spans) == 1


def test_a_hit_is_weighed_by_how_close_its_score_is_to_the_best() -> None:
    seen: dict[int, float] = {}

    def worth(*, rank: int, closeness: float, share: float, best_share: float, tokens: int) -> float:
        seen[rank] = closeness
        return share + 0.1

    scored = [
        replace(hit(chunk(key, f"Acme paid {key} cents. Lunch was cold.", document_id=f"d{key}")), scores=Scores(fused))
        for key, fused in ((1, 0.8), (2, 0.4))
    ]
    compress(scored, query="Acme", budget=12, count_tokens=count_words, worth=worth)

    assert seen == {0: 1.0, 1: 0.5}


def test_a_first_source_that_shares_no_word_with_the_query_gives_its_first_sentences() -> None:
    text = "One is first. Two is second. Three is third. Four is fourth."

    context = compress(ranked(text), query="zebra", budget=8, count_tokens=count_words)

    assert shown(context) == ["One is first. Two is second."]


def test_a_later_hit_needs_a_sentence_about_the_question() -> None:
    hits = ranked(
        "Acme rose.", "Dogs bark all day long. " * 9, "Cats sleep. " + "The cats of Acme eat lots of fish. " * 4
    )

    context = compress(hits, query="acme", budget=16, count_tokens=count_words)

    assert reasons(context) == {"chunk_2": "budget"}
    assert shown(context) == ["Acme rose.", "Cats sleep. The cats of Acme eat lots of fish."]


def test_a_tiny_budget_cuts_the_best_sentence_at_a_word() -> None:
    hits = ranked("The revenue of Acme rose by twelve percent in the second quarter of the year.", "Cats.")

    context = compress(hits, query="revenue", budget=6, count_tokens=count_words)

    assert shown(context) == ["The revenue of Acme"]
    assert context.sources[0].compressed


def test_a_tiny_budget_cuts_text_without_spaces_after_a_character() -> None:
    context = compress(
        ranked("这是一个没有空格的非常长的句子"), query="句子", budget=len("[1] 1.txt\n") + 4, count_tokens=len
    )

    assert shown(context) == ["这是一"]


def test_no_sentence_is_cut_while_a_lesser_match_of_the_first_source_fits() -> None:
    hits = ranked("The revenue of Acme rose by twelve percent in the second quarter. Acme fell.")

    context = compress(hits, query="acme revenue", budget=5, count_tokens=count_words)

    assert shown(context) == ["Acme fell."]


def test_the_best_match_is_cut_rather_than_replaced_by_a_sentence_about_nothing_asked() -> None:
    hits = ranked(
        "Short one. The revenue of Acme rose by twelve percent in the second quarter. Acme fell in the quarter."
    )

    context = compress(hits, query="acme revenue", budget=5, count_tokens=count_words)

    assert shown(context) == ["The revenue of"]


def test_when_the_end_of_a_body_costs_too_much_a_cheaper_match_goes_alone() -> None:
    def count(text: str) -> int:
        return len(text.split()) + (3 if "revenue" in text and text.endswith("\n") else 0)

    hits = ranked("The revenue of Acme rose. " + "Dogs bark. " * 9 + "Acme sank in the deep.")

    context = compress(hits, query="acme revenue", budget=7, count_tokens=count)

    assert shown(context) == ["Acme sank in the deep."]


def test_a_join_that_costs_more_than_its_parts_gives_up_the_least_worthy() -> None:
    def count(text: str) -> int:
        return len(text.split()) + 6 * text.count("…")

    hits = ranked("Acme rose high. Dogs bark at every tree they see. Acme fell.")

    context = compress(hits, query="acme rose", budget=9, count_tokens=count)

    assert shown(context) == ["Acme rose high."]
    check(context, hits, budget=9, count=count)


def test_a_long_text_without_a_full_stop_is_kept_in_parts() -> None:
    text = " ".join(f"word{number}" for number in range(150)) + " the revenue of acme was 12 " + "and so on " * 60

    context = compress(ranked(text), query="revenue of acme", budget=140, count_tokens=count_words)

    assert "revenue of acme was 12" in shown(context)[0]
    assert context.sources[0].compressed


@each_counter
@settings(deadline=None)
@given(
    texts=st.lists(st.text(max_size=60) | st.text(alphabet="字。ก ؟\u200b\u0301a", max_size=60), max_size=5),
    budget=st.integers(0, 120),
    query=st.text(max_size=12),
)
def test_every_promise_holds_for_any_script(count: Counter, texts: list[str], budget: int, query: str) -> None:
    hits = ranked(*texts)

    check(compress(hits, query=query, budget=budget, count_tokens=count), hits, budget=budget, count=count)


@pytest.mark.parametrize("text", ["x" * 10_000, "字" * 10_000, "a b " * 2_500, "\u200b" * 10_000, "a," * 5_000])
def test_one_endless_sentence_gives_what_fits(text: str) -> None:
    hits = ranked(text, "Cats sleep.")

    context = compress(hits, query="b 字字 x", budget=500, count_tokens=count_pairs)

    check(context, hits, budget=500, count=count_pairs)
    assert context.tokens > 0
