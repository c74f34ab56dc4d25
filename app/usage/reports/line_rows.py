"""Lines of the ledger as CSV rows of the export, and as objects of the API."""

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from app.db.tables.usage_columns import LINE, SHOWN, Form, LedgerLine, Measures, UsageColumn
from app.usage.reports.csv_text import LINE_END, Cells, are_plain, header
from app.usage.reports.instants import Instants
from app.usage.reports.raw_ledger import WholeEvent
from app.usage.rollups.sums import decimal

COLUMNS = tuple(
    heading
    for column in SHOWN
    for heading in ((column.heading, column.localised) if column.localised else (column.heading,))
)
"""The columns of `line_csv`. Times are RFC 3339, `cost` is empty where a call has no price."""


def lines_as_csv(batches: Iterable[Sequence[LedgerLine]], zone: ZoneInfo) -> Generator[bytes, None, None]:
    """The header and one CSV row for each line, batch by batch; local times are in `zone`."""
    before, rows = header(COLUMNS).encode(), line_csv(zone)
    for lines in batches:
        yield before + rows(lines)
        before = b""
    yield before


def line_csv(zone: ZoneInfo) -> Callable[[Sequence[LedgerLine]], bytes]:
    """A function that writes lines as CSV rows of `COLUMNS`, column by column.

    It does not use the `csv` module, which would take a third of an export's time to look for quotes in numbers.
    """
    instants, cells, row = Instants(zone), Cells(), ",".join(["%s"] * len(SHOWN)) + LINE_END
    prices: dict[str, str] = {}  # by their JSON, which has few different values

    def listed(ids: str) -> str:
        if ids not in prices:
            prices[ids] = cells[" ".join(json.loads(ids))]
        return prices[ids]

    def written(column: UsageColumn, values: Sequence[Any]) -> Iterable[str | int]:
        """The cells of a column; of a time that is shown twice, both with their comma."""
        shown: Iterable[str | int] = values
        match column.form:
            case Form.TIME:
                shown = map(",".join, map(instants.both, values)) if column.localised else map(instants.utc, values)
            case Form.TEXT:
                shown = map(cells.__getitem__, values)
            case Form.IDENTIFIER if not are_plain(values):
                shown = map(cells.__getitem__, values)
            case Form.PRICES:
                shown = map(listed, values)
            case Form.MONEY:
                shown = ["" if value is None else decimal(value) for value in values]
            case Form.COUNT if None in values:
                shown = ["" if value is None else value for value in values]
        return shown

    def rows(lines: Sequence[LedgerLine]) -> bytes:
        fields = dict(zip(LedgerLine._fields, zip(*lines, strict=True), strict=True))
        fields |= zip(Measures._fields, zip(*fields["measures"], strict=True), strict=True)
        columns = [written(column, fields[column.name]) for column in SHOWN]
        return "".join(map(row.__mod__, zip(*columns, strict=True))).encode()

    return rows


def line_objects(zone: ZoneInfo) -> Callable[[LedgerLine], dict[str, object]]:
    """A function that makes the API's object of a line, with local times in `zone` and null for empty texts."""
    instants = Instants(zone)

    def to_object(line: LedgerLine) -> dict[str, object]:
        shown: dict[str, object] = {"object": "usage_event"}
        for column in SHOWN:
            value = getattr(line if column.name in LINE else line.measures, column.name)
            match column.form:
                case Form.TIME:
                    shown[column.label], local = instants.both(value)
                    shown |= {column.localised: local} if column.localised else {}
                case Form.MONEY:
                    shown[column.label] = _money(value, line.currency)
                case Form.PRICES:
                    shown[column.label] = json.loads(value)
                case _ if column.part_of:
                    shown["components"] = line.measures.parts
                case _ if column.name != "currency":  # told with the cost
                    shown[column.label] = (value or None) if column.optional else value
        return shown

    return to_object


def whole_object(whole: WholeEvent, zone: ZoneInfo) -> dict[str, object]:
    """The API's object of a call with its documents, prices and adjustments; `total_cost` includes adjustments."""
    to_object = line_objects(zone)
    costs = [line.cost_pico for line in (whole.line, *whole.adjustments) if line.cost_pico is not None]
    return {
        **to_object(whole.line),
        "documents": [
            {"document_id": share.document_id, "chunks": share.chunks, "tokens": share.tokens}
            for share in whole.documents
        ],
        "prices": [
            {
                "price_id": noted.price_id,
                "meter": noted.meter,
                "cost_per_token": _money(noted.pico_per_token, noted.currency),
            }
            for noted in whole.prices
        ],
        "adjustments": [to_object(line) for line in whole.adjustments],
        "total_cost": _money(sum(costs) if costs else None, whole.line.currency),
    }


def _money(pico: int | None, currency: str) -> dict[str, object]:
    return {"value": None if pico is None else decimal(pico), "currency": currency}
