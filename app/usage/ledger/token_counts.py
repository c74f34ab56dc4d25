"""Counts the tokens of settled calls for Prometheus."""

import sqlalchemy as sa

from app.telemetry.metrics import Metrics
from app.types import Reservation
from app.usage.ledger.entry import Entry


class TokenCounts:
    """A `Book` that counts the tokens of settled calls for Prometheus."""

    def __init__(self, metrics: Metrics) -> None:
        self._tokens = metrics.tokens

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        """Nothing was spent yet."""

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:  # noqa: ARG002 - the port's signature
        """Count what a call took."""
        by_component = {
            **{name: getattr(entry.components, name) for name in entry.components.__slots__},
            "output": entry.output_tokens,
            "cached": entry.cached_tokens,
        }
        if not entry.operation.generates:
            by_component = {"input": entry.input_tokens}
        for component, count in by_component.items():
            if count > 0:
                self._tokens.labels(entry.operation.value, component).inc(count)
