"""app.api.anthropic.message_stream names the place of a passage, and cites while an answer is still written."""

from dataclasses import replace

from app.answering.answers.answer import TextDelta
from app.api.anthropic.content_blocks import BlockCitation, BlockText
from app.api.anthropic.message_stream import DocumentNumbers, MessageWriter
from tests.app.api.anthropic.test_content_blocks import FOOTNOTE


def test_a_passage_on_pages_has_its_characters_and_its_pages() -> None:
    numbers = DocumentNumbers()
    numbers.add(["doc_9", "doc_1"])

    characters, pages = numbers.locations(replace(FOOTNOTE, page_start=4, page_end=5))

    assert characters.model_dump() == {
        "type": "char_location",
        "cited_text": "one",
        "document_index": 1,
        "document_title": "a.txt",
        "file_id": "doc_1",
        "start_char_index": 0,
        "end_char_index": 3,
    }
    assert pages.model_dump() == {
        "type": "page_location",
        "cited_text": "one",
        "document_index": 1,
        "document_title": "a.txt",
        "file_id": "doc_1",
        "start_page_number": 4,
        "end_page_number": 6,
    }


def test_a_passage_without_pages_has_characters_alone_and_a_new_document_the_next_number() -> None:
    numbers = DocumentNumbers()
    numbers.add(["doc_9"])

    assert [place.document_index for place in numbers.locations(FOOTNOTE)] == [1]


def test_a_citation_is_told_as_soon_as_a_delta_has_it_and_its_marker_is_held_until_then() -> None:
    writer = MessageWriter(DocumentNumbers())
    cited = replace(FOOTNOTE, answer_start=5, answer_end=8)

    first = list(writer.pieces(TextDelta("Forty [1]", part=0)))
    second = list(writer.pieces(TextDelta(" ships", part=0, citations=(replace(cited, answer_start=6, answer_end=9),))))

    assert first == [BlockText(0, "Forty")]
    assert second == [BlockCitation(0, replace(cited, answer_start=6, answer_end=9)), BlockText(1, " ships")]
