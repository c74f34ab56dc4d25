"""app.answering.quoting.rendering writes a lead and quotes; every marker cites the quote before it."""

import json
import re

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.answers.parts import JsonPart
from app.answering.citing.citation import CONFIRMED, Layout
from app.answering.formats.answer_formats import Format, answer_schema
from app.answering.quoting.literal import literal
from app.answering.quoting.rendering import MOST_LEAD_CHARS, Quotation, lead_words, quotation, unconfirmed
from app.answering.states.reading import Extract
from ingestion.types import PageRange
from retrieval.compress import compress
from retrieval.types import Source, Span
from tests.app.answering.part_texts import highlighted_in, lead_in, quoted_in, quotes_in
from tests.retrieval.fakes import chunk, hit

MARKER = re.compile(r"\[(\d+)\]")
SURE = (1 + CONFIRMED) / 2
OPENING = "The documents do not clearly answer this."


def quotes_of(
    *texts: str, words: str = "", page_start: int | None = None, page_end: int | None = None, score: float = SURE
) -> list[Extract]:
    """One quote of the whole of each text, each text a source of its own document; `words` are those of the first."""
    hits = [
        hit(chunk(n, text, document_id=f"doc_{n}", start_char=10 * n, page_start=page_start, page_end=page_end), rank=n)
        for n, text in enumerate(texts, start=1)
    ]
    sources = compress(hits, query="", budget=10_000, count_tokens=len, order=lambda found: range(len(found))).sources
    quotes = [Extract(source, source.spans[0], _slice(source, source.spans[0]), score) for source in sources]
    return [highlighted(quotes[0], quotes[0].text.index(words), len(words)), *quotes[1:]] if words else quotes


def highlighted(quote: Extract, at: int, length: int) -> Extract:
    first = quote.span.start_char + at
    return Extract(quote.source, quote.span, quote.text, quote.score, Span(first, first + length))


def _slice(source: Source, span: Span) -> str:
    held = source.hit.chunk
    return held.text[span.start_char - held.start_char : span.end_char - held.start_char]


def written(
    *texts: str, form: Format = "markdown", words: str = "", lead: bool = False, opening: str = "", score: float = SURE
) -> Quotation:
    quotes = quotes_of(*texts, words=words, score=score)
    return quotation(quotes, form=form, pages={}, lead=quotes[0] if lead else None, opening=opening)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("markdown", "**Rain in Oslo** [3]\n\n> Rain fell. [1]\n>\n> Snow fell. [2]"),
        ("text", "Rain in Oslo [3]\n“Rain fell.” [1]\n“Snow fell.” [2]"),
        ("json", '{"answer": "Rain in Oslo Rain fell. Snow fell.", "sources": [3, 1, 2]}'),
    ],
)
def test_a_title_leads_and_is_quoted_only_there(form: Format, text: str) -> None:
    rain, snow, title = quotes_of("Rain fell.", "Snow fell.", "Rain in Oslo")
    title = Extract(title.source, title.span, title.text, title.score, title.span)
    found = quotation((rain, snow), form=form, pages={}, lead=title)

    assert found.text == text
    assert quoted(found) == ([] if form == "json" else ["Rain fell.", "Snow fell."])
    assert sorted(one.cited_text for one in found.citations) == ["Rain fell.", "Rain in Oslo", "Snow fell."]


def quoted(found: Quotation) -> list[str]:
    return quoted_in(found.text, found.parts)


def marked(found: Quotation) -> list[list[str]]:
    """Of each quote the words that are highlighted."""
    return highlighted_in(found.text, found.parts)


@pytest.mark.parametrize(
    ("form", "text"),
    [("markdown", "> Rain fell. [1]\n>\n> Snow fell. [2]"), ("text", "“Rain fell.” [1]\n“Snow fell.” [2]")],
)
def test_each_quote_is_followed_by_its_marker(form: Format, text: str) -> None:
    found = written("Rain fell.", "Snow\n fell.", form=form)

    assert found.text == text
    assert [(one.index, text[one.answer_start : one.answer_end]) for one in found.citations] == [(1, "[1]"), (2, "[2]")]
    assert [one.cited_text for one in found.citations] == ["Rain fell.", "Snow\n fell."]
    assert quoted(found) == ["Rain fell.", "Snow fell."]
    assert (lead_in(found.parts), marked(found)) == (None, [[], []])


@pytest.mark.parametrize("score", [CONFIRMED, CONFIRMED - 0.01])
def test_a_quote_is_verified_where_it_almost_certainly_answers(score: float) -> None:
    found = written("Rain fell.", score=score)

    assert [(one.support, one.answers, one.verified) for one in found.citations] == [(1.0, score, score >= CONFIRMED)]
    assert [one.answers for one in quotes_in(found.parts)] == [score]


def test_quotes_that_may_not_answer_are_not_verified() -> None:
    found = written("Rain fell.", "Snow fell.")
    nearest = unconfirmed(found)

    assert [one.verified for one in found.citations] == [True, True]
    assert [one.verified for one in nearest.citations] == [False, False]
    assert (nearest.text, nearest.parts) == (found.text, found.parts)


@pytest.mark.parametrize(
    ("form", "text", "lead"),
    [
        ("markdown", "**4 May** [1]\n\n> It closed on 4 May. [1]\n>\n> Snow fell. [2]", Span(2, 7)),
        ("text", "4 May [1]\n“It closed on 4 May.” [1]\n“Snow fell.” [2]", Span(0, 5)),
    ],
)
def test_the_words_that_answer_lead_and_are_marked_in_their_quote(form: Format, text: str, lead: Span) -> None:
    found = written("It closed on 4 May.", "Snow fell.", form=form, words="4 May", lead=True)

    assert found.text == text
    assert lead_in(found.parts) == lead
    assert marked(found) == [["4 May"], []]
    assert [(one.index, text[one.answer_start : one.answer_end]) for one in found.citations] == [
        (1, "[1]"),
        (1, "[1]"),
        (2, "[2]"),
    ]
    assert [one.answer_start for one in found.citations] == [match.start() for match in MARKER.finditer(text)]


def test_words_are_marked_in_their_quote_where_they_do_not_lead() -> None:
    found = written("It closed on 4 May.", words="4 May")

    assert (found.text, lead_in(found.parts), marked(found)) == ("> It closed on 4 May. [1]", None, [["4 May"]])


def test_too_many_words_do_not_lead() -> None:
    few, many = ("a" * length for length in (MOST_LEAD_CHARS, MOST_LEAD_CHARS + 1))

    assert written(f"It is {few}.", words=few, lead=True).text.startswith(f"**{few}** [1]")
    found = written(f"It is {many}.", words=many, lead=True)
    assert (lead_in(found.parts), found.text, marked(found)) == (None, f"> It is {many}. [1]", [[many]])


def test_a_lead_is_plain_and_in_one_line() -> None:
    (quote,) = quotes_of("It **rose** by\n8 % to [2] 9 %.", words="by\n8 % to [2] 9")
    (items,) = quotes_of("We value:\n- trust\n- speed", words="- trust\n- speed")

    assert lead_words(quote) == "by 8 % to 9"
    assert "\n" not in lead_words(items)
    assert lead_words(quotes_of("Rain fell.")[0]) == ""


def test_an_opening_is_above_the_quotes_and_a_lead_replaces_it() -> None:
    opened = written("It closed on 4 May.", words="4 May", opening=OPENING)
    plain = written("It closed on 4 May.", form="text", opening=OPENING)

    assert opened.text == f"{OPENING}\n\n> It closed on 4 May. [1]"
    assert plain.text == f"{OPENING}\n“It closed on 4 May.” [1]"
    assert (quoted(opened), marked(opened)) == (["It closed on 4 May."], [["4 May"]])
    assert OPENING not in written("It closed on 4 May.", words="4 May", lead=True, opening=OPENING).text


def test_footnotes_that_a_quote_brings_along_are_not_taken_for_ours() -> None:
    found = written("Rain fell [2] in 1901.[3, 4]", words="1901")
    (citation,) = found.citations

    assert found.text == "> Rain fell in 1901. [1]"
    assert citation.cited_text == "Rain fell [2] in 1901.[3, 4]"
    assert marked(found) == [["1901"]]


def test_plain_text_shows_no_marks_and_cites_them_as_they_are() -> None:
    found = written("**Rain** fell in `Oslo`.", form="text", words="Oslo")

    assert found.text == "“Rain fell in Oslo.” [1]"
    assert found.citations[0].cited_text == "**Rain** fell in `Oslo`."
    assert marked(found) == [["Oslo"]]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("We value:\n- trust\n\n- speed", ["We value:", "- trust", "- speed"]),
        ("Steps:\n1. Open\nthe lid.\n2. Rinse it.", ["Steps:", "1. Open the lid.", "2. Rinse it."]),
        ("| Bolt | 3 EUR |\n| Nut | 4 EUR |", ["| Bolt | 3 EUR |", "| Nut | 4 EUR |"]),
        ("Rain\nfell in\n\nOslo.", ["Rain fell in Oslo."]),
        ("Hours:\nnine to five", ["Hours:", "nine to five"]),
    ],
)
def test_lists_and_rows_keep_their_lines_and_flowing_text_does_not(text: str, lines: list[str]) -> None:
    assert written(text).text == "> " + "\n> ".join(lines) + " [1]"
    assert written(text, form="text").text == "“" + "\n".join(lines) + "” [1]"


@pytest.mark.parametrize("form", ["markdown", "text"])
def test_words_that_a_quote_repeats_are_marked_where_they_were_found(form: Format) -> None:
    text = "\n".join(["| 1 | 1 |"] * 6)
    (quote,) = quotes_of(text)
    marks = []
    for match in re.finditer("1", text):
        found = quotation([highlighted(quote, match.start(), 1)], form=form, pages={})
        (one,) = quotes_in(found.parts)
        (mark,) = one.highlights
        marks.append(mark.start_char)

    assert marks == [match.start() for match in re.finditer("1", found.text[: one.quoted.end_char])]


def test_words_in_several_lines_are_marked_across_them() -> None:
    assert marked(written("We value:\n- trust\n- speed", words="trust\n- speed")) == [["trust\n> - speed"]]
    assert marked(written("We value:\n- trust\n- speed", form="text", words="trust\n- speed")) == [["trust\n- speed"]]


def test_in_json_a_footnote_is_at_the_number_of_its_source() -> None:
    found = written('He said "[1, 2]".', "Snow fell.", form="json")

    assert json.loads(found.text) == {"answer": 'He said "". Snow fell.', "sources": [1, 2]}
    assert [found.text[one.answer_start : one.answer_end] for one in found.citations] == ["1", "2"]
    assert found.text.rindex("[") < found.citations[0].answer_start < found.citations[1].answer_start


def test_in_json_the_lead_is_the_answer() -> None:
    found = written("It closed on 4 May.", "Snow fell.", form="json", words="4 May", lead=True)

    assert json.loads(found.text) == {"answer": "4 May", "sources": [1, 2]}
    assert found.parts == (JsonPart(start_char=0, end_char=len(found.text)),)


def test_a_citation_names_the_pages_of_its_quote_where_a_table_tells() -> None:
    quotes = quotes_of("Rain fell.", page_start=3, page_end=4)
    pages = {("doc_1", 1): Layout((PageRange(3, 0, 12), PageRange(4, 12, 99)))}
    first = Extract(quotes[0].source, Span(10, 12), "Ra", 0.5)

    (told,) = quotation([first], form="markdown", pages=pages).citations
    (untold,) = quotation([first], form="markdown", pages={}).citations

    assert (told.page_start, told.page_end) == (3, 3)
    assert (untold.page_start, untold.page_end) == (3, 4)


sentences = st.lists(
    st.text(alphabet='ab .\n"\\[]12,*_#é売|-:', min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
    min_size=1,
    max_size=3,
    unique=True,
)


@settings(deadline=None)  # the first call loads the sentence model
@given(texts=sentences, form=st.sampled_from(["markdown", "text"]), lead=st.booleans(), data=st.data())
def test_markers_number_the_quoted_sources_and_offsets_are_slices(
    texts: list[str], form: Format, lead: bool, data: st.DataObject
) -> None:
    quotes = quotes_of(*texts)
    at = data.draw(st.integers(0, len(quotes[0].text) - 1))
    length = data.draw(st.integers(1, len(quotes[0].text) - at))
    quotes[0] = highlighted(quotes[0], at, length)

    found = quotation(quotes, form=form, pages={}, lead=quotes[0] if lead else None)

    led, shown = lead_in(found.parts), quotes_in(found.parts)
    cited = [quotes[0], *quotes] if led else quotes
    assert [one.index for one in found.citations] == [quote.source.number for quote in cited]
    assert [int(number) for number in MARKER.findall(found.text)] == [one.index for one in found.citations]
    for citation, quote in zip(found.citations, cited, strict=True):
        assert found.text[citation.answer_start : citation.answer_end] == f"[{citation.index}]"
        assert citation.cited_text == _slice(quote.source, Span(citation.start_char, citation.end_char)) == quote.text
    if led is not None:
        assert lead
        words = lead_words(quotes[0])
        assert found.text[led.start_char : led.end_char] == (literal(words) if form == "markdown" else words)
    last = 0
    for one in shown:
        assert last <= one.quoted.start_char <= one.quoted.end_char <= len(found.text)
        last = one.quoted.end_char
        for mark in one.highlights:
            assert one.quoted.start_char <= mark.start_char < mark.end_char <= one.quoted.end_char
    assert len(shown) == len(quotes)


@settings(deadline=None)
@given(texts=sentences)
def test_json_is_valid_by_its_schema(texts: list[str]) -> None:
    quotes = quotes_of(*texts)
    found = quotation(quotes, form="json", pages={})
    document = json.loads(found.text)

    jsonschema.validate(document, json.loads(answer_schema(max(quote.source.number for quote in quotes))))
    for citation in found.citations:
        assert found.text[citation.answer_start : citation.answer_end] == str(citation.index)
    assert document["sources"] == [quote.source.number for quote in quotes]
