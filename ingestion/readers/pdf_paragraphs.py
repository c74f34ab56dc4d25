"""The lines of a page as paragraphs, headings, list items and table rows.

A line belongs to the paragraph above it when its first word would not have fitted there. Words that
break at a line's end are made whole, unless the document writes them with a hyphen elsewhere.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from ingestion.readers.pdf_lines import PrintedLine
from ingestion.types import BlockKind

_BULLET = re.compile(r"[•‣▪●○◦■□❑➢➤∙⁃◆►–—*-]\s+\S")
_NUMBERED = re.compile(r"(?:\(\w{1,4}\)|\d{1,3}[.)]|[a-zA-Z]\))\s+\S")
_CAPTION = re.compile(r"(?:Figure|Fig\.|Table|Abbildung|Abb\.|Tabelle|Exhibit|Chart)\s+\d", re.IGNORECASE)
_SENTENCE_END = (".", "!", "?", ":", ";", "”", "。")
_NO_HEADING_END = (".", ",", ";", ":", "-", "…")
_LABEL = re.compile(r"[^\W\d_][\w /#&.()'’-]{1,40}:\s+\S")  # `Invoice No.: 12`: one in each of two lines is a form
_PRICE = re.compile(r".{1,60}[$€£¥] ?[\d.,]+\)?$")
_COMPOUND = re.compile(r"(?<!\w)\w++-\w+")
_LAST_WORD, _FIRST_WORD = re.compile(r"(?<!\w)\w++$"), re.compile(r"^\w+")
_WORD_CHARS = 40  # looked at before a hyphen
_HEADING_CHARS = 150
_HEADING_LINES = 3
_MOST_LEVELS = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A block of a page before it has its place in the text; `level` (from 1) is a heading's."""

    kind: BlockKind
    text: str
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Style:
    """How a document sets its text: the height of its prose, those of its headings (largest first), its compounds."""

    body: float
    headings: tuple[float, ...]
    bold_headings: bool
    compounds: frozenset[str]


def document_style(pages: Iterable[Sequence[PrintedLine]]) -> Style:
    """The properties common to the lines of all pages."""
    chars: Counter[float] = Counter()
    bold = total = 0
    compounds: set[str] = set()
    for lines in pages:
        for line in lines:
            size = _rounded(line.size)
            chars[size] += len(line.text)
            total += len(line.text)
            bold += len(line.text) if line.bold else 0
            if "-" in line.text:
                compounds.update(found.lower() for found in _COMPOUND.findall(line.text))
    body = chars.most_common(1)[0][0] if chars else 0.0
    # A height that much of the text has is that of prose, not of a heading.
    larger = [size for size, count in chars.items() if size >= 1.15 * body and count < 0.15 * total]
    return Style(body, tuple(sorted(larger, reverse=True)), bold < 0.3 * total, frozenset(compounds))


def page_pieces(
    blocks: Sequence[Sequence[PrintedLine]], style: Style, named: Mapping[int, int], *, guess: bool
) -> list[Piece]:
    """The pieces of a page whose blocks of lines are in reading order.

    `named` gives the levels of the lines that bookmarks name, by their identity. Headings are guessed
    from height and weight where `guess` says so.
    """
    pieces: list[Piece] = []
    open_end: PrintedLine | None = None  # the last line of a paragraph that may go on in the next block
    for block in blocks:
        for lines in _paragraphs(block, named):
            text = _joined(lines, style.compounds)
            piece = _piece(lines, text, style, named, guess=guess)
            if open_end and piece.kind is BlockKind.PARAGRAPH and _goes_on(open_end, lines[0]):
                before = pieces.pop().text
                piece = Piece(BlockKind.PARAGRAPH, _glued(before, text, open_end, style.compounds))
            pieces.append(piece)
            open_end = lines[-1] if piece.kind is BlockKind.PARAGRAPH else None
    return pieces


def _piece(lines: Sequence[PrintedLine], text: str, style: Style, named: Mapping[int, int], *, guess: bool) -> Piece:
    first = lines[0]
    if id(first) in named:
        return Piece(BlockKind.HEADING, text, named[id(first)])
    if first.furniture or (first.row and not (guess and _is_wide_heading(first, style))):
        return Piece(BlockKind.FURNITURE if first.furniture else BlockKind.TABLE_ROW, text)
    if guess and (level := _guessed_level(lines, text, style)):
        return Piece(BlockKind.HEADING, text, level)
    if _CAPTION.match(text):
        return Piece(BlockKind.CAPTION, text)
    if _BULLET.match(text) or _NUMBERED.match(text):
        return Piece(BlockKind.LIST_ITEM, text)
    return Piece(BlockKind.PARAGRAPH, text)


def _is_wide_heading(line: PrintedLine, style: Style) -> bool:
    """Whether a line of two cells is set as large as headings are: a title and a date beside it."""
    return line.text.count(" | ") == 1 and _rounded(line.size) in style.headings


def _guessed_level(lines: Sequence[PrintedLine], text: str, style: Style) -> int:
    """The level of a heading by its height, after those by its weight alone; 0 for none."""
    first = lines[0]
    if len(lines) > _HEADING_LINES or len(text) > _HEADING_CHARS or not first.upright:
        return 0
    if text.endswith(_NO_HEADING_END) or sum(char.isalpha() for char in text) < 3:
        return 0
    size = min(_rounded(line.size) for line in lines)
    if size in style.headings:
        return min(style.headings.index(size) + 1, _MOST_LEVELS)
    begins = text[0].isupper() or text[0].isdigit() or text[0] == "§"
    if style.bold_headings and begins and size >= 0.95 * style.body and all(line.bold for line in lines):
        return min(len(style.headings), _MOST_LEVELS) + 1
    return 0


def _paragraphs(block: Sequence[PrintedLine], named: Mapping[int, int]) -> list[list[PrintedLine]]:
    """The lines of a block that belong together."""
    edge = max(line.right for line in block)
    pitches = sorted(above.bottom - below.bottom for above, below in pairwise(block))
    usual = pitches[len(pitches) // 2] if pitches else 0.0
    result: list[list[PrintedLine]] = []
    for line in block:
        above = result[-1][-1] if result else None
        if above is None or _begins(line, above, result[-1][0], edge, usual, named):
            result.append([line])
        else:
            result[-1].append(line)
    return result


def _begins(
    line: PrintedLine, above: PrintedLine, first: PrintedLine, edge: float, usual: float, named: Mapping[int, int]
) -> bool:
    """Whether a paragraph begins with `line`, which is below `above` in a paragraph that begins with `first`."""
    if line.furniture or above.furniture:
        return True
    if named.get(id(line)) != named.get(id(above)) or line.row or above.row or line.bold != above.bold:
        return not (line.bold != above.bold and above.hyphen) and not _is_rest_of_cell(line, above, first)
    if above.hyphen or _is_rest_of_cell(line, above, first):
        return False
    resized = abs(line.size - above.size) > 0.12 * above.size
    if resized or _BULLET.match(line.text) or above.bottom - line.bottom > 1.25 * usual + 1:
        return True
    ended = above.text.endswith(_SENTENCE_END)
    width = above.right - above.left
    word = line.text.split(maxsplit=1)[0]
    fits = (edge - above.right) > (len(word) + 2) * width / max(len(above.text), 1)
    numbered = _NUMBERED.match(line.text) and (ended or _NUMBERED.match(first.text))
    listed = any(pattern.match(line.text) and pattern.match(above.text) for pattern in (_LABEL, _PRICE))
    if numbered or listed or (fits and width > 0):
        return True
    marked = _BULLET.match(above.text) or _NUMBERED.match(above.text)
    return ended and not marked and line.left > above.left + 0.8 * line.size


def _is_rest_of_cell(line: PrintedLine, above: PrintedLine, first: PrintedLine) -> bool:
    """Whether `line` goes on with the last cell of a row that begins with `first`, `above` being over `line`."""
    if not first.row or line.row:
        return False
    indented = first.cell_left > first.left + first.size and abs(line.left - first.cell_left) < 0.3 * line.size
    near = 0 < above.bottom - line.bottom < 1.4 * line.size and abs(line.size - first.size) < 0.12 * first.size
    return indented and near and not _LABEL.match(line.text) and not line.text.endswith(":")


def _joined(lines: Sequence[PrintedLine], compounds: Set[str]) -> str:
    text = lines[0].text
    for above, line in pairwise(lines):
        text = _glued(text, line.text, above, compounds, spaced_out=any(other.spaced for other in lines))
    return text


def _glued(text: str, following: str, above: PrintedLine, compounds: Set[str], *, spaced_out: bool = False) -> str:
    """Joins `text`, whose last line is `above`, with the text that follows it."""
    last, next_ = text[-1], following[0]
    written = last in "-\u2010" and len(text) > 1 and text[-2].isalpha() and next_.islower()
    if above.hyphen or written:
        stem = text[:-1] if last in "-\u2010" else text
        head, tail = _LAST_WORD.search(stem[-_WORD_CHARS:]), _FIRST_WORD.search(following)
        compound = f"{head.group()}-{tail.group()}".lower() if head and tail else ""
        whole = bool(compound) and next_.islower() and compound not in compounds
        return f"{stem}{'' if whole else '-'}{following}"
    if _is_wide(last) and _is_wide(next_):
        # Korean has blanks between words: where the file draws them at line ends, a line without one broke inside.
        glued = not above.spaced if spaced_out or above.spaced else not ("가" <= last <= "힣")
        return text + ("" if glued else " ") + following
    return f"{text} {following}"


def _goes_on(above: PrintedLine, line: PrintedLine) -> bool:
    """Whether a paragraph that ends with `above` goes on with `line` in the next column."""
    if line.row or above.row or not (above.upright and line.upright):
        return False
    if abs(line.size - above.size) > 0.12 * above.size or line.bold != above.bold:
        return False
    return line.text[0].islower() and (above.hyphen or not above.text.endswith(_SENTENCE_END))


def _is_wide(char: str) -> bool:
    return "\u2e80" <= char <= "\u9fff" or "가" <= char <= "힣" or "\uf900" <= char <= "\ufaff"


def _rounded(size: float) -> float:
    return round(2 * size) / 2
