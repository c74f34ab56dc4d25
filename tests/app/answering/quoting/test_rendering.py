"""app.answering.quoting.rendering writes quotes; every marker cites the sentence before it."""

import json
import re

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.formats import Format, answer_schema
from app.answering.quoting.rendering import block_quotation, quotation
from app.answering.quoting.selection import Quote
from ingestion.types import Page
from retrieval.compress import compress
from retrieval.types import Source, Span
from tests.retrieval.fakes import chunk, hit

MARKER = re.compile(r"\[(\d+)\]")


def quotes_of(*texts: str, page_start: int | None = None, page_end: int | None = None) -> list[Quote]:
    """One quote of the whole of each text, each text a source of its own document."""
    hits = [
        hit(chunk(n, text, document_id=f"doc_{n}", start_char=10 * n, page_start=page_start, page_end=page_end), rank=n)
        for n, text in enumerate(texts, start=1)
    ]
    sources = compress(hits, query="", budget=10_000, count_tokens=len, order=lambda found: range(len(found))).sources
    return [Quote(source, source.spans[0], _slice(source, source.spans[0]), 0.5) for source in sources]


def _slice(source: Source, span: Span) -> str:
    held = source.hit.chunk
    return held.text[span.start_char - held.start_char : span.end_char - held.start_char]


def test_each_sentence_is_followed_by_its_marker() -> None:
    text, citations = quotation(quotes_of("Rain fell.", "Snow\n fell."), form="markdown", pages={})

    assert text == "Rain fell. [1] Snow fell. [2]"
    assert [(citation.index, text[citation.answer_start : citation.answer_end]) for citation in citations] == [
        (1, "[1]"),
        (2, "[2]"),
    ]
    assert [citation.cited_text for citation in citations] == ["Rain fell.", "Snow\n fell."]
    assert all(citation.verified and citation.support == 1.0 for citation in citations)


def test_footnotes_a_sentence_brings_along_are_not_taken_for_ours() -> None:
    text, (citation,) = quotation(quotes_of("Rain fell [2] in 1901.[3, 4]"), form="markdown", pages={})

    assert text == "Rain fell in 1901. [1]"
    assert citation.cited_text == "Rain fell [2] in 1901.[3, 4]"


def test_plain_text_shows_no_marks_and_cites_them_as_they_stand() -> None:
    text, (citation,) = quotation(quotes_of("**Rain** fell in `Oslo`."), form="text", pages={})

    assert text == "Rain fell in Oslo. [1]"
    assert citation.cited_text == "**Rain** fell in `Oslo`."


def test_in_json_a_footnote_stands_at_the_number_of_its_source() -> None:
    text, citations = quotation(quotes_of('He said "[1, 2]".', "Snow fell."), form="json", pages={})

    assert json.loads(text) == {"answer": 'He said "". Snow fell.', "sources": [1, 2]}
    assert [text[citation.answer_start : citation.answer_end] for citation in citations] == ["1", "2"]
    assert text.rindex("[") < citations[0].answer_start < citations[1].answer_start


def test_a_citation_names_the_pages_of_its_sentence_where_a_table_tells() -> None:
    quotes = quotes_of("Rain fell.", page_start=3, page_end=4)
    pages = {("doc_1", 1): (Page(3, 0, 12), Page(4, 12, 99))}
    first = Quote(quotes[0].source, Span(10, 12), "Ra", 0.5)

    _, (told,) = quotation([first], form="markdown", pages=pages)
    _, (untold,) = quotation([first], form="markdown", pages={})

    assert (told.page_start, told.page_end) == (3, 3)
    assert (untold.page_start, untold.page_end) == (3, 4)


sentences = st.lists(
    st.text(alphabet='ab .\n"\\[]12,*_#é売', min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
    min_size=1,
    max_size=3,
    unique=True,
)


@settings(deadline=None)  # the first call loads the sentence model
@given(texts=sentences, form=st.sampled_from(["markdown", "text"]))
def test_markers_number_the_quoted_sources_and_cited_texts_are_slices(texts: list[str], form: Format) -> None:
    quotes = quotes_of(*texts)
    text, citations = quotation(quotes, form=form, pages={})

    assert [citation.index for citation in citations] == [quote.source.number for quote in quotes]
    assert [int(number) for number in MARKER.findall(text)] == [citation.index for citation in citations]
    for citation, quote in zip(citations, quotes, strict=True):
        assert text[citation.answer_start : citation.answer_end] == f"[{citation.index}]"
        assert citation.cited_text == _slice(quote.source, Span(citation.start_char, citation.end_char))


@settings(deadline=None)
@given(texts=sentences)
def test_json_is_valid_by_its_schema(texts: list[str]) -> None:
    quotes = quotes_of(*texts)
    text, citations = quotation(quotes, form="json", pages={})
    document = json.loads(text)

    jsonschema.validate(document, json.loads(answer_schema(max(quote.source.number for quote in quotes))))
    for citation in citations:
        assert text[citation.answer_start : citation.answer_end] == str(citation.index)
    assert document["sources"] == [quote.source.number for quote in quotes]


@pytest.mark.parametrize(
    ("form", "written"),
    [("markdown", "> Rain fell. [1]\n>\n> Snow fell. [2]"), ("text", "“Rain fell.” [1]\n“Snow fell.” [2]")],
)
def test_quotes_behind_a_models_words_are_set_apart(form: Format, written: str) -> None:
    text, citations = block_quotation(quotes_of("Rain fell.", "Snow\n fell."), form=form, pages={})

    assert text == written
    assert [text[citation.answer_start : citation.answer_end] for citation in citations] == ["[1]", "[2]"]
    assert [citation.cited_text for citation in citations] == ["Rain fell.", "Snow\n fell."]
