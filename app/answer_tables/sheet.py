"""A table as CSV (RFC 4180): a row for each document; for each question its answer, state, place and quote."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

from app.db.answer_tables import AnswerTable, TableCell, TableRow
from app.usage.reports.csv_text import Cell, csv_text
from app.usage.rollups.sums import decimal


def sheet(table: AnswerTable, pages: Iterable[Iterable[TableRow]]) -> Generator[bytes, None, None]:
    """The file in pieces, one for each page of rows; texts that a spreadsheet could run as a formula are escaped.

    The first columns are `document_id` and `document`. Each question has four: the answer under its name, which is
    the words of the document that answer where a few do, and the text otherwise; `state`, which is `confirmed` for an
    answer whose footnotes are verified; the `page` (or sheet and cells, or section) and the `quote` of its first
    footnote. The last are `tokens` and `cost` of the row.
    """
    columns = ["document_id", "document"]
    for column in table.columns:
        columns += [column.name, *(f"{column.name} ({part})" for part in ("state", "page", "quote"))]
    return csv_text([*columns, "tokens", "cost"], (map(_cells, rows) for rows in pages))


def _cells(row: TableRow) -> Iterator[Cell]:
    yield row.document_id
    yield row.filename
    for cell in row.cells:
        yield from _written(cell)
    yield row.bill.tokens
    yield None if row.bill.cost_pico is None else decimal(row.bill.cost_pico)


def _written(cell: TableCell) -> tuple[Cell, Cell, Cell, Cell]:
    answer = cell.answer
    if answer is None:
        return cell.error if cell.state == "failed" else None, cell.state, None, None
    cited: Mapping[str, Any] = next(iter(answer["citations"]), {})
    confirmed = cell.state == "answered" and answer["verified"]
    text = answer["value"] or answer["answer"]
    return text, "confirmed" if confirmed else cell.state, _place(cited), cited.get("cited_text")


def _place(cited: Mapping[str, Any]) -> str | None:
    """Where a footnote is: cells of a sheet, pages, or the heading above it."""
    if cited.get("sheet") or cited.get("cell"):
        return "!".join(str(part) for part in (cited.get("sheet"), cited.get("cell")) if part)
    first, last = cited.get("page_start"), cited.get("page_end")
    if first is not None:
        return str(first) if last in {None, first} else f"{first}-{last}"
    section = cited.get("section")
    return None if section is None else str(section)
