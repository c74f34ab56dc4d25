"""Sums over settled ledger rows, exact at any size."""

from typing import Any

import sqlalchemy as sa

from app.db.tables_ledger import usage_event
from app.types import UsageStatus

_SPLIT = 10**9  # costs are summed in two halves: one 64-bit sum would overflow above 9.2 million units

_ABORTED = (UsageStatus.CLIENT_ABORT, UsageStatus.SERVER_ABORT)


def _count_if(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


SUMS: tuple[sa.ColumnElement[Any], ...] = (
    sa.func.count().label("calls"),
    _count_if(usage_event.c.status.in_(_ABORTED)).label("aborted"),
    _count_if(usage_event.c.status == UsageStatus.RECOVERED).label("recovered"),
    sa.func.count(usage_event.c.cost_pico).label("priced"),
    sa.func.sum(usage_event.c.cost_pico // sa.literal_column(str(_SPLIT), sa.BigInteger)).label("cost_high"),
    sa.func.sum(usage_event.c.cost_pico % sa.literal_column(str(_SPLIT), sa.BigInteger)).label("cost_low"),
    *(
        sa.func.sum(usage_event.c[name]).label(name)
        for name in (
            "tok_system",
            "tok_history",
            "tok_context",
            "tok_question",
            "tok_template",
            "input_tokens",
            "input_cached_tokens",
            "output_tokens",
            "output_delivered_tokens",
        )
    ),
)
"""What to select from `usage_event`, for `to_result`."""


def to_result(row: sa.RowMapping) -> dict[str, object]:
    """The counts of a row of `SUMS` in the report's words; money as a decimal string, None when nothing is priced."""

    def count(name: str) -> int:
        return int(row[name] or 0)  # no rows: SQL's sum is NULL

    cost = count("cost_high") * _SPLIT + count("cost_low")
    return {
        "input_tokens": count("input_tokens"),
        "input_cached_tokens": count("input_cached_tokens"),
        "input_uncached_tokens": count("input_tokens") - count("input_cached_tokens"),
        "output_tokens": count("output_tokens"),
        "output_delivered_tokens": count("output_delivered_tokens"),
        "num_model_requests": count("calls"),
        "num_aborted": count("aborted"),
        "num_recovered": count("recovered"),
        "num_unpriced": count("calls") - count("priced"),
        "components": {name: count(f"tok_{name}") for name in ("system", "history", "context", "question", "template")},
        "cost": {"value": decimal(cost) if count("priced") else None, "currency": "usd"},
    }


def decimal(pico: int) -> str:
    """Pico-units as units with 12 decimals, exactly."""
    return f"{pico // 10**12}.{pico % 10**12:012d}"
