"""Compression: chunks that overlap, touch or repeat each other."""

from dataclasses import replace

from retrieval.compress import compress
from retrieval.types import Hit
from tests.retrieval.compressing import count_words, shown
from tests.retrieval.fakes import chunk, hit, ranked
from tests.retrieval.promises import check, reasons


def test_the_same_text_again_is_a_duplicate_whatever_its_case_and_spacing() -> None:
    hits = ranked("Acme  rose.\nIt fell.", "ACME rose. It fell.", "Other.")

    context = compress(hits, query="acme", budget=100, count_tokens=count_words)

    assert reasons(context) == {"chunk_2": "duplicate"}
    assert [source.hit.chunk.key for source in context.sources] == [1, 3]


def test_a_duplicate_of_what_did_not_fit_gets_its_own_chance() -> None:
    hits = [
        hit(chunk(1, "Acme rose.", filename="a very long name of a file that eats the budget")),
        hit(chunk(2, "Acme rose.", document_id="d")),
    ]

    context = compress(hits, query="acme", budget=5, count_tokens=count_words)

    assert reasons(context) == {"chunk_1": "budget"}
    assert shown(context) == ["Acme rose."]


CONTENT = "One is first. Two is second. Three is third. Four is fourth."


def overlapping(*ranges: tuple[int, int]) -> list[Hit]:
    return [
        hit(chunk(key, CONTENT[start:end], start_char=start), rank=key)
        for key, (start, end) in enumerate(ranges, start=1)
    ]


def test_overlapping_chunks_of_a_document_are_one_source_with_each_character_once() -> None:
    hits = overlapping((14, 50), (0, 21), (45, 60))

    context = compress(hits, query="", budget=100, count_tokens=count_words)

    assert shown(context) == [CONTENT]
    assert reasons(context) == {"chunk_2": "merged", "chunk_3": "merged"}
    assert [found.id for found in context.sources[0].chunks] == ["chunk_2", "chunk_1", "chunk_3"]
    assert context.sources[0].hit.chunk.id == "chunk_1"
    assert not context.sources[0].compressed
    check(context, hits, budget=100, count=count_words)


def test_merged_chunks_have_the_table_header_of_the_first_of_them() -> None:
    best, first = overlapping((14, 50), (0, 21))
    best = replace(best, chunk=replace(best.chunk, table_header="of the best"))
    first = replace(first, chunk=replace(first.chunk, table_header="of the first"))

    (source,) = compress([best, first], query="", budget=100, count_tokens=count_words).sources

    assert source.hit.chunk.table_header == "of the first"


def test_a_span_leads_to_the_chunk_it_was_found_in() -> None:
    hits = overlapping((0, 30), (28, 60))
    source = compress(hits, query="first fourth", budget=9, count_tokens=count_words).sources[0]

    assert [source.chunk_at(span).id for span in source.spans] == ["chunk_1", "chunk_2"]


def test_of_merged_chunks_the_best_that_is_still_there_gives_its_name() -> None:
    hits = overlapping((0, 28), (28, 60))

    context = compress(hits, query="fourth", budget=6, count_tokens=count_words)

    assert shown(context) == ["Four is fourth."] or shown(context) == ["Four is fourth"]
    assert context.sources[0].hit.chunk.id == "chunk_2"
    assert reasons(context) == {"chunk_1": "budget"}


def test_chunks_that_touch_are_merged_under_one_heading_only() -> None:
    under = [("R", "A"), ("R", "A"), ("R", "B")]
    hits = [
        hit(chunk(key, CONTENT[start:end], start_char=start, heading_path=heading, page_start=key, page_end=key))
        for key, (start, end), heading in zip((1, 2, 3), ((0, 14), (14, 28), (28, 60)), under, strict=True)
    ]

    context = compress(hits, query="", budget=100, count_tokens=count_words)

    assert shown(context) == ["One is first. Two is second.", "Three is third. Four is fourth."]
    assert context.sources[0].header == "[1] a.txt, pages 1-2 — A\n"


def test_what_a_better_hit_nearly_says_is_a_duplicate_unless_a_number_differs() -> None:
    text = "Revenue of Acme rose by 3 percent in the second quarter, its report to the investors says. " * 4
    hits = ranked(text + "It was read by many people.", text + "It was read by many persons.", text.replace("3", "8"))

    context = compress(hits, query="acme", budget=1000, count_tokens=count_words)

    assert reasons(context) == {"chunk_2": "duplicate"}


def test_a_chunk_inside_another_is_a_duplicate() -> None:
    context = compress(overlapping((0, 60), (14, 28)), query="", budget=100, count_tokens=count_words)

    assert reasons(context) == {"chunk_2": "duplicate"}


def test_other_versions_and_documents_do_not_overlap() -> None:
    hits = [
        hit(chunk(1, CONTENT)),
        hit(chunk(2, CONTENT[:28], version=2)),
        hit(chunk(3, CONTENT[14:], document_id="doc_2", start_char=14)),
    ]

    context = compress(hits, query="", budget=100, count_tokens=count_words)

    assert len(context.sources) == 3


def test_spans_are_offsets_of_the_document_not_of_the_chunk() -> None:
    context = compress([hit(chunk(1, "  Acme rose. ", start_char=1000))], query="", budget=100, count_tokens=len)

    assert [(span.start_char, span.end_char) for span in context.sources[0].spans] == [(1002, 1012)]
    assert not context.sources[0].compressed
