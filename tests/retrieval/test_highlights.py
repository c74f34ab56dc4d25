"""retrieval.highlights chooses the sentences that are repeated after the question."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from retrieval.compress import compress
from retrieval.highlights import highlights
from retrieval.types import Source
from tests.retrieval.fakes import ranked


def count_words(text: str) -> int:
    return len(text.split())


def sources(*texts: str) -> tuple[Source, ...]:
    return compress(ranked(*texts), query="", budget=10_000, count_tokens=count_words).sources


def lines(found: Sequence[Source], query: str, *, budget: int = 100, most: int = 2) -> list[str]:
    again = highlights(found, query=query, budget=budget, count_tokens=count_words, most=most)
    return [highlight.line for highlight in again]


def test_the_sentence_that_shares_most_stands_last():
    found = sources(
        "The harbour lies in the north. The blue ship sank there in 1912. Nobody of the town saw it.",
        "Every other ship carried mail. Letters took a week.",
    )

    assert lines(found, "When did the blue ship sink?") == [
        "[2] Every other ship carried mail.\n",
        "[1] The blue ship sank there in 1912.\n",
    ]


def test_a_sentence_that_shares_nothing_is_no_highlight():
    found = sources(
        "Most cats sleep in the day. Some dogs bark at night. All fish swim in water.", "Many birds can fly."
    )

    assert lines(found, "What do dogs do?") == ["[1] Some dogs bark at night.\n"]


def test_there_are_no_highlights_where_every_sentence_would_be_one():
    assert lines(sources("Dogs bark.", "Dogs sleep."), "What do dogs do?") == []


def test_a_line_break_in_a_sentence_does_not_break_the_line():
    found = sources(
        "Some dogs that guard a house in the country bark all\nday and all night. Cats sleep. All fish swim in water."
    )
    (line,) = lines(found, "What do dogs do?", most=1)

    assert line.startswith("[1] Some dogs that guard a house in the country bark all day and all night.")
    assert line.count("\n") == 1


words = st.sampled_from(["dog", "cat", "barks", "sleeps", "Oslo", "1912", "ship"])
texts = st.lists(
    st.lists(
        st.lists(words, min_size=1, max_size=8).map(lambda found: " ".join(found).capitalize() + "."),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=5,
    unique_by=" ".join,
).map(lambda found: [" ".join(text) for text in found])


@given(texts=texts, query=st.lists(words, max_size=5).map(" ".join), budget=st.integers(0, 60), most=st.integers(0, 4))
def test_highlights_are_sentences_of_their_source_within_the_budget(texts, query, budget, most):
    found = sources(*texts)
    again = highlights(found, query=query, budget=budget, count_tokens=count_words, most=most)
    by_number = {source.number: source for source in found}

    assert sum(count_words(highlight.line) for highlight in again) <= budget
    assert len(again) <= most
    for highlight in again:
        chunk = by_number[highlight.number].hit.chunk
        text = chunk.text[highlight.span.start_char - chunk.start_char : highlight.span.end_char - chunk.start_char]
        assert highlight.line == f"[{highlight.number}] {' '.join(text.split())}\n"
        assert highlight.document_id == chunk.document_id
