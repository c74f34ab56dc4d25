"""app.answering.quoting.breadth: one answer is quoted likeliest first, several are all quoted, in reading order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.question import AnswerLength
from app.answering.quoting.breadth import ONE, SEVERAL, Breadth, breadth_of, chosen
from app.answering.quoting.candidates import Candidate, candidates_of
from retrieval.types import Source
from tests.app.answering.sources import source

CLOSURES = "The plant in Oslo closed. The plant in Reno closed. Nobody was hurt in Rome. The plant in Bonn closed."
VALUES = "Our values are:\n- trust\n- speed\n- thrift"
NUTS = ("The Boots nut is of one piece.", "A stop nut has a fiber collar.", "The Boots nut is strong.", "Rain fell.")


def quoted(
    sources: Sequence[Source], scores: dict[str, float], breadth: Breadth, *, rest: float = 0.01, least: float = 0.0
) -> list[str]:
    """The text of each quote, where candidates score by their text, others `rest`."""
    candidates = candidates_of(sources)
    of = [scores.get(candidate.text, rest) for candidate in candidates]
    groups = chosen(candidates, of, breadth, first=of.index(max(of)), least=least)
    return [_text(candidates, group) for group in groups]


def _text(candidates: Sequence[Candidate], group: Sequence[int]) -> str:
    held = candidates[group[0]].source.hit.chunk
    return held.text[
        candidates[group[0]].span.start_char - held.start_char : candidates[group[-1]].span.end_char - held.start_char
    ]


@pytest.mark.parametrize(
    ("question", "several", "sides"),
    [
        ("When did it close?", False, ()),
        ("Which plants closed?", True, ()),
        ("Compare Oslo and Reno.", True, ("Oslo", "Reno")),
    ],
)
def test_the_question_decides(question: str, several: bool, sides: tuple[str, ...]) -> None:
    assert breadth_of(question) == (replace(SEVERAL, sides=sides) if several else ONE)


@pytest.mark.parametrize("length", ["short", "long"])
def test_the_length_changes_how_many_are_quoted(length: AnswerLength) -> None:
    scores = {"The plant in Oslo closed.": 0.5, "The plant in Reno closed.": 0.9, "The plant in Bonn closed.": 0.3}

    one = quoted([source(CLOSURES)], scores, breadth_of("When did it close?", length))
    several = quoted([source(CLOSURES)], scores, breadth_of("Which plants closed?", length))

    reno = "The plant in Reno closed."
    assert one == ([reno] if length == "short" else [reno, "The plant in Oslo closed.", "The plant in Bonn closed."])
    assert several == quoted([source(CLOSURES)], scores, SEVERAL)


def test_a_short_answer_has_at_most_three_of_several() -> None:
    text = "\n".join(f"- Plant {name} closed." for name in ("A", "B", "C", "D", "E"))
    scores = {f"- Plant {name} closed.": 0.9 for name in ("A", "B", "C", "D", "E")}

    short, normal = (breadth_of("Which plants closed?", length) for length in ("short", "normal"))

    assert (short.most, normal.most) == (3, 6)
    assert sum(one.count("closed") for one in quoted([source(text)], scores, short)) == 3


def test_one_answer_is_the_likeliest_first_and_few() -> None:
    scores = {"The plant in Oslo closed.": 0.5, "The plant in Reno closed.": 0.9, "The plant in Bonn closed.": 0.3}

    assert quoted([source(CLOSURES)], scores, ONE) == ["The plant in Reno closed.", "The plant in Oslo closed."]


def test_several_answers_are_all_that_match_in_reading_order_with_neighbours_joined() -> None:
    scores = {"The plant in Oslo closed.": 0.5, "The plant in Reno closed.": 0.9, "The plant in Bonn closed.": 0.3}

    assert quoted([source(CLOSURES)], scores, SEVERAL) == [
        "The plant in Oslo closed. The plant in Reno closed.",
        "The plant in Bonn closed.",
    ]


def test_the_document_with_the_likeliest_comes_first() -> None:
    sources = [source(NUTS[1], number=1), source(NUTS[0], number=2)]
    other = replace(sources[1].hit.chunk, document_id="doc_other")
    sources[1] = replace(sources[1], hit=replace(sources[1].hit, chunk=other))

    assert quoted(sources, {NUTS[0]: 0.9, NUTS[1]: 0.8}, SEVERAL) == [NUTS[0], NUTS[1]]


def test_a_list_takes_the_place_of_its_items() -> None:
    assert quoted([source(VALUES)], {"- speed": 0.9, VALUES: 0.6}, SEVERAL) == [VALUES]
    assert quoted([source(VALUES)], {"- speed": 0.9, VALUES: 0.6}, ONE) == ["- speed"]
    assert quoted([source(VALUES)], {"- trust": 0.5, "- speed": 0.9}, SEVERAL) == ["- trust\n- speed"]


def test_the_same_words_below_another_heading_take_no_place() -> None:
    first, second = "Prices\n\nA bolt costs 3 EUR.", "Price list\n\nA bolt costs 3 EUR."
    sources = [source(text, number=number) for number, text in enumerate((first, second, NUTS[3]), start=1)]

    assert quoted(sources, {first: 0.9, second: 0.8, NUTS[3]: 0.7}, replace(ONE, most=2)) == [first, NUTS[3]]


def test_each_side_of_a_comparison_has_a_quote_where_one_is_about_it() -> None:
    sides = replace(SEVERAL, sides=("the Boots nut", "the stop nut"), most=2)
    sources = [source(text, number=number) for number, text in enumerate(NUTS, start=1)]
    scores = {NUTS[0]: 0.9, NUTS[2]: 0.8, NUTS[1]: 0.05}

    assert quoted(sources, scores, replace(sides, sides=())) == [NUTS[0], NUTS[2]]
    assert sorted(quoted(sources, scores, sides)) == sorted([NUTS[0], NUTS[1]])
    assert quoted(sources, scores, sides, least=0.1) == [NUTS[0], NUTS[2]], "it is too unlikely"
    assert quoted(sources[:1], scores, sides) == [NUTS[0]], "nothing is about the other"


sentences = st.lists(
    st.sampled_from([*NUTS, CLOSURES, VALUES, "| a | b |\n| 1 | 2 |", "# Nuts\n\nThey hold."]), max_size=4
)
sides = st.sampled_from([(), ("Boots nut", "stop nut"), ("Oslo", "Rome"), ("trust", "the of")])


@given(texts=st.lists(sentences.map(" ".join), min_size=1, max_size=3), sides=sides, data=st.data())
def test_quotes_are_apart_bounded_and_hold_the_likeliest(
    texts: list[str], sides: tuple[str, ...], data: st.DataObject
) -> None:
    candidates = candidates_of([source(text, number=number) for number, text in enumerate(texts, start=1)])
    if not candidates:
        return
    scores = data.draw(st.lists(st.sampled_from([0.05, 0.2, 0.9]), min_size=len(candidates), max_size=len(candidates)))
    first = scores.index(max(scores))
    for breadth in (ONE, replace(SEVERAL, sides=sides)):
        groups = chosen(candidates, scores, breadth, first=first)
        places = [place for group in groups for place in group]

        assert 1 <= len(places) == len(set(places)) <= breadth.most
        assert any(
            candidates[place].source == candidates[first].source
            and candidates[place].span.start_char <= candidates[first].span.start_char
            and candidates[first].span.end_char <= candidates[place].span.end_char
            for place in places
        )
        for group in groups:
            assert len({candidates[place].source.number for place in group}) == 1
            assert len(group) == 1 or len(_text(candidates, group)) <= breadth.joined
        spans = [(candidates[one].source.number, candidates[one].span) for one in places]
        for at, (number, span) in enumerate(spans):
            for other, another in spans[:at]:
                assert number != other or span.end_char <= another.start_char or another.end_char <= span.start_char
