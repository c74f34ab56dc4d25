"""Reports as tables: the columns of each export and its rows, made from the pages of the API."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.db.tables.usage_columns import COUNTED, DIMENSIONS, MEASURES, PARTS
from app.usage.reports.csv_text import Cell
from app.usage.reports.instants import rfc3339_seconds

Page: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, Any]

_TIMES = ("start_time", "end_time", "start_local")
_MOMENTS = frozenset({"start_time", "end_time", "created_at", "asked_at", "last_asked_at", "last_cited_at", "reset_at"})
_DIMENSIONS = ("tenant_id", *DIMENSIONS)
_NUMBERS = ("num_model_requests", "num_aborted", "num_recovered", "num_unpriced")
_TOKENS = (*COUNTED, *(MEASURES[part].heading for part in PARTS))

MONEY = frozenset({"cost", "amount", "ingest_cost", "context_cost"})
"""Columns of amounts: decimal strings, with a minus if negative."""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A report as a table. `rows` gives the rows of one page of the API's report."""

    name: str
    columns: tuple[str, ...]
    rows: Callable[[Page], Iterator[Row]]

    def cells(self, row: Row) -> list[Cell]:
        """A row's cells, in the order of the columns; times are RFC 3339."""
        flat = dict(_flat(row))
        assert flat.keys() <= {*self.columns}, "every field of a report has a column"
        return [flat.get(column) for column in self.columns]


def bucket_rows(page: Page) -> Iterator[Row]:
    """The results of a page of buckets, each with its bucket's times."""
    for bucket in page["data"]:
        for result in bucket["results"]:
            yield {**{name: bucket[name] for name in _TIMES}, **result}


def listed_rows(page: Page) -> Iterator[Row]:
    """The items of a page of a list."""
    return iter(page["data"])


def document_rows(page: Page) -> Iterator[Row]:
    """The documents of a page, each with the time range of the page."""
    for result in page["data"]:
        yield {"start_time": page["start_time"], "end_time": page["end_time"], **result}


CALLS = ReportTable(
    "usage",
    (*_TIMES, *_DIMENSIONS, "num_answers", *_NUMBERS, *COUNTED, "total_tokens", "cost", "currency"),
    bucket_rows,
)
COMPLETIONS = ReportTable("completions", (*_TIMES, *_DIMENSIONS, *_NUMBERS, *_TOKENS, "cost", "currency"), bucket_rows)
EMBEDDINGS = ReportTable(
    "embeddings", (*_TIMES, *_DIMENSIONS, *_NUMBERS, "input_tokens", "cost", "currency"), bucket_rows
)
RERANK = ReportTable("rerank", EMBEDDINGS.columns, bucket_rows)
JUDGE = ReportTable("judge", EMBEDDINGS.columns, bucket_rows)
COSTS = ReportTable(
    "costs",
    (
        *_TIMES,
        *_DIMENSIONS,
        "line_item",
        "document_id",
        "num_unpriced",
        "quantity",
        "quantity_unit",
        "amount",
        "currency",
    ),
    bucket_rows,
)
DOCUMENTS = ReportTable(
    "documents",
    (
        "start_time",
        "end_time",
        "document_id",
        "name",
        "deleted",
        "collection_id",
        "num_ingests",
        "ingest_tokens",
        "ingest_cost",
        "num_retrieved",
        "context_tokens",
        "context_cost",
        "num_cited",
        "num_citations",
        "cost",
        "currency",
    ),
    document_rows,
)


def _flat(row: Row) -> Iterator[tuple[str, Cell]]:
    """Flatten a row: amounts and currencies, and each component, become columns; Booleans become words."""
    for name, value in row.items():
        match value:
            case {"value": amount, "currency": currency}:
                yield name, amount
                yield "currency", currency
            case dict():
                yield from ((f"component_{part}", count) for part, count in value.items())
            case bool():
                yield name, "true" if value else "false"
            case int() if name in _MOMENTS:
                yield name, rfc3339_seconds(value)
            case _ if name != "object":
                yield name, value
