"""Cuts an answer into text blocks with their citations, as Anthropic's Messages API has them.

A block is the text up to its footnotes; the markers themselves and the white space before them are left out, since
clients of this protocol show citations in their own way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.answering.citing.citation import Citation
from retrieval.footnote_numbers import MARKER, MARKER_START


@dataclass(frozen=True, slots=True)
class BlockText:
    """The next text of a block, by the number of the block."""

    block: int
    text: str


@dataclass(frozen=True, slots=True)
class BlockCitation:
    """A citation of a block, by the number of the block; it is behind the block's last text."""

    block: int
    citation: Citation


BlockPiece = BlockText | BlockCitation


class ContentBlocks:
    """The blocks of one answer, piece by piece. Text that may be a marker waits until its citation is known.

    >>> blocks = ContentBlocks()
    >>> blocks.write("Revenue rose [1]. It fell")
    >>> list(blocks.pieces(citations))
    [BlockText(0, 'Revenue rose'), BlockCitation(0, …), BlockText(1, '. It fell')]
    """

    def __init__(self) -> None:
        self._answer = ""
        self._at = 0
        self._waiting = ""
        self._block = 0
        self._cited = False
        self._citations: list[Citation] = []

    def write(self, text: str) -> None:
        """Take the next text of the answer, with its markers."""
        self._answer += text

    def pieces(self, citations: Iterable[Citation] = (), *, final: bool = False) -> Iterator[BlockPiece]:
        """What is certain now.

        Args:
            citations: Further citations, in their order.
            final: Whether text and citations are complete; what looks like a marker then is text, as in code.
        """
        self._citations += citations
        while self._citations:
            citation = self._citations[0]
            if len(self._answer) < citation.answer_end:
                break
            yield from self._text(citation.answer_start)
            del self._citations[0]
            self._waiting, self._at, self._cited = "", citation.answer_end, True
            yield BlockCitation(self._block, citation)
        yield from self._text(len(self._answer) if final else self._certain())

    def _certain(self) -> int:
        """Where text begins that may be a marker."""
        if (found := MARKER.search(self._answer, self._at)) is not None:
            return found.start()
        begun = MARKER_START.search(self._answer, self._at)
        return len(self._answer) if begun is None else begun.start()

    def _text(self, end: int) -> Iterator[BlockText]:
        text = self._waiting + self._answer[self._at : end]
        shown = text.rstrip()
        self._at, self._waiting = end, text[len(shown) :]
        if not shown:
            return
        if self._cited:
            self._block, self._cited = self._block + 1, False
        yield BlockText(self._block, shown)


def whole_blocks(pieces: Sequence[BlockPiece]) -> list[tuple[str, list[Citation]]]:
    """The text and the citations of each block."""
    blocks: list[tuple[str, list[Citation]]] = []
    for piece in pieces:
        if piece.block == len(blocks):
            blocks.append(("", []))
        text, citations = blocks[piece.block]
        if isinstance(piece, BlockText):
            blocks[piece.block] = (text + piece.text, citations)
        else:
            citations.append(piece.citation)
    return blocks
