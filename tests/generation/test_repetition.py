"""generation.repetition finds circles as a comparison of the whole text does, and leaves lists and tables alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.repetition import LEAST, LONGEST, TIMES, RepetitionDetector


def circle(tokens: list[int]) -> bool:
    """The slow reference: whether the end of `tokens` is one piece, often enough."""
    for period in range(1, LONGEST + 1):
        long = max(TIMES * period, LEAST)
        end = tokens[-long:]
        if len(end) == long and all(end[at] == end[at - period] for at in range(period, long)):
            return True
    return False


@given(
    st.lists(st.integers(0, 2), max_size=40),
    st.lists(st.integers(0, 2), min_size=1, max_size=70),
    st.integers(1, 9),
    st.lists(st.integers(0, 2), max_size=5),
)
def test_after_each_token_it_says_what_a_comparison_of_the_whole_text_says(
    before: list[int], piece: list[int], times: int, behind: list[int]
) -> None:
    tokens = [*before, *(piece * times), *behind]
    detector = RepetitionDetector()
    said = [detector.push(token) for token in tokens]
    assert said == [circle(tokens[: count + 1]) for count in range(len(tokens))]


@pytest.mark.parametrize("period", [1, 2, 7, 16, 17, 64])
def test_a_circle_is_found_at_its_last_needed_token(period: int) -> None:
    detector = RepetitionDetector()
    said = [detector.push(at % period) for at in range(max(TIMES * period, LEAST))]
    assert said == [False] * (len(said) - 1) + [True]


def test_a_longer_piece_is_no_circle() -> None:
    detector = RepetitionDetector()
    assert not any(detector.push(at % (LONGEST + 1)) for at in range(1000))


@pytest.mark.parametrize(
    "text",
    [
        "|" + " --- |" * 20,
        "\n".join(f"| Row {number} | 0 | 0 | 0 | 0 |" for number in range(12)),
        "\n".join(f"{number}. See the agreement of {1990 + number}." for number in range(1, 20)),
        "Yes. " * 12,
    ],
)
def test_tables_and_lists_are_no_circles(text: str) -> None:
    detector = RepetitionDetector()
    assert not any(detector.push(piece) for piece in text.split())
