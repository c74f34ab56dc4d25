"""Footnotes open exact passages, whatever the model writes and however it arrives."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.citing.citation import THRESHOLD, Layout
from app.answering.generating.footnote_writer import FootnoteWriter, VerbatimWriter
from app.answering.verification.verifier import Verifier
from ingestion.types import PageRange
from retrieval.types import Source
from tests.app.answering.sources import source

CONTENT = (
    "Northwind's revenue rose 12 percent to 48 million dollars in 2025. The board proposed a dividend of 30 cents. "
    "Zoë Müller became chief financial officer in March. 売上高は増加した。配当は三十円である。 "
    "The plant in Oslo closed on 4 May after a fire destroyed the main turbine hall."
)
SPLIT = CONTENT.index("Zoë")
REFUSAL = "I don't know."
SOURCES = (source(CONTENT[:SPLIT]), source(CONTENT[SPLIT:], number=2, start=SPLIT))


def write(text: str, sources: tuple[Source, ...] = SOURCES, **options: object) -> FootnoteWriter:
    writer = FootnoteWriter(sources, **options)  # type: ignore[arg-type]
    shown = writer.feed(text) + writer.finish()
    assert shown == writer.answer
    return writer


pieces = st.lists(
    st.sampled_from(
        ["Revenue rose 12 percent", "[1]", "[2]", "[7]", "[", "]", "1", " ", ".", "\n", "。", "売上高は増加した", ", ",
         "!", "[1, 2]", "The plant in Oslo closed", "3.5", "[12", "\"", ")", "e.g.", "[ 2 ;", "🙂",
         "|", "`", "```", "\n| a | b |", "\n# ", "[sic]"]
    ),
    max_size=25,
)  # fmt: skip


@settings(deadline=None)
@given(text=pieces.map("".join), cuts=st.lists(st.integers(0, 200), max_size=12), strict=st.booleans())
def test_the_answer_does_not_depend_on_how_the_text_arrives(text, cuts, strict):
    whole = write(text, strict=strict, refusal=REFUSAL)
    parts = FootnoteWriter(SOURCES, strict=strict, refusal=REFUSAL)
    bounds = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    shown = "".join(parts.feed(text[a:b]) for a, b in itertools.pairwise(bounds)) + parts.finish()

    assert shown == parts.answer == whole.answer
    assert parts.citations == whole.citations
    assert parts.uncited == whole.uncited
    assert parts.withheld == whole.withheld


@settings(deadline=None)
@given(text=pieces.map("".join), strict=st.booleans())
def test_every_citation_slices_exactly_and_points_at_its_marker(text, strict):
    writer = write(text, strict=strict, refusal=REFUSAL)

    for citation in writer.citations:
        assert citation.cited_text == CONTENT[citation.start_char : citation.end_char] != ""
        assert writer.answer[citation.answer_start : citation.answer_end] == f"[{citation.index}]"
        assert citation.verified == (citation.support >= THRESHOLD)
    for span in writer.uncited:
        assert writer.answer[span.start_char : span.end_char].strip()


def test_a_marker_the_model_wrote_leads_to_the_sentence_that_supports_it():
    (citation,) = write("Revenue rose 12 percent to 48 million dollars [1].").citations

    assert citation.cited_text == "Northwind's revenue rose 12 percent to 48 million dollars in 2025."
    assert (citation.origin, citation.verified) == ("model", True)


def test_a_marker_after_the_full_stop_belongs_to_the_sentence_before_it():
    writer = write("The board proposed a dividend of 30 cents. [1] The plant in Oslo closed. [2]")

    assert writer.answer == "The board proposed a dividend of 30 cents.[1] The plant in Oslo closed.[2]"
    assert [citation.cited_text[:9] for citation in writer.citations] == ["The board", "The plant"]


def test_a_supported_sentence_without_a_marker_gets_one_and_says_who_placed_it():
    writer = write("The plant in Oslo closed on 4 May.")

    assert writer.answer == "The plant in Oslo closed on 4 May.[2]"
    assert writer.citations[0].origin == "attributed"


def test_an_unsupported_sentence_stays_without_a_footnote_and_is_marked():
    writer = write("Profits in Brazil doubled because of coffee exports.")

    assert writer.citations == []
    assert [writer.answer[span.start_char : span.end_char] for span in writer.uncited] == [writer.answer]


def test_a_number_the_source_does_not_hold_is_not_verified():
    (citation,) = write("Revenue rose 19 percent to 48 million dollars [1].").citations

    assert not citation.verified


@pytest.mark.parametrize("marker", ["[3]", "[0]", "[99]"])
def test_a_marker_of_a_source_that_was_not_presented_is_left_out(marker):
    writer = write(f"The plant in Oslo closed on 4 May {marker}.")

    assert marker not in writer.answer
    assert {citation.index for citation in writer.citations} <= {1, 2}


def test_several_numbers_in_one_bracket_become_several_footnotes():
    writer = write("The board proposed a dividend [1, 2].")

    assert writer.answer == "The board proposed a dividend [1][2]."
    assert [citation.index for citation in writer.citations] == [1, 2]


def test_brackets_that_are_no_markers_stay():
    assert write("An array a[i] and [sic] and [see 4").answer.startswith("An array a[i] and [sic] and [see 4")


def test_sentences_of_scripts_without_spaces_are_told_apart():
    writer = write("売上高は増加した。配当は三十円である。")

    assert writer.answer == "売上高は増加した。[2]配当は三十円である。[2]"
    assert [citation.cited_text for citation in writer.citations] == ["売上高は増加した。", "配当は三十円である。"]


def test_a_passage_of_a_chunk_that_crosses_pages_is_cited_with_its_own_page():
    whole = source(CONTENT, pages=(4, 5))
    pages = {("doc_1", 1): Layout((PageRange(4, 0, SPLIT), PageRange(5, SPLIT, len(CONTENT))))}

    first, second = write(
        "The board proposed a dividend of 30 cents. The plant in Oslo closed on 4 May.", (whole,), pages=pages
    ).citations

    assert (first.page_start, first.page_end) == (4, 4)
    assert (second.page_start, second.page_end) == (5, 5)


def test_a_wrapped_line_does_not_end_a_sentence_and_a_list_item_does():
    wrapped = write("The plant in Oslo closed\non 4 May after a fire.")
    listed = write("- The plant in Oslo closed on 4 May\n- The board proposed a dividend of 30 cents")

    assert wrapped.answer == "The plant in Oslo closed\non 4 May after a fire.[2]"
    assert listed.answer == "- The plant in Oslo closed on 4 May[2]\n- The board proposed a dividend of 30 cents[1]"


def test_an_abbreviation_does_not_end_a_sentence():
    writer = write("The plant of Dr. Zoë Müller vs. the U.S. plant in Oslo closed on 4 May after a fire.")

    (sentence,) = writer.uncited  # too many words the sources lack, but one sentence
    assert writer.answer[sentence.start_char : sentence.end_char] == writer.answer


@given(texts=st.lists(st.text(max_size=20), max_size=8))
def test_a_verbatim_answer_is_the_generated_text_piece_by_piece(texts):
    writer = VerbatimWriter()

    assert [writer.feed(text) for text in texts] == texts
    assert writer.finish() == ""
    assert writer.answer == "".join(texts)
    assert not writer.citations
    assert not writer.uncited


@settings(deadline=None)
@given(text=pieces.map("".join))
def test_a_strict_answer_is_its_verified_sentences_or_the_refusal(text):
    writer = write(text, strict=True, refusal=REFUSAL)

    assert not writer.uncited
    assert not writer.answer[:1].isspace()
    if writer.citations:
        assert any(citation.verified for citation in writer.citations)
        assert not writer.withheld
    else:
        assert writer.answer in {"", REFUSAL}


@settings(deadline=None)
@given(text=pieces.map("".join), cuts=st.lists(st.integers(0, 200), max_size=12))
def test_text_that_closes_no_sentence_cites_nothing(text, cuts):
    writer = FootnoteWriter(SOURCES)
    bounds = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for a, b in itertools.pairwise(bounds):
        closes, known = writer.closes(text[a:b]), len(writer.citations) + len(writer.uncited)
        writer.feed(text[a:b])
        assert closes or len(writer.citations) + len(writer.uncited) == known


def test_a_strict_answer_leaves_out_what_is_not_supported_and_shows_nothing_before_it_is_decided():
    writer = FootnoteWriter(SOURCES, strict=True, refusal=REFUSAL)

    assert writer.feed("Profits in Brazil doubled. The plant in Oslo closed on 4 May") == ""
    assert writer.feed(" [2]. Coffee") == "The plant in Oslo closed on 4 May [2]."
    assert writer.feed(" is grown there.") + writer.finish() == ""
    assert [citation.index for citation in writer.citations] == [2]
    assert not writer.withheld


def test_a_strict_answer_without_a_supported_sentence_becomes_the_refusal():
    writer = write("Profits in Brazil doubled. Coffee did it [1].", strict=True, refusal=REFUSAL)

    assert writer.answer == REFUSAL
    assert writer.withheld
    assert writer.citations == []


def test_a_refusal_is_not_withheld_by_strictness():
    writer = write(REFUSAL, strict=True, refusal=REFUSAL)

    assert writer.answer == REFUSAL
    assert not writer.withheld


def test_the_number_of_a_strict_lists_item_goes_with_its_sentence():
    writer = write(
        "1. Profits in Brazil doubled.\n2. The plant in Oslo closed on 4 May.\n", strict=True, refusal=REFUSAL
    )

    assert writer.answer == "2. The plant in Oslo closed on 4 May.[2]"


def test_a_cited_sentence_that_contradicts_its_source_stays_cited_and_unverified():
    (citation,) = write("Northwind's revenue fell 12 percent to 48 million dollars in 2025 [1].").citations

    assert not citation.verified


@pytest.mark.parametrize("said", ["12%", "12 percent.", "310", "310."])
def test_a_bare_number_is_an_answer_and_gets_its_footnote(said):
    question = "By how much did revenue rise?" if "12" in said else "How many people does the company employ?"
    text = "Revenue rose 12 percent in 2025. The company employs 310 people in Oslo."
    found = source(text, heading="Report")
    writer = FootnoteWriter((found,), verifier=Verifier((found,), question=question))
    writer.feed(said)
    writer.finish()

    (citation,) = writer.citations
    assert (citation.origin, citation.verified) == ("attributed", True)


def test_a_label_of_a_list_is_no_claim():
    question = "How many people does the company employ?"
    found = source("The company employs 310 people in Oslo.", heading="Report")
    writer = FootnoteWriter((found,), verifier=Verifier((found,), question=question))
    writer.feed("1. The company employs 310 people in Oslo.\n2. ")
    writer.finish()

    assert [citation.answer_start > 2 for citation in writer.citations] == [True]


def test_a_marker_of_a_source_that_does_not_support_its_sentence_is_followed_by_one_of_a_source_that_does():
    writer = write("The plant in Oslo closed on 4 May [1].")

    wrong, right = writer.citations
    assert writer.answer == "The plant in Oslo closed on 4 May [1].[2]"
    assert (wrong.index, wrong.origin, wrong.verified) == (1, "model", False)
    assert (right.index, right.origin, right.verified) == (2, "attributed", True)


def test_every_row_of_a_table_but_its_head_is_a_claim_and_its_marker_is_in_its_last_cell():
    table = "| Company | Event |\n|---|---|\n| Northwind | revenue rose 12 percent |\n| Oslo plant | sold in June |"
    writer = write(f"{table}\n\nThe plant in Oslo closed on 4 May.")

    assert "revenue rose 12 percent [1]|\n" in writer.answer
    assert "| Company | Event |\n|---|---|\n" in writer.answer
    (uncited,) = writer.uncited
    assert writer.answer[uncited.start_char : uncited.end_char] == "| Oslo plant | sold in June"
    assert writer.answer.endswith("closed on 4 May.[2]")


def test_a_heading_and_code_claim_nothing_and_brackets_of_code_are_no_markers():
    code = "```py\nplant = arr[1]\nrevenue = [9]\n```"
    writer = write(f"# The plant in Oslo\nIt closed on 4 May [2].\n\n{code}\n")

    assert writer.answer == f"# The plant in Oslo\nIt closed on 4 May [2].\n\n{code}\n"
    assert [one.index for one in writer.citations] == [2]
    assert writer.uncited == []


def test_a_marker_behind_a_code_block_cites_it():
    writer = write("```\nrevenue rose 12 percent\n```\n[1]")

    assert [one.index for one in writer.citations] == [1]
