"""app.evaluation.squad gives SQuAD's own verdicts, and sensible ones where there are no spaces."""

import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.squad import contains, contains_any, exact_match, f1, normalised_tokens, token_recall


def official_tokens(text: str) -> list[str]:
    """`normalize_answer` and `get_tokens` of SQuAD's evaluate-v2.0.py."""
    text = "".join(ch for ch in text.lower() if ch not in set(string.punctuation))
    return " ".join(re.sub(re.compile(r"\b(a|an|the)\b", re.UNICODE), " ", text).split()).split()


def official_f1(gold: str, predicted: str) -> float:
    """`compute_f1` of SQuAD's evaluate-v2.0.py."""
    gold_tokens, predicted_tokens = official_tokens(gold), official_tokens(predicted)
    shared = sum((Counter(gold_tokens) & Counter(predicted_tokens)).values())
    if len(gold_tokens) == 0 or len(predicted_tokens) == 0:
        return float(gold_tokens == predicted_tokens)
    if shared == 0:
        return 0
    precision, recall = shared / len(predicted_tokens), shared / len(gold_tokens)
    return (2 * precision * recall) / (precision + recall)


latin = st.text(alphabet=string.ascii_letters + string.digits + string.punctuation + " éßñ\n", max_size=40) | st.lists(
    st.sampled_from(["the", "a", "An", "ship", "ships.", "U.S.", "forty-two", "'"]), max_size=8
).map(" ".join)


@given(gold=latin, predicted=latin)
def test_in_spaced_scripts_tokens_f1_and_exact_match_are_squads_own(gold: str, predicted: str) -> None:
    assert normalised_tokens(gold) == official_tokens(gold)
    assert f1(predicted, [gold]) == pytest.approx(official_f1(gold, predicted))
    assert exact_match(predicted, [gold]) == float(official_tokens(gold) == official_tokens(predicted))


def test_exact_match_and_f1_equal_values_computed_by_hand() -> None:
    assert exact_match("The Eiffel Tower.", ["eiffel tower"]) == 1
    assert f1("in the Eiffel Tower", ["Eiffel Tower"]) == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert f1("Paris", ["London", "Paris France"]) == pytest.approx(2 / 3)
    assert f1("", ["London"]) == 0
    assert f1("London", []) == 0
    assert f1("the", ["a"]) == 1  # nothing is left of either


def test_an_answer_is_contained_as_whole_tokens_in_order() -> None:
    assert contains("It was founded in 1935, they say.", "1935")
    assert not contains("It was founded in 19350.", "1935")
    assert contains("He lives in the U.S. today", "US")
    assert not contains("Tower Eiffel", "Eiffel Tower")
    assert contains_any("forty ships", ["fifty", "Forty"])
    assert not contains_any("forty ships", [])


def test_an_answer_of_which_nothing_is_left_is_looked_for_as_written() -> None:
    assert contains("Vitamin A is one", "A")
    assert not contains("something else", "?")


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    assert normalised_tokens("東京、日本。") == ["東", "京", "日", "本"]
    assert contains("首都は東京です。", "東京")
    assert f1("東京都", ["東京"]) == pytest.approx(0.8)
    assert exact_match("กรุงเทพ", ["กรุงเทพ"]) == 1


def test_recall_counts_distinct_tokens_of_the_best_answer() -> None:
    assert token_recall("red green", ["red blue", "green"]) == 1
    assert token_recall("red", ["red red blue"]) == 0.5
    assert token_recall("red", ["the"]) == 0
