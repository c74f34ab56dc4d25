"""What a report is asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.usage.reports.csv_text import Cell
from app.usage.reports.instants import rfc3339_seconds
from app.usage.rollups.sums import Only


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    """One page of one report. Times are Unix seconds, `[start, end)`, `end` None until now.

    `tz` None is the reporting zone. `group_by` and the filters (None: all) are in the words of the API; `statuses` may
    name `adjustment`. `limit` is buckets a page, `page` the `next_page` of the page before.
    """

    tenant_id: str
    start: int
    end: int | None = None
    bucket_width: str = "1d"
    tz: str | None = None
    group_by: Sequence[str] = ()
    project_ids: Sequence[str] | None = None
    user_ids: Sequence[str] | None = None
    api_key_ids: Sequence[str] | None = None
    models: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    limit: int | None = None
    page: str | None = None

    def only(self, operations: Sequence[str] | None = None) -> Only:
        """The filters by dimension, and the operations the report is about (None: all)."""
        chosen = {
            "project_id": self.project_ids,
            "user_id": self.user_ids,
            "api_key_id": self.api_key_ids,
            "model": self.models,
            "status": self.statuses,
            "operation": operations,
        }
        return {name: values for name, values in chosen.items() if values is not None}


Page: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Mapping[str, Any]

_TIMES = ("start_time", "end_time", "start_local")
_DIMENSIONS = ("tenant_id", "project_id", "user_id", "api_key_id", "model", "operation", "status")
_NUMBERS = ("num_model_requests", "num_aborted", "num_recovered", "num_unpriced")
_TOKENS = (
    "input_tokens",
    "input_cached_tokens",
    "input_uncached_tokens",
    "output_tokens",
    "output_delivered_tokens",
    "component_system",
    "component_history",
    "component_context",
    "component_question",
    "component_template",
)

MONEY = frozenset({"cost", "amount", "ingest_cost", "context_cost"})
"""Columns of amounts, decimal strings with a minus where they are negative."""


@dataclass(frozen=True, slots=True)
class Table:
    """A report as a table: how it is called, its columns, and the rows of one of its pages as the API has them."""

    name: str
    columns: tuple[str, ...]
    rows: Callable[[Page], Iterator[Row]]

    def cells(self, row: Row) -> list[Cell]:
        """A row's cells, in the order of the columns; times are RFC 3339."""
        flat = dict(_flat(row))
        assert flat.keys() <= {*self.columns}, "a report has no number that its table lacks"
        return [flat.get(column) for column in self.columns]


def bucket_rows(page: Page) -> Iterator[Row]:
    """The results of a page of buckets, each with the times of its bucket."""
    for bucket in page["data"]:
        for result in bucket["results"]:
            yield {**{name: bucket[name] for name in _TIMES}, **result}


def document_rows(page: Page) -> Iterator[Row]:
    """The documents of a page, each with the range that its numbers are of."""
    for result in page["data"]:
        yield {"start_time": page["start_time"], "end_time": page["end_time"], **result}


COMPLETIONS = Table("completions", (*_TIMES, *_DIMENSIONS, *_NUMBERS, *_TOKENS, "cost", "currency"), bucket_rows)
EMBEDDINGS = Table("embeddings", (*_TIMES, *_DIMENSIONS, *_NUMBERS, "input_tokens", "cost", "currency"), bucket_rows)
RERANK = Table("rerank", EMBEDDINGS.columns, bucket_rows)
JUDGE = Table("judge", EMBEDDINGS.columns, bucket_rows)
COSTS = Table(
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
DOCUMENTS = Table(
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
    """Amounts lose their currency to a column of its own, components get a column each, Booleans are words."""
    for name, value in row.items():
        match value:
            case {"value": amount, "currency": currency}:
                yield name, amount
                yield "currency", currency
            case dict():
                yield from ((f"component_{part}", count) for part, count in value.items())
            case bool():
                yield name, "true" if value else "false"
            case int() if name in {"start_time", "end_time"}:
                yield name, rfc3339_seconds(value)
            case _ if name != "object":
                yield name, value
