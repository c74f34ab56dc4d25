"""Updates rollups in each transaction of the ledger: sums by quarter hour, and by day and month of one time zone."""

from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.dialect import PerDialect, advisory_lock, upsert
from app.db.tables.rollups import COST_UNIT, SUMMED, usage_rollup_15m, usage_rollup_day, usage_rollup_month
from app.types import Reservation
from app.usage.ledger.entry import Entry
from app.usage.rollups.facets import add_to_facets
from app.usage.rollups.zones import QUARTER, day_start, month_start


class Rollups:
    """The `LedgerObserver` that adds settled calls and adjustments to the rollups.

    Example:
        >>> ledger = Ledger(database, boot_id, observers=(Rollups(ZoneInfo("Europe/Berlin")),))
    """

    def __init__(self, zone: ZoneInfo) -> None:
        """`zone` is the reporting zone, whose days and months are kept."""
        self._zone = zone

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        """Add nothing: only settled calls are summed."""

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:
        """Add an entry to its quarter hour, day and month, and to the facets of its user and its model."""
        # Calls lock their rows in one order. Re-rating writes hundreds of entries in one transaction, and comes back to
        # rows it has locked, so it could deadlock with calls or another re-rating: it locks the tenant's rollups alone.
        advisory_lock(connection, f"sums:{entry.tenant_id}", shared=entry.calls > 0)
        high, low = divmod(entry.cost_pico or 0, COST_UNIT)
        values: dict[str, Any] = {
            "tenant_id": entry.tenant_id,
            "project_id": entry.project_id,
            "user_id": entry.user_id,
            "api_key_id": entry.key_id,
            "model_id": entry.model,
            "operation": entry.operation,
            "status": entry.status,
            "num_calls": entry.calls,
            "num_unpriced": entry.calls if entry.cost_pico is None else 0,
            **entry.measures._asdict(),
            "cost_high": high,
            "cost_low": low,
        }
        _add(connection, usage_rollup_15m, values | {"bucket_start": entry.at - entry.at % QUARTER})
        tz, day, month = self._zone.key, day_start(entry.at, self._zone), month_start(entry.at, self._zone)
        _add(connection, usage_rollup_day, values | {"tz": tz, "bucket_start": day})
        _add(connection, usage_rollup_month, values | {"tz": tz, "bucket_start": month})
        # last: all calls of a model update the same row, and the next one waits until this transaction ends
        add_to_facets(connection, values, tz=tz, day=day, month=month)


def _add(connection: sa.Connection, table: sa.Table, values: dict[str, Any]) -> None:
    connection.execute(_upsert(table).on(connection), values)


@cache  # every call runs three of these statements, and building one takes longer than running it
def _upsert(table: sa.Table) -> PerDialect[sa.Insert]:
    """Add a row's measures to the row with its dimensions, or insert it."""
    return upsert(table, change=lambda new: {name: table.c[name] + new[name] for name in SUMMED})
