"""app.answering.answers.parts: parts tile the text of an answer, and say where their words and their footnotes are."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.answers.parts import (
    AnyPart,
    ClarifyPart,
    JsonPart,
    LeadPart,
    NoteCode,
    NotePart,
    ProsePart,
    QuotePart,
    Reason,
    RefusedPart,
    ReplyPart,
    cited,
    moved,
    of_kind,
    paragraphs,
)
from app.answering.formats.answer_formats import Format
from app.answering.quoting.rendering import quotation
from retrieval.types import Span
from tests.app.answering.part_texts import quotes_in, require_tiling, text_of
from tests.app.answering.quoting.test_rendering import highlighted, quotes_of, sentences

LEAD = LeadPart(start_char=0, end_char=13, words=Span(2, 7))
QUOTE = QuotePart(start_char=0, end_char=13, quoted=Span(1, 9), answers=0.5, highlights=(Span(2, 4),))
PROSE = ProsePart(start_char=0, end_char=13, uncited=(Span(0, 3), Span(4, 9)))
OTHERS: list[AnyPart] = [
    NotePart(start_char=0, end_char=13, code=NoteCode.OTHER_LANGUAGE),
    RefusedPart(start_char=0, end_char=13, reason=Reason.NO_EVIDENCE),
    ClarifyPart(start_char=0, end_char=13),
    ReplyPart(start_char=0, end_char=13),
    JsonPart(start_char=0, end_char=13),
]


@given(texts=st.lists(st.text(max_size=12), max_size=4))
def test_paragraphs_leave_empty_texts_out_and_their_parts_are_slices(texts: list[str]) -> None:
    text, parts = paragraphs(*((one, ProsePart) for one in texts))

    assert text == "\n\n".join(one for one in texts if one)
    assert [text_of(text, part) for part in parts] == [one for one in texts if one]


def test_a_paragraph_is_the_part_that_its_text_is_given() -> None:
    text, parts = paragraphs(
        ("No.", partial(RefusedPart, reason=Reason.NOT_IN_SOURCES)),
        ("", ReplyPart),
        ("It is Greek.", partial(NotePart, code=NoteCode.OTHER_LANGUAGE)),
    )

    assert text == "No.\n\nIt is Greek."
    assert parts == (
        RefusedPart(start_char=0, end_char=3, reason=Reason.NOT_IN_SOURCES),
        NotePart(start_char=5, end_char=17, code=NoteCode.OTHER_LANGUAGE),
    )


def test_a_lead_is_moved_with_its_words() -> None:
    assert moved(LEAD, 10) == LeadPart(start_char=10, end_char=23, words=Span(12, 17))


def test_a_quote_is_moved_with_its_highlights() -> None:
    assert moved(QUOTE, 10) == QuotePart(
        start_char=10, end_char=23, quoted=Span(11, 19), answers=0.5, highlights=(Span(12, 14),)
    )


def test_prose_is_moved_with_the_sentences_that_nothing_supports() -> None:
    assert moved(PROSE, 10) == ProsePart(start_char=10, end_char=23, uncited=(Span(10, 13), Span(14, 19)))


@pytest.mark.parametrize("part", OTHERS, ids=lambda part: part.kind)
def test_a_part_that_is_moved_keeps_what_it_says(part: AnyPart) -> None:
    further = moved(part, 10)

    assert type(further) is type(part)
    assert (further.start_char, further.end_char) == (10, 23)
    assert moved(further, -10) == part


@pytest.mark.parametrize("part", [LEAD, QUOTE, PROSE, *OTHERS], ids=lambda part: part.kind)
def test_a_part_that_is_moved_by_nothing_is_the_same(part: AnyPart) -> None:
    assert moved(part, 0) == part


def test_a_part_cites_what_its_markers_cite_by_their_places() -> None:
    text = "Rain fell. [1][2]\n\nSnow fell. [1]\n\nNobody knows."
    _, parts = paragraphs(*((one, ProsePart) for one in text.split("\n\n")))
    markers = [Span(30, 33), Span(11, 14), Span(14, 17)]

    assert [text_of(text, marker) for marker in markers] == ["[1]", "[1]", "[2]"]
    assert [part.citations for part in cited(parts, markers)] == [(1, 2), (0,), ()]


def test_what_a_part_cited_before_is_forgotten() -> None:
    first = ReplyPart(start_char=0, end_char=9, citations=(4, 5))

    assert cited([first], []) == (ReplyPart(start_char=0, end_char=9),)


def test_parts_of_a_kind_keep_their_order() -> None:
    further = moved(QUOTE, 20)

    assert of_kind([LEAD, QUOTE, PROSE, further], QuotePart) == [QUOTE, further]
    assert of_kind([LEAD], QuotePart) == []


@pytest.mark.parametrize("reason", Reason)
def test_a_refusal_is_what_the_documents_do_not_say(reason: Reason) -> None:
    assert reason.refuses == (reason in {"no_evidence", "not_in_sources", "not_verified"})


@settings(deadline=None)  # the first call loads the sentence model
@given(texts=sentences, form=st.sampled_from(["markdown", "text", "json"]), lead=st.booleans(), data=st.data())
def test_the_parts_of_quotes_tile_them(texts: list[str], form: Format, lead: bool, data: st.DataObject) -> None:
    quotes = quotes_of(*texts)
    at = data.draw(st.integers(0, len(quotes[0].text) - 1))
    length = data.draw(st.integers(1, len(quotes[0].text) - at))
    quotes[0] = highlighted(quotes[0], at, length)

    found = quotation(quotes, form=form, pages={}, lead=quotes[0] if lead else None)

    require_tiling(found.text, found.parts, found.citations)
    if form == "json":
        assert found.parts == (JsonPart(start_char=0, end_char=len(found.text)),)
    else:
        assert len(quotes_in(found.parts)) == len(quotes)
        told = cited(found.parts, [Span(one.answer_start, one.answer_end) for one in found.citations])
        assert [part.citations for part in told] == [(number,) for number in range(len(found.citations))]
