"""Lines of the ledger as CSV rows of the export, and as objects of the API."""

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from zoneinfo import ZoneInfo

from app.usage.reports.csv_text import LINE_END, Cells, are_plain, header
from app.usage.reports.instants import Instants
from app.usage.reports.raw_ledger import Line, WholeEvent
from app.usage.rollups.sums import decimal

COLUMNS = (
    "settled_at",
    "settled_local",
    "accepted_at",
    "event_id",
    "adjustment_id",
    "request_id",
    "operation",
    "status",
    "count_quality",
    "project_id",
    "user_id",
    "api_key_id",
    "model",
    "tokenizer_revision",
    "input_tokens",
    "input_cached_tokens",
    "output_tokens",
    "output_delivered_tokens",
    "max_output_tokens",
    "component_system",
    "component_history",
    "component_context",
    "component_question",
    "component_template",
    "cost",
    "currency",
    "price_ids",
    "first_token_us",
    "total_us",
    "reason",
)
"""The columns of `line_csv`. Times are RFC 3339, `cost` is empty where a call has no price."""


def lines_as_csv(batches: Iterable[Sequence[Line]], zone: ZoneInfo) -> Generator[bytes, None, None]:
    """The header and one CSV row for each line, batch by batch; local times are in `zone`."""
    before, rows = header(COLUMNS).encode(), line_csv(zone)
    for lines in batches:
        yield before + rows(lines)
        before = b""
    yield before


def line_csv(zone: ZoneInfo) -> Callable[[Sequence[Line]], bytes]:
    """A function that writes lines as CSV rows of `COLUMNS`.

    It does not use the `csv` module, which would take a third of an export's time to look for quotes in numbers.
    """
    instants, cells = Instants(zone), Cells()
    prices: dict[str, str] = {}  # by their JSON, which has few different values
    utc = instants.utc

    def rows(lines: Sequence[Line]) -> bytes:
        written = []
        plain = are_plain([line.event_id for line in lines]) and are_plain([line.request_id for line in lines])
        for (
            at,
            event_id,
            adjustment_id,
            request_id,
            operation,
            status,
            count_quality,
            project_id,
            user_id,
            api_key_id,
            model,
            tokenizer_revision,
            accepted_at,
            input_tokens,
            input_cached_tokens,
            output_tokens,
            output_delivered_tokens,
            max_output_tokens,
            tok_system,
            tok_history,
            tok_context,
            tok_question,
            tok_template,
            cost_pico,
            currency,
            price_ids,
            first_token_us,
            total_us,
            reason,
        ) in lines:
            settled_at, settled_local = instants.both(at)
            if price_ids not in prices:
                prices[price_ids] = cells[" ".join(json.loads(price_ids))]
            written.append(
                f"{settled_at},{settled_local},{utc(accepted_at)},{event_id if plain else cells[event_id]},"
                f"{adjustment_id},{request_id if plain else cells[request_id]},{operation},{status},{count_quality},"
                f"{cells[project_id]},{cells[user_id]},{cells[api_key_id]},{cells[model]},{cells[tokenizer_revision]},"
                f"{input_tokens},{input_cached_tokens},{output_tokens},{output_delivered_tokens},{max_output_tokens},"
                f"{tok_system},{tok_history},{tok_context},{tok_question},{tok_template},"
                f"{'' if cost_pico is None else decimal(cost_pico)},{currency},{prices[price_ids]},"
                f"{'' if first_token_us is None else first_token_us},{'' if total_us is None else total_us},"
                f"{cells[reason]}{LINE_END}"
            )
        return "".join(written).encode()

    return rows


def line_objects(zone: ZoneInfo) -> Callable[[Line], dict[str, object]]:
    """A function that makes the API's object of a line, with local times in `zone` and null for empty texts."""
    instants = Instants(zone)

    def to_object(line: Line) -> dict[str, object]:
        settled_at, settled_local = instants.both(line.at)
        return {
            "object": "usage_event",
            "event_id": line.event_id,
            "adjustment_id": line.adjustment_id or None,
            "request_id": line.request_id,
            "operation": line.operation,
            "status": line.status,
            "count_quality": line.count_quality,
            "accepted_at": instants.utc(line.accepted_at),
            "settled_at": settled_at,
            "settled_local": settled_local,
            "project_id": line.project_id or None,
            "user_id": line.user_id,
            "api_key_id": line.api_key_id,
            "model": line.model,
            "tokenizer_revision": line.tokenizer_revision,
            "input_tokens": line.input_tokens,
            "input_cached_tokens": line.input_cached_tokens,
            "output_tokens": line.output_tokens,
            "output_delivered_tokens": line.output_delivered_tokens,
            "max_output_tokens": line.max_output_tokens,
            "components": {
                "system": line.tok_system,
                "history": line.tok_history,
                "context": line.tok_context,
                "question": line.tok_question,
                "template": line.tok_template,
            },
            "cost": _money(line.cost_pico, line.currency),
            "price_ids": json.loads(line.price_ids),
            "first_token_us": line.first_token_us,
            "total_us": line.total_us,
            "reason": line.reason or None,
        }

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
