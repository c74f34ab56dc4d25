"""app.answering.quoting.candidates: units of the sources with their characters, and the passages that are read."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.quoting.candidates import Candidate, candidates_of, passages_of
from retrieval.compress import compress
from retrieval.types import Hit, Source, Span
from tests.app.answering.sources import source
from tests.retrieval.fakes import chunk, hit

TEXT = "The plant in Oslo closed on 4 May after a fire. Nobody was hurt."
PRICES = "| Part | Price |\n|---|---|\n| Bolt | 3 EUR |\n| Nut | 4 EUR |"


def presented(hits: Sequence[Hit], *, budget: int = 10_000) -> tuple[Source, ...]:
    return compress(
        hits,
        query="",
        budget=budget,
        count_tokens=lambda text: len(text.split()),
        order=lambda found: list(range(len(found))),
    ).sources


def slice_of(one: Candidate, span: Span) -> str:
    held = one.source.hit.chunk
    return held.text[span.start_char - held.start_char : span.end_char - held.start_char]


def test_candidates_are_the_documents_own_characters() -> None:
    first, second = candidates_of([source(TEXT, start=100)])

    assert (first.text, second.text) == ("The plant in Oslo closed on 4 May after a fire.", "Nobody was hurt.")
    assert (first.span, second.span) == (Span(100, 147), Span(148, 164))
    assert (first.core, first.core_text, first.pieces) == (first.span, first.text, (first.span,))


def test_a_row_is_scored_by_itself_and_quoted_with_its_header() -> None:
    bolt = candidates_of([source(PRICES, start=7)])[0]

    assert bolt.text == "| Part | Price |\n|---|---|\n| Bolt | 3 EUR |"
    assert bolt.core_text == "| Bolt | 3 EUR |"
    assert [slice_of(bolt, piece) for piece in bolt.pieces] == ["Bolt", "3 EUR"]


def test_a_heading_that_is_above_the_passage_is_no_candidate() -> None:
    under = source("# Revenue\n\nA bolt costs 3 EUR.\n\n## Costs", heading="Revenue")
    found = candidates_of([under])

    assert [one.text for one in found] == ["# Revenue\n\nA bolt costs 3 EUR."]
    assert [one.text for one in candidates_of([source("# Revenue", heading="Revenue")])] == []


@pytest.mark.parametrize(
    "text",
    [
        "33. Vale, Mira. Lamps of the North. Journal of Harbours 12 (2004): 1-9.",
        "References\n\n33. Vale, Mira. Lamps of the North. Journal of Harbours 12 (2004): 1-9.",
        "28 U.S.C. § 589b",
        "[11]",
        "Ibid., p. 4.",
    ],
)
def test_references_and_bare_citations_are_no_candidates(text: str) -> None:
    found = candidates_of([source(f"The lamps burn whale oil.\n\n{text}\n\nThey were lit at dusk.")])

    assert [one.text for one in found] == ["The lamps burn whale oil.", "They were lit at dusk."]


@pytest.mark.parametrize(
    "heading",
    [
        "## Costs",
        "Lamp Oil",
        "Duties of the Keeper of the Northern Lamp",
        "2.1 Keepers",
        "**Keepers**",
    ],
)
def test_a_heading_alone_is_no_candidate(heading: str) -> None:
    found = candidates_of([source(f"They burn oil.\n\n{heading}\n\n| 1 | 3 EUR |", heading="Keepers")])

    assert [one.text for one in found] == ["They burn oil.", "| 1 | 3 EUR |"]


def test_the_title_of_the_document_and_the_headings_of_its_other_passages_are_no_candidates() -> None:
    first, second = (
        source("They burn oil.", heading="Costs of 2004"),
        source("Costs of 2004\n\n1\n\nLamps, 3rd edition"),
    )
    titled = replace(second, hit=replace(second.hit, chunk=replace(second.hit.chunk, title="Lamps, 3rd edition")))

    assert [one.text for one in candidates_of([first, titled])] == ["They burn oil.", "1"]


@pytest.mark.parametrize(
    "line",
    [
        "Governing law: Norway",
        "The keeper trims the wick every evening",
        "Mira Vale\nTom Orr\nAnn Poe",
        "| Wick | the part that burns |\n| Burner | the part below |",
    ],
    ids=["labelled", "a sentence without a stop", "names", "a glossary"],
)
def test_lines_that_only_look_like_headings_are_candidates(line: str) -> None:
    found = candidates_of([source(f"They burn oil.\n\n{line}\n\n| 1 | 3 EUR |")])

    assert {part for one in found for part in one.text.split("\n")} >= set(line.split("\n"))


@pytest.mark.parametrize(
    ("text", "is_one"), [("x", False), ("(b)", False), ("i. v.", False), ("5", True), ("no", True), ("是", True)]
)
def test_what_is_shorter_than_a_word_is_no_candidate(text: str, is_one: bool) -> None:
    assert bool(candidates_of([source(text)])) == is_one


def test_every_word_of_the_sources_is_in_a_candidate() -> None:
    sources = [source(TEXT, number=1), source(PRICES, number=2)]
    words = {word for one in candidates_of(sources) for word in re.findall(r"\w+", one.text)}

    assert words == set(re.findall(r"\w+", f"{TEXT} {PRICES}"))


def test_the_heading_is_read_above_the_text_and_is_no_piece() -> None:
    (read,) = passages_of(candidates_of([source(TEXT, heading="Closures")]))

    assert read.text == f"Closures\n{TEXT}"
    assert [read.text[piece.start_char : piece.end_char] for piece in read.pieces] == [
        "The plant in Oslo closed on 4 May after a fire.",
        "Nobody was hurt.",
    ]
    assert (read.candidates, read.owners, read.starts) == ((0, 1), (0, 1), (0, 48))


def test_a_table_that_began_before_the_passage_is_read_with_its_header() -> None:
    row = source("| Bolt | 3 EUR |", heading="Prices")
    headed = replace(row, hit=replace(row.hit, chunk=replace(row.hit.chunk, table_header="Part | Price")))

    (read,) = passages_of(candidates_of([headed]))

    assert read.text == "Prices\nPart | Price\n| Bolt | 3 EUR |"


def test_chunks_that_touch_are_one_source_and_are_read_apart() -> None:
    whole = "The plant closed in May. Nobody was hurt. It opened again in June. Everybody came."
    cut = whole.index("It opened")
    hits = [hit(chunk(1, whole[:cut]), rank=1), hit(chunk(2, whole[cut:], start_char=cut), rank=2)]
    (merged,) = presented(hits)

    found = candidates_of([merged])
    first, second = passages_of(found)

    assert [one.text for one in found] == [
        "The plant closed in May.",
        "Nobody was hurt.",
        "It opened again in June.",
        "Everybody came.",
    ]
    assert (first.text, second.text) == (whole[:cut].rstrip(), whole[cut:])
    assert (first.candidates, second.candidates) == ((0, 1), (2, 3))


parts = st.lists(
    st.sampled_from(
        [
            "Rain fell. ",
            "# Prices\n\n",
            "We open at nine. ",
            "Our values are:\n",
            "- trust\n",
            PRICES + "\n\n",
            "売上高。",
        ]
    ),
    min_size=1,
    max_size=8,
).map("".join)


def test_a_sentence_below_a_heading_in_another_chunk_is_read_in_its_own() -> None:
    heading, sentence = "# Prices\n\n", "Rain fell. "
    found = candidates_of(presented([hit(chunk(1, heading)), hit(chunk(2, sentence, start_char=10), rank=2)], budget=6))
    (passage,) = passages_of(found)

    assert [passage.text[piece.start_char : piece.end_char] for piece in passage.pieces] == ["Rain fell."]


@settings(deadline=None)
@given(text=parts, data=st.data())
def test_passages_hold_the_exact_characters_of_every_piece(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, 50), label="start")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=3), label="cuts"))
    overlap = data.draw(st.integers(0, 12), label="overlap")
    bounds = [0, *cuts, len(text)]
    hits = [
        hit(
            chunk(key, text[max(0, first - overlap) : last], start_char=start + max(0, first - overlap)),
            rank=key,
        )
        for key, (first, last) in enumerate(pairwise(bounds), start=1)
        if text[first:last].strip()
    ]
    sources = presented(hits, budget=data.draw(st.integers(1, 80), label="budget"))
    found = candidates_of(sources)

    for one in found:
        assert one.text == slice_of(one, one.span) == text[one.span.start_char - start : one.span.end_char - start]
        assert one.core_text == slice_of(one, one.core)
        assert any(s.start_char <= one.span.start_char and one.span.end_char <= s.end_char for s in one.source.spans)
    read = passages_of(found)
    assert sorted(place for passage in read for place in passage.candidates) == list(range(len(found)))
    for passage in read:
        assert set(passage.owners) <= set(passage.candidates)
        for piece, owner, first in zip(passage.pieces, passage.owners, passage.starts, strict=True):
            words = passage.text[piece.start_char : piece.end_char]
            held = Span(first, first + len(words))
            assert words == slice_of(found[owner], held) != ""
            assert any(
                one.start_char <= held.start_char and held.end_char <= one.end_char for one in found[owner].pieces
            )
    assert {owner for passage in read for owner in passage.owners} == {
        place for place, one in enumerate(found) if one.pieces
    }
