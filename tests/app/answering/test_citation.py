"""app.answering.citation: a citation says exactly where its passage stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.citation import CONFIRMED, Citation, Pages
from app.answering.verification.support import THRESHOLD
from ingestion.types import Page
from retrieval.types import Span
from tests.app.answering.sources import REPORT, source

PRESENTED = source(REPORT, number=3, start=50, pages=(4, 6))
TABLE = {("doc_1", 1): (Page(4, 0, 60), Page(5, 60, 90), Page(6, 90, 400))}


def cite(passage: Span, *, support: float = 1.0, pages: Pages = TABLE) -> Citation:
    return Citation.of(PRESENTED, passage, marker=Span(7, 10), support=support, origin="model", pages=pages)


@given(bounds=st.tuples(st.integers(0, len(REPORT)), st.integers(0, len(REPORT))).map(sorted), support=st.floats(0, 1))
def test_it_quotes_the_characters_it_points_at_and_is_verified_from_the_threshold_on(bounds, support):
    start, end = bounds
    found = cite(Span(50 + start, 50 + end), support=support)

    assert found.cited_text == REPORT[start:end]
    assert (found.start_char, found.end_char) == (50 + start, 50 + end)
    assert (found.index, found.answer_start, found.answer_end) == (3, 7, 10)
    assert found.verified == (support >= THRESHOLD)


@pytest.mark.parametrize(
    ("passage", "pages", "expected"),
    [
        (Span(50, 60), TABLE, (4, 4)),
        (Span(59, 61), TABLE, (4, 5)),
        (Span(60, 90), TABLE, (5, 5)),
        (Span(55, 95), TABLE, (4, 6)),
        (Span(60, 90), {}, (4, 6)),
        (Span(60, 90), {("doc_1", 2): TABLE["doc_1", 1]}, (4, 6)),
        (Span(60, 90), {("doc_1", 1): (Page(4, 0, 60),)}, (4, 6)),
    ],
    ids=["first", "across", "a whole page", "all", "no table", "another version's", "beyond the table"],
)
def test_its_pages_are_those_of_the_passage_where_a_table_tells(passage, pages, expected):
    found = cite(passage, pages=pages)

    assert (found.page_start, found.page_end) == expected


probabilities = st.none() | st.floats(0, 1) | st.just(CONFIRMED)


@given(support=st.floats(0, 1) | st.just(THRESHOLD), answers=probabilities, judged=probabilities)
def test_it_is_verified_where_the_passage_supports_it_and_the_question_is_almost_certainly_answered(
    support, answers, judged
):
    found = Citation.of(
        PRESENTED, Span(50, 60), marker=Span(7, 10), support=support, origin="model", pages=TABLE, answers=answers
    )
    again = found.judged(judged)

    assert found.answers == answers
    assert found.verified == (support >= THRESHOLD and (answers is None or answers >= CONFIRMED))
    assert again.answers == judged
    assert again.verified == (support >= THRESHOLD and (judged is None or judged >= CONFIRMED))
    assert again.judged(answers) == found
