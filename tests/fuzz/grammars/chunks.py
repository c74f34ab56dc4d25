"""Documents of every kind of block, cut into passages: exact characters, nothing left out, within the token limit."""

import time
from collections import Counter
from typing import Any

from hypothesis import strategies as st
from tokenizers import Tokenizer

from ingestion.builder import TextBuilder
from ingestion.chunking import Chunker
from ingestion.errors import NoText
from ingestion.furniture import with_furniture
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType
from tests.fuzz.target import Case
from tests.ingestion.small_tokenizer import byte_level, token_count, word_piece
from tests.ingestion.texts import hostile_text

_LONGEST_S = 20
_TOKENIZERS = {"words": word_piece, "bytes": byte_level}
_cell = (
    st.sampled_from(["Ship", "Tons", "Ann", "4", "4.1 kg", "", "x" * 90, "日本", "a | b", "Ship:", "|"]) | hostile_text
)
_row = st.lists(_cell, min_size=1, max_size=4).map(" | ".join)
_text = st.one_of(
    hostile_text, st.sampled_from(["word " * 90, "a!" * 120, "One. Two. " * 20, "日本語。" * 40, "🦆" * 90])
)
_block = st.one_of(
    st.tuples(st.sampled_from(["paragraph", "list_item", "code", "caption", "furniture"]), _text, st.none()),
    st.tuples(st.just("heading"), hostile_text, st.integers(1, 6)),
    st.tuples(st.just("table_row"), _row, st.none()),
)
_table = st.lists(_row, min_size=2, max_size=25).map(lambda rows: [("table_row", row, None) for row in rows])
_page = st.one_of(_block.map(lambda one: [one]), _table, st.just([("page", "", None)]))


class ChunkTarget:
    """Documents built as readers build them, and cut by both kinds of tokenizer."""

    name = "chunks"
    cases: st.SearchStrategy[Case] = st.fixed_dictionaries(
        {
            "blocks": st.lists(_page, max_size=10).map(lambda pages: [list(block) for page in pages for block in page]),
            "tokenizer": st.sampled_from([*_TOKENIZERS]),
            "max_tokens": st.sampled_from([32, 48, 64, 256]),
            "overlap": st.sampled_from([0, 1, 8]),
        }
    )

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()

    def check(self, case: Case) -> None:
        """Build the document and cut it."""
        started = time.process_time()
        try:
            extraction = with_furniture(_built(case["blocks"]))
        except NoText:
            return
        tokenizer = _TOKENIZERS[case["tokenizer"]]()
        check_passages(extraction, tokenizer, max_tokens=case["max_tokens"], overlap=case["overlap"])
        assert time.process_time() - started < _LONGEST_S, "it took too long"


def _built(blocks: list[list[Any]]) -> Extraction:
    builder = TextBuilder(ExtractionLimits())
    pages = 0
    for kind, text, level in blocks:
        if kind == "page":
            pages += 1
            builder.begin_page(pages)
        else:
            builder.append(BlockKind(kind), text, level=level)
    return builder.build(MediaType.DOCX)


def check_passages(
    extraction: Extraction, tokenizer: Tokenizer | None = None, *, max_tokens: int = 64, overlap: int = 8
) -> None:
    """Cut an extraction and require of its passages what `Chunker` promises."""
    tokenizer = tokenizer or word_piece()
    text = extraction.text
    left = list(text)
    last_start, last_end = -1, -1
    for ordinal, passage in enumerate(Chunker(tokenizer, max_tokens=max_tokens, overlap=overlap).chunk(extraction)):
        start, end = passage.start_char, passage.end_char
        assert passage.ordinal == ordinal, "an ordinal is left out"
        assert passage.text == text[start:end], f"characters {start} to {end} are others"
        assert passage.text.strip(), f"the passage from {start} is blank"
        assert passage.embedding_text.endswith(passage.text), "the embedded text is another"
        assert start >= last_start and end > last_end, f"{start} to {end} lies inside the passage before"
        assert passage.token_count == token_count(tokenizer, passage.embedding_text), "the tokens are miscounted"
        assert passage.token_count <= max_tokens, f"{passage.token_count} tokens are more than {max_tokens}"
        for number in (passage.page_start, passage.page_end):
            assert number is None or number in {page.number for page in extraction.pages}, f"no page {number}"
        left[start:end] = " " * (end - start)
        last_start, last_end = start, end
    for block in extraction.blocks:
        if block.kind is BlockKind.FURNITURE:
            left[block.start_char : block.end_char] = " " * (block.end_char - block.start_char)
    assert not "".join(left).strip(), f"no passage has {''.join(left).strip()[:40]!r}"
