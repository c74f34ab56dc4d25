"""retrieval.highlights finds the sentences of a passage that are nearest to the query."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.highlights import nearest_sentences
from retrieval.types import Chunk
from tests.retrieval.fakes import chunk

LOG = (
    "The harbour lies in the north. The blue ship sank there in 1912. Nobody of the town saw it. "
    "The mail came once a week."
)


def nearest(query: str, *chunks: Chunk, most: int = 2) -> list[list[str]]:
    found = nearest_sentences(chunks, query=query, most=most)
    return [
        [one.text[span.start_char - one.start_char : span.end_char - one.start_char] for span in spans]
        for one, spans in zip(chunks, found, strict=True)
    ]


def test_it_is_the_sentence_that_shares_most_words() -> None:
    assert nearest("When did the blue ship sink?", chunk(1, LOG, start_char=4000)) == [
        ["The blue ship sank there in 1912."]
    ]


def test_two_that_are_as_near_stand_in_the_order_of_reading() -> None:
    text = "Bears sleep in winter. Snow falls in the hills. Bears eat in summer. Wolves hunt."

    assert nearest("bears", chunk(1, text)) == [["Bears sleep in winter.", "Bears eat in summer."]]
    assert nearest("bears", chunk(1, text), most=1) == [["Bears sleep in winter."]]


def test_every_passage_has_its_own_and_rare_words_weigh_more() -> None:
    ships = chunk(1, "A ship came. A ship left. The keeper lit the lamp. A ship sank.")
    keys = chunk(2, "The key is lost. Nobody minds.")

    assert nearest("Which keeper saw a ship?", ships, keys) == [["The keeper lit the lamp."], []]


def test_a_heading_is_no_sentence_to_be_shown_unless_it_is_all_there_is() -> None:
    text = "# Blue ships\n\nThe blue one sank. Nobody saw it."
    under = chunk(1, text, heading_path=("Log", "Blue ships"))

    assert nearest("blue ships", under) == [["The blue one sank."]]
    assert nearest("ships", under) == [["# Blue ships"]]


def test_a_passage_without_common_words_has_no_nearest_sentence() -> None:
    assert nearest("Wann sank das Boot?", chunk(1, "Nobody came.")) == [[]]
    assert nearest("anything", chunk(1, "")) == [[]]
    assert nearest_sentences([], query="anything") == ()


@given(st.lists(st.text(alphabet="ab .\n#é字", max_size=60), max_size=4), st.text(alphabet="ab 字", max_size=10))
def test_they_are_sentences_of_their_passage_apart_and_in_order(texts: list[str], query: str) -> None:
    chunks = [chunk(key, text, start_char=100 * key) for key, text in enumerate(texts)]

    for one, spans in zip(chunks, nearest_sentences(chunks, query=query), strict=True):
        assert len(spans) <= 2
        edges = [edge for span in spans for edge in (span.start_char, span.end_char)]
        assert edges == sorted(set(edges))
        assert all(one.start_char <= edge <= one.end_char for edge in edges)
