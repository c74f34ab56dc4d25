"""retrieval.selection chooses sentences by relevance and token cost within a budget."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.selection import Prices, ScoredSentence, choose, pieces

PRICES = Prices(opening=(5, 5, 5), gap=2)


def unit(passage: int, place: int, *, tokens: int = 10, worth: float = 0.5) -> ScoredSentence:
    return ScoredSentence(passage, place, place * 10, place * 10 + 9, tokens, worth, matching=True)


def cost(chosen: list[ScoredSentence]) -> int:
    """By its definition: sentences, one opening a passage, one gap between two pieces of it."""
    runs = pieces(chosen)
    gaps = sum(len(of_passage) - 1 for of_passage in runs.values())
    return sum(one.tokens for one in chosen) + 5 * len(runs) + 2 * gaps


unit_lists = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 6)), st.tuples(st.integers(0, 30), st.floats(0.01, 1)), max_size=16
).map(lambda rows: [unit(*at, tokens=tokens, worth=worth) for at, (tokens, worth) in rows.items()])


@given(units=unit_lists, budget=st.integers(0, 150))
def test_what_is_chosen_fits_by_its_prices(units: list[ScoredSentence], budget: int) -> None:
    chosen = choose(units, budget=budget, prices=PRICES)

    assert cost(chosen) <= budget or not chosen


@given(units=unit_lists, budget=st.integers(0, 150), more=st.integers(0, 50))
def test_more_budget_keeps_all_that_was_chosen_before_the_first_misfit(
    units: list[ScoredSentence], budget: int, more: int
) -> None:
    order = sorted(units, key=lambda one: (-one.priority, one.passage, one.place))
    chosen = choose(units, budget=budget, prices=PRICES)
    before = next((at for at, one in enumerate(order) if one not in chosen), len(order))

    assert set(order[:before]) <= set(choose(units, budget=budget + more, prices=PRICES))


def test_of_equal_price_the_worthier_is_chosen_and_of_equal_worth_the_cheaper() -> None:
    worthy, lesser = unit(0, 0, worth=0.6), unit(1, 0, worth=0.5)
    cheap, dear = unit(0, 0, tokens=5), unit(1, 0, tokens=15)

    assert choose([lesser, worthy], budget=15, prices=PRICES) == [worthy]
    assert choose([dear, cheap], budget=20, prices=PRICES) == [cheap]


def test_one_that_does_not_fit_is_passed_over() -> None:
    large, small = unit(0, 0, tokens=50, worth=1.0), unit(1, 0, tokens=4, worth=0.01)

    assert choose([large, small], budget=20, prices=PRICES) == [small]


def test_a_sentence_beside_a_chosen_one_saves_the_gap() -> None:
    first, beside, apart = unit(0, 0, worth=0.9), unit(0, 1, worth=0.1), unit(0, 3, worth=0.2)

    assert choose([first, apart, beside], budget=25, prices=PRICES) == [first, beside]
    assert choose([first, apart, beside], budget=27, prices=PRICES) == [first, apart]


def test_filling_the_gap_between_two_pieces_saves_it() -> None:
    units = [unit(0, 0, worth=0.9), unit(0, 2, worth=0.8), unit(0, 1, worth=0.1)]

    assert len(choose(units, budget=5 + 30, prices=PRICES)) == 3 - 1 + (cost(units) <= 35)


def test_neighbours_are_one_piece_and_pieces_stand_in_document_order() -> None:
    assert pieces([unit(1, 3), unit(0, 2), unit(0, 1), unit(0, 4)]) == {0: [(10, 29), (40, 49)], 1: [(30, 39)]}
