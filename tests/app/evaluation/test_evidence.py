"""app.evaluation.retrieval_metrics: a gold span is found where it went, and held only when all of it is."""

from hypothesis import given
from hypothesis import strategies as st

from app.evaluation.retrieval_metrics import holds, locate
from app.evaluation.types import GoldSpan
from retrieval.types import Span

TEXT = "# Title\n\nOne fish. Two fish. Red fish."
FISH = GoldSpan("d", 14, 18, "fish")


def test_the_nearest_of_several_places_is_taken() -> None:
    corpus = TEXT.removeprefix("# Title\n\n")
    for start in (4, 14, 24):
        place = locate(GoldSpan("d", start, start + 4, corpus[start : start + 4]), TEXT, lead=9)
        assert place is not None
        assert (place.start, place.end) == (9 + start, 13 + start)


def test_words_that_normalising_moved_or_changed_are_still_found() -> None:
    place = locate(GoldSpan("d", 20, 27, "Red\u200b f\u00adi"), "One\n\nRed fish.", lead=0)

    assert place is not None
    assert place.text == "Red fi"
    assert (place.start, place.end) == (5, 11)


def test_a_span_that_is_not_there_is_none() -> None:
    assert locate(GoldSpan("d", 0, 4, "blue"), TEXT, lead=9) is None
    assert locate(GoldSpan("d", 0, 1, "\u200b"), TEXT, lead=9) is None


def test_a_span_cut_at_a_blank_is_held_by_the_two_pieces_and_by_neither() -> None:
    gold = GoldSpan("d", 0, 13, "One fish. Two")
    first, second = Span(0, 9), Span(10, 19)

    assert holds({"d": [second, first]}, gold)
    assert not holds({"d": [first]}, gold)
    assert not holds({"d": [second]}, gold)
    assert not holds({"e": [Span(0, 99)]}, gold)
    assert not holds({"d": [Span(0, 8), second]}, gold)


@given(
    text=st.text(alphabet="ab \n", min_size=1, max_size=30).filter(str.strip),
    offset=st.integers(0, 5),
    passages=st.lists(st.tuples(st.integers(0, 36), st.integers(0, 36)).map(sorted), max_size=5),
)
def test_held_means_every_character_that_is_not_blank(text: str, offset: int, passages: list[list[int]]) -> None:
    gold = GoldSpan("d", offset, offset + len(text), text)
    covered = {at for start, end in passages for at in range(start, end)}
    wanted = {offset + at for at, character in enumerate(text) if not character.isspace()}

    assert holds({"d": [Span(start, end) for start, end in passages]}, gold) == (wanted <= covered)
