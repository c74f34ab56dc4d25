r"""Rich Text documents (RTF 1.9.1): paragraphs, headings by outline level, and tables by row.

striprtf converts the markup to plain text. What it would lose (ends of rows and cells, headings)
is marked beforehand by private-use characters that it keeps.
"""

import re
from pathlib import Path

from striprtf.striprtf import rtf_to_text

from ingestion.builder import TextBuilder, one_line
from ingestion.readers.table_rows import append_table
from ingestion.types import BlockKind, Extraction, ExtractionLimits, MediaType

_ROW, _CELL, _ROW_END, _PARAGRAPH = "\ue000", "\ue001", "\ue002", "\ue003"
_LEVELS = "\ue010\ue011\ue012\ue013\ue014\ue015\ue016\ue017\ue018"  # \outlinelevel0 to 8; 9 is body text
_OUR_MARKS = re.compile("[\ue000-\ue003\ue010-\ue018]")
_MARKS = {"trowd": _ROW, "cell": _CELL, "nestcell": _CELL, "row": _ROW_END, "nestrow": _ROW_END, "pard": _PARAGRAPH}
# A control word with its number and the blank that ends it; an escaped backslash begins none.
_WORD = re.compile(r"(\\\\)|\\(trowd|nestcell|cell|nestrow|row|pard|outlinelevel([0-8]))(?![a-z0-9])( ?)")
_LINK = re.compile(r"\\field\b")
_TITLE = re.compile(r"\{\\title ([^{}\\]{1,300})\}")
_ITEM = re.compile("(?:[•·\uf0b7\uf0a7▪◦-]|([0-9]{1,3}[.)]|[a-z][.)]))\t")  # the mark before an item's text


def read_rtf(path: Path, limits: ExtractionLimits) -> Extraction:
    """Read a Rich Text document; pictures, headers and footers are left out.

    Raises:
        IngestionError: See `ports.Extractor`.
    """
    source = _OUR_MARKS.sub("", path.read_bytes().decode("cp1252", errors="replace"))
    title = _TITLE.search(source)
    # striprtf looks for links by a pattern that takes cubic time on hostile text; none are wanted.
    marked = _LINK.sub(" ", _WORD.sub(_marked, source))
    text: str = rtf_to_text(marked, errors="replace")  # type: ignore[no-untyped-call]
    # A character outside the basic plane is written as the two halves that UTF-16 makes of it.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    builder = TextBuilder(limits)
    table: list[list[str]] = []
    *rows, rest = text.split(_ROW_END)
    for piece in rows:
        before, row = _row(piece, first=not table)
        if _OUR_MARKS.sub("", before).strip():
            append_table(table, builder)
            table = []
            _append_paragraphs(before, builder)
        table.append([one_line(_OUR_MARKS.sub(" ", cell)) for cell in row.split(_CELL)[:-1]])
    append_table(table, builder)
    _append_paragraphs(rest, builder)
    return builder.build(MediaType.RTF, declared=title[1] if title else None)


def _marked(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    mark = _LEVELS[int(match[3])] if match[3] else _MARKS[match[2]]
    return f"{match[0]}{'' if match[4] else ' '}{mark}" if match[2] == "pard" else mark


def _row(piece: str, *, first: bool) -> tuple[str, str]:
    """The text before the row that ends `piece`, and the row; only the first row of a table marks its start."""
    if _ROW in piece:
        before, _, row = piece.partition(_ROW)
        return before, row
    start = piece.rfind("\n", 0, piece.find(_CELL)) + 1 if first and _CELL in piece else 0
    return piece[:start], piece[start:]


def _append_paragraphs(text: str, builder: TextBuilder) -> None:
    level: int | None = None
    for line in text.split("\n"):
        for mark in _OUR_MARKS.findall(line):
            level = _LEVELS.index(mark) + 1 if mark in _LEVELS else None
        shown = _OUR_MARKS.sub("", line).strip()
        item = _ITEM.match(shown)
        if level is not None:
            builder.append(BlockKind.HEADING, shown, level=level)
        elif item:
            number = item[1] or ""
            builder.append(BlockKind.LIST_ITEM, f"{number} {shown[item.end() :]}".strip())
        else:
            builder.append(BlockKind.PARAGRAPH, shown)
