"""retrieval.mentions raises passages whose heading is mentioned by better passages."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.mentions import CANDIDATES, SOURCES, WEIGHT, lift_mentioned


def _texts(*passages: tuple[str, str]) -> dict[int, tuple[str, str]]:
    """Passages as (heading, text), with keys from 1."""
    return dict(enumerate(passages, start=1))


def _ranking(texts: Mapping[int, tuple[str, str]], *, step: float = 0.1) -> list[tuple[int, float]]:
    return [(key, 1.0 - step * rank) for rank, key in enumerate(texts)]


def _order(passages: dict[int, tuple[str, str]], *, step: float = 0.1) -> list[int]:
    return [key for key, _ in lift_mentioned(_ranking(passages, step=step), passages)]


def test_the_passage_the_best_one_names_moves_up() -> None:
    passages = _texts(
        ("Kiss and Tell", "The film stars Shirley Temple as Corliss Archer."),
        ("A Kiss for Corliss", "A sequel to an older comedy."),
        ("Shirley Temple", "She was named ambassador to Ghana."),
    )

    assert _order(passages) == [1, 3, 2]


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("Shirley Temple (actress)", "It stars SHIRLEY TEMPLE."),
        ("東京", "彼は東京に住む。"),
        ("Zürich", "Sie wohnt in zürich."),
        ("rate-limits", "See rate limits."),
    ],
)
def test_a_name_is_found_whatever_its_case_script_and_punctuation(heading: str, text: str) -> None:
    assert _order(_texts(("One", text), ("Two", "Nothing."), (heading, "What we look for."))) == [1, 3, 2]


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("Rome", "A romemade thing, and Jerome."),
        ("Art", "Of art he knew nothing."),
        ("Shirley Temple", "Shirley went to the temple."),
        ("()", "A pair of () says nothing."),
        ("", "Nothing names it."),
    ],
)
def test_parts_of_words_short_names_and_scattered_words_are_no_mention(heading: str, text: str) -> None:
    passages = _texts(("One", text), ("Two", "Nothing."), (heading, "What we look for."))

    assert lift_mentioned(_ranking(passages), passages) == _ranking(passages)


def test_a_passage_does_not_raise_those_under_its_own_name() -> None:
    passages = _texts(("Shirley Temple", "Shirley Temple sang."), ("Two", ""), ("Shirley Temple", "She danced."))

    assert _order(passages) == [1, 2, 3]


def test_of_the_passages_under_one_name_the_best_is_raised() -> None:
    passages = _texts(
        ("Film", "With Shirley Temple."), ("Other", ""), ("Shirley Temple", "First."), ("Shirley Temple", "Second.")
    )
    scores = dict(lift_mentioned(_ranking(passages), passages))

    assert scores[3] > scores[2] > scores[4]


def test_a_heading_that_most_passages_mention_is_not_raised() -> None:
    passages = _texts(*[(f"Page {page}", "As the Manual says.") for page in range(CANDIDATES - 1)], ("Manual", ""))
    before, after = dict(_ranking(passages, step=0.001)), dict(lift_mentioned(_ranking(passages, step=0.001), passages))

    assert after[CANDIDATES] == pytest.approx(before[CANDIDATES], abs=0.001)


def test_mentions_in_passages_beyond_the_best_few_are_ignored() -> None:
    quiet = [(f"Page {page}", "Nothing.") for page in range(SOURCES)]
    passages = _texts(*quiet, ("Late", "It names the Manual."), ("Manual", ""))

    assert lift_mentioned(_ranking(passages, step=0.05), passages) == _ranking(passages, step=0.05)


def test_a_mention_by_a_weaker_passage_counts_less() -> None:
    by_the_best = _texts(("One", "The Manual."), ("Two", ""), ("Manual", ""))
    by_the_next = _texts(("One", ""), ("Two", "The Manual."), ("Manual", ""))
    gains = [
        dict(lift_mentioned(_ranking(passages, step=0.3), passages))[3] - 0.4 for passages in (by_the_best, by_the_next)
    ]

    assert gains == pytest.approx([WEIGHT, WEIGHT * 0.7**2])


def test_what_the_store_no_longer_has_stays_in_the_ranking() -> None:
    passages = _texts(("One", "The Manual."), ("Gone", ""), ("Manual", ""))
    ranking = _ranking(passages)
    del passages[2]

    assert [key for key, _ in lift_mentioned(ranking, passages)] == [1, 3, 2]


_NAMES = st.sampled_from(["", "Manual", "Rome", "東京", "Shirley Temple", "a b"])


@given(
    st.lists(st.tuples(_NAMES, st.lists(_NAMES, max_size=4).map(" ".join), st.floats(0, 1)), max_size=20),
)
def test_every_key_stays_with_a_score_between_0_and_1_and_only_mentions_move_it(
    drawn: list[tuple[str, str, float]],
) -> None:
    passages = _texts(*[(heading, text) for heading, text, _ in drawn])
    scores = [score for _, _, score in drawn]
    ranking = sorted(zip(passages, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
    lifted = lift_mentioned(ranking, passages)

    assert sorted(key for key, _ in lifted) == sorted(passages)
    assert all(0.0 <= score <= 1.0 for _, score in lifted)
    assert lifted == sorted(lifted, key=lambda pair: (-pair[1], pair[0]))
    assert lift_mentioned(ranking, passages, weight=0.0) == ranking
