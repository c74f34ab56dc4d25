"""ingestion.chunking: passages cover the text, fit the embedder and point at what they quote."""

import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from ingestion.builder import TextBuilder
from ingestion.chunking import Chunker
from ingestion.types import BlockKind, ChunkDraft, Extraction, ExtractionLimits, MediaType
from tests.ingestion.small_tokenizer import byte_level, token_count, word_piece
from tests.ingestion.texts import hostile_text

MAX_TOKENS = 48
FURNITURE = 0  # the level of a part that is no content

each_tokenizer = pytest.mark.parametrize("tokenizer", [word_piece, byte_level], ids=["wordpiece", "byte-level"])


def document(*parts: tuple[int, str] | str) -> Extraction:
    builder = TextBuilder(ExtractionLimits())
    for part in parts:
        if isinstance(part, str):
            builder.append(BlockKind.PARAGRAPH, part)
        elif part[0] == FURNITURE:
            builder.append(BlockKind.FURNITURE, part[1])
        else:
            builder.append(BlockKind.HEADING, part[1], level=part[0])
    return builder.build(MediaType.HTML)


def check(extraction: Extraction, passages: list[ChunkDraft], tokenizer: Tokenizer, *, max_tokens: int) -> None:
    """Everything `Chunker` promises of any document."""
    covered = bytearray(len(extraction.text))
    for passage in passages:
        assert passage.text == extraction.text[passage.start_char : passage.end_char]
        assert passage.text.strip() == passage.text != ""
        assert passage.embedding_text.endswith(passage.text)
        assert passage.token_count == token_count(tokenizer, passage.embedding_text) <= max_tokens
        covered[passage.start_char : passage.end_char] = b"\1" * len(passage.text)
    for block in extraction.blocks:
        if block.kind is BlockKind.FURNITURE:
            assert not any(covered[block.start_char : block.end_char])
            covered[block.start_char : block.end_char] = b"\1" * (block.end_char - block.start_char)
    assert not "".join(char for char, seen in zip(extraction.text, covered, strict=True) if not seen).strip()
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    spans = [(passage.start_char, passage.end_char) for passage in passages]
    assert spans == sorted(spans)
    assert [end for _, end in spans] == sorted({end for _, end in spans})  # none lies inside another


parts = st.lists(st.one_of(hostile_text, st.tuples(st.integers(FURNITURE, 3), hostile_text)), max_size=8)


@each_tokenizer
@settings(deadline=None)  # the first example trains the tokenizer
@given(parts=parts)
def test_any_document_is_covered_by_passages_that_fit(
    tokenizer: Callable[[], Tokenizer], parts: list[tuple[int, str] | str]
) -> None:
    extraction = document("some text", *parts)
    chunker = Chunker(tokenizer(), max_tokens=MAX_TOKENS, overlap=8)

    check(extraction, chunker.chunk(extraction), tokenizer(), max_tokens=MAX_TOKENS)


PROSE = "The quick brown fox jumps over the lazy dog. " * 40
HOSTILE = {
    "prose": PROSE,
    "one line of words": "word " * 2000,
    "no blanks": "a!" * 2000,
    "one word": "a" * 20_000,
    "blanks": "a" + " " * 30_000 + "b",
    "lines": "a\n" * 2000,
    "emoji": "🦆" * 3000,
    "joined emoji": "👩‍👩‍👧" * 800,
    "no spaces, many bytes": "日本語の文章です。" * 400,
    "accents": "e\u0301" * 3000,
}


@each_tokenizer
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_cut_like_any_other(tokenizer: Callable[[], Tokenizer], text: str) -> None:
    extraction = document((1, "Title"), text)

    passages = Chunker(tokenizer(), max_tokens=MAX_TOKENS, overlap=8).chunk(extraction)

    check(extraction, passages, tokenizer(), max_tokens=MAX_TOKENS)
    # To WordPiece a long word is one token: a passage is bounded in characters as well.
    assert max(len(passage.text) for passage in passages) <= 16 * MAX_TOKENS


@pytest.mark.parametrize("name", ["no blanks", "blanks", "one line of words", "one word"])
def test_time_grows_with_the_length_of_hostile_text_and_no_faster(name: str) -> None:
    chunker = Chunker(word_piece(), max_tokens=MAX_TOKENS, overlap=8)

    def seconds(text: str) -> float:
        extraction = document(text)
        started = time.process_time()
        chunker.chunk(extraction)
        return time.process_time() - started

    short = min(seconds(HOSTILE[name] * 2) for _ in range(3))
    long = seconds(HOSTILE[name] * 16)

    assert long < 8 * short * 3 + 0.2  # eight times the text; quadratic would be 64


def test_headings_stand_before_the_text_that_is_embedded() -> None:
    extraction = document((1, "Annual report"), "Intro " * 40, (2, "Revenue"), "Revenue rose by 12%. " * 5)

    last = Chunker(word_piece(), max_tokens=MAX_TOKENS, overlap=8).chunk(extraction)[-1]

    assert last.heading_path == ("Annual report", "Revenue")
    assert last.embedding_text == f"Annual report > Revenue\n{last.text}"


def test_of_a_path_too_long_the_innermost_headings_stay() -> None:
    extraction = document((1, "one two three four five six " * 9), (2, "Revenue"), PROSE)

    passages = Chunker(word_piece(), max_tokens=MAX_TOKENS, overlap=8).chunk(extraction)

    assert all(passage.embedding_text == f"Revenue\n{passage.text}" for passage in passages[1:])
    assert len(passages[-1].heading_path) == 2


def test_a_passage_never_crosses_a_heading_of_a_section_that_can_stand_alone() -> None:
    extraction = document((1, "One"), PROSE, (1, "Two"), PROSE)
    boundary = extraction.text.index("Two\n")

    passages = Chunker(word_piece(), max_tokens=MAX_TOKENS, overlap=8).chunk(extraction)

    assert not [p for p in passages if p.start_char < boundary < p.end_char]
    assert {p.heading_path for p in passages} == {("One",), ("Two",)}


def test_neighbours_overlap_when_asked_to() -> None:
    extraction = document(PROSE)

    apart = Chunker(word_piece(), max_tokens=MAX_TOKENS, overlap=0).chunk(extraction)
    overlapping = Chunker(word_piece(), max_tokens=MAX_TOKENS, overlap=12).chunk(extraction)

    assert all(one.end_char <= other.start_char for one, other in pairwise(apart))
    assert any(one.end_char > other.start_char for one, other in pairwise(overlapping))


def test_a_passage_knows_the_pages_it_stands_on() -> None:
    builder = TextBuilder(ExtractionLimits())
    for number, text in enumerate(["first page.", "", "third page.", PROSE], start=1):
        builder.begin_page(number)
        builder.append(BlockKind.PARAGRAPH, text)
    extraction = builder.build(MediaType.PDF)

    passages = Chunker(word_piece(), max_tokens=256, overlap=32).chunk(extraction)

    for passage in passages:
        on = {
            page.number
            for page in extraction.pages
            if page.start_char < passage.end_char and passage.start_char < page.end_char
        }
        assert (passage.page_start, passage.page_end) == (min(on), max(on))
    assert passages[0].page_start == 1
    assert passages[-1].page_end == 4


def test_without_pages_a_passage_has_none() -> None:
    passage = Chunker(word_piece(), max_tokens=256, overlap=32).chunk(document("text"))[0]

    assert (passage.page_start, passage.page_end) == (None, None)


def test_the_tokenizer_given_is_left_as_it_was() -> None:
    before = word_piece().to_str()

    Chunker(word_piece(), max_tokens=256, overlap=32)

    assert word_piece().to_str() == before


@pytest.mark.parametrize(("max_tokens", "overlap"), [(16, 0), (256, 65), (256, -1)])
def test_limits_that_leave_no_room_are_refused(max_tokens: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        Chunker(word_piece(), max_tokens=max_tokens, overlap=overlap)
