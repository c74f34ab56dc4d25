"""app.api.anthropic.content_blocks cuts an answer at its footnotes, whole or piece by piece, and loses no text."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.citing.citation import Citation
from app.api.anthropic.content_blocks import BlockPiece, BlockText, ContentBlocks, whole_blocks

FOOTNOTE = Citation(
    index=1,
    answer_start=0,
    answer_end=0,
    document_id="doc_1",
    version=1,
    filename="a.txt",
    chunk_id="chk_1",
    page_start=None,
    page_end=None,
    start_char=0,
    end_char=3,
    cited_text="one",
    verified=True,
    support=1.0,
    origin="model",
)


def cited(answer: str, marker: str, *, at: int = 0) -> Citation:
    start = answer.index(marker, at)
    return replace(FOOTNOTE, answer_start=start, answer_end=start + len(marker))


def pieces_of(answer: str, citations: list[Citation], *, cuts: list[int], known: list[int]) -> list[BlockPiece]:
    """The pieces where text comes in parts cut at `cuts`, and citation i with the part number `known[i]`."""
    blocks, pieces, told = ContentBlocks(), list[BlockPiece](), 0
    ends = [*sorted({cut for cut in cuts if 0 < cut < len(answer)}), len(answer)]
    for part, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        blocks.write(answer[start:end])
        new = [one for index, one in enumerate(citations) if index >= told and known[index] <= part]
        new = new if all(one.answer_start < end for one in new) else []
        told += len(new)
        pieces += blocks.pieces(new)
    return [*pieces, *blocks.pieces(citations[told:], final=True)]


@pytest.mark.parametrize(
    ("answer", "markers", "blocks"),
    [
        ("Forty ships [1]. Two sank [2].", ["[1]", "[2]"], [("Forty ships", 1), (". Two sank", 1), (".", 0)]),
        ("Forty ships. [1][2]", ["[1]", "[2]"], [("Forty ships.", 2)]),
        ("See `a[1]` in it.", [], [("See `a[1]` in it.", 0)]),
        ("See `a[1]` there [1]", ["[1]2"], [("See `a[1]` there", 1)]),
        ("[1] says so\n", ["[1]"], [("", 1), (" says so", 0)]),
        ("", [], []),
    ],
)
def test_a_block_ends_at_its_footnotes(answer: str, markers: list[str], blocks: list[tuple[str, int]]) -> None:
    citations = [
        cited(answer, marker[:3], at=10 if marker.endswith("2") and len(marker) > 3 else 0) for marker in markers
    ]

    pieces = pieces_of(answer, citations, cuts=[], known=[0] * len(citations))

    assert [(text, len(found)) for text, found in whole_blocks(pieces)] == blocks


WORDS = ["ships", " ", "\n", "[1]", "[12]", "a[3]", ".", "[", "]", " [2]", "|"]


@given(st.data())
def test_however_it_comes_the_blocks_are_the_answer_without_its_footnotes(data: st.DataObject) -> None:
    answer, spans = "", list[tuple[int, int]]()
    for _ in range(data.draw(st.integers(0, 12))):
        word = data.draw(st.sampled_from(WORDS))
        if data.draw(st.booleans()) and word.strip().startswith("[") and word.endswith("]") and len(word) > 1:
            spans.append((len(answer) + len(word) - len(word.lstrip()), len(answer) + len(word)))
        answer += word
    citations = [replace(FOOTNOTE, answer_start=start, answer_end=end) for start, end in spans]
    cuts = data.draw(st.lists(st.integers(1, max(1, len(answer))), max_size=6))
    known = sorted(data.draw(st.lists(st.integers(0, 7), min_size=len(spans), max_size=len(spans))))

    pieces = pieces_of(answer, citations, cuts=cuts, known=known)
    expected, at = "", 0
    for start, end in spans:
        expected, at = expected + answer[at:start].rstrip(), end
    expected += answer[at:].rstrip()

    whole = whole_blocks(pieces_of(answer, citations, cuts=[], known=[0] * len(spans)))
    assert whole_blocks(pieces) == whole
    assert "".join(text for text, _ in whole) == expected
    assert [one for _, found in whole for one in found] == citations
    assert all(found for _, found in whole[:-1]), "only the last block may have no citation"
    assert all(piece.text for piece in pieces if isinstance(piece, BlockText))
