"""retrieval.words and retrieval.relevance compare texts by their content words."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.relevance import odds, overlap, term_weights
from retrieval.words import terms, word_spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The revenues of 2024", {"revenue", "2024"}),
        ("companies, studies; buses glass status", {"company", "study", "buse", "glass", "status"}),
        ("Who was it?", {"who", "was", "it"}),
        ("Should she ask us about her visa?", {"ask", "visa"}),
        ("She?", {"she"}),
        ("", set()),
        ("Straße STRASSE", {"strasse"}),
        ("人工智能", {"人工", "工智", "智能"}),
        ("猫", {"猫"}),
        ("GPU加速", {"gpu", "加速"}),
        ("한국어 문장", {"한국어", "문장"}),
        ("snake_case", {"snake", "case"}),
    ],
)
def test_terms_are_content_words_without_plurals_and_pairs_of_characters(text: str, expected: set[str]) -> None:
    assert terms(text) == expected


@given(text=st.text(max_size=60))
def test_words_cover_every_character_but_spaces(text: str) -> None:
    spans = word_spans(text)

    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_every_chinese_character_is_a_word_to_cut_after() -> None:
    assert [("GPU加速 ok"[a:b]) for a, b in word_spans("GPU加速 ok")] == ["GPU", "加", "速", "ok"]


def test_a_rare_word_weighs_more_than_one_that_every_text_has() -> None:
    weights = term_weights("acme revenue", [{"acme", "revenue", "rose"}, {"acme", "fell"}, {"acme", "hired"}])

    assert weights["revenue"] > weights["acme"] > 0
    assert overlap(weights, terms("Revenues!")) == weights["revenue"]
    assert overlap(weights, terms("acme, acme and revenue")) == pytest.approx(weights["acme"] + weights["revenue"])
    assert overlap(weights, terms("nothing")) == 0


def test_without_texts_every_term_has_a_weight() -> None:
    assert term_weights("acme", [])["acme"] > 0


def test_odds_rise_with_rank_overlap_and_length_and_stay_odds() -> None:
    fair = odds(rank=1, closeness=0.8, share=0.3, best_share=0.5, tokens=20)

    assert 0 < odds(rank=5, closeness=0.8, share=0.3, best_share=0.5, tokens=20) < fair
    assert 0 < odds(rank=1, closeness=0.5, share=0.3, best_share=0.5, tokens=20) < fair
    assert fair < odds(rank=0, closeness=0.8, share=0.3, best_share=0.5, tokens=20) < 1
    assert fair < odds(rank=1, closeness=0.8, share=0.5, best_share=0.5, tokens=20)
    assert fair < odds(rank=1, closeness=0.8, share=0.3, best_share=0.3, tokens=20)
    assert fair < odds(rank=1, closeness=0.8, share=0.3, best_share=0.5, tokens=40)
