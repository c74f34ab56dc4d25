"""Shows a language model the rows of a table that began before a passage with the names of their columns.

A row by itself ("Total | 1 | 2 | 3") does not say which number is which. A table whose first row is in the passage says
so itself. The footnote still cites the row as it is in the document.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from app.answering.quoting.columns import RULE, TableRows, columns_of, is_line_of_table, placed
from retrieval.compress import ELLIPSIS, END
from retrieval.types import Chunk, Source, Span


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a chunk: its place in the chunk's text, and how it is shown.

    `unnamed` says that it is a row of a table which began before the chunk, and whose columns have no certain names.
    """

    text: str
    start: int
    shown: str
    unnamed: bool = False

    @property
    def end(self) -> int:
        """The place of its line break."""
        return self.start + len(self.text)


def with_named_rows(source: Source) -> Source:
    """A source whose body has the names of the columns in each row of a table that began before it.

    Where they are not certain, a body that begins inside the table begins with the table's header. A summary stays as
    it is. The tokens are those of `source`, so they must be counted again.
    """
    chunk = source.hit.chunk
    if source.body != ELLIPSIS.join(map(chunk.text_at, source.spans)) + END:
        return source
    lines = _lines(chunk)
    first = source.spans[0].start_char - chunk.start_char
    header = f"{chunk.table_header}\n" if any(one.unnamed and one.start <= first <= one.end for one in lines) else ""
    return replace(source, body=header + ELLIPSIS.join(_text_at(lines, chunk, span) for span in source.spans) + END)


def _lines(chunk: Chunk) -> list[_Line]:
    lines: list[_Line] = []
    start = 0
    for is_table, group in groupby(chunk.text.split("\n"), key=is_line_of_table):
        texts = tuple(group)
        began_before = is_table and start == 0 and bool(chunk.table_header)
        named = _named(TableRows((), texts, (), cut=True), chunk.table_header) if began_before else texts
        for text, shown in zip(texts, named or texts, strict=True):
            lines.append(_Line(text, start, shown, unnamed=named is None))
            start += len(text) + 1
    return lines


def _named(rows: TableRows, table_header: str) -> Sequence[str] | None:
    """The lines of a table, each row with the names; None where none are certain."""
    columns = columns_of(rows, table_header)
    if columns is None:
        return None
    if columns.repeated or columns.own:
        return rows.lines
    shown: list[str] = []
    for line in rows.lines:
        if RULE.fullmatch(line):
            shown.append(line)
        elif (row := placed(line, columns.names)) is not None:
            pairs = zip(columns.names, row, strict=True)
            shown.append(" | ".join(f"{name}: {cell.text}" if name else cell.text for name, cell in pairs if cell.text))
        else:  # it is no row of these columns, and the others may not be either
            return None
    return shown


def _text_at(lines: Sequence[_Line], chunk: Chunk, span: Span) -> str:
    """The text of a span, its whole lines as they are shown; a line that it cuts stays as it is."""
    start, end = span.start_char - chunk.start_char, span.end_char - chunk.start_char
    texts: list[str] = []
    for line in lines:
        if line.end < start or line.start > end:
            continue
        kept = line.text[max(start - line.start, 0) : end - line.start]
        whole = kept in {line.text, line.text.strip(" |")}
        texts.append(line.shown if whole else kept)
    return "\n".join(texts)
