"""Rebuilds rollups: a range of time from the ledger on demand, or all days and months for another time zone."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.dialect import advisory_lock, lock_tables
from app.db.session import Database
from app.db.tables.ledger import usage_event
from app.db.tables.prices import usage_adjustment
from app.db.tables.rollups import (
    SUMMED,
    usage_rollup_15m,
    usage_rollup_day,
    usage_rollup_facet,
    usage_rollup_month,
    usage_rollup_zone,
)
from app.db.tables.usage_columns import STORED_DIMENSIONS, Measures
from app.errors import InvalidRequest, SetupError
from app.telemetry.logs import logger
from app.usage.ledger.entry import ADJUSTMENT
from app.usage.rollups.buckets import LATEST
from app.usage.rollups.facets import build_facets
from app.usage.rollups.sums import high, low, of_adjusted
from app.usage.rollups.zones import QUARTER, day_start, month_start, next_day, next_month

_MOST_SECONDS = 31 * 86_400 + 3600  # a month of local days
_ROLLUPS = (usage_rollup_15m, usage_rollup_day, usage_rollup_month, usage_rollup_facet)


class RollupBuilder:
    """Rebuilds the rollups of one installation; `zone` is the reporting zone, `clock` gives Unix seconds.

    Example:
        >>> builder = RollupBuilder(database, ZoneInfo("Europe/Berlin"))
        >>> builder.ensure_zone()  # at start: rebuilds days and months if the zone was changed
        >>> builder.rebuild(tenant_id="t1", start=start, end=end)
        31
    """

    def __init__(self, database: Database, zone: ZoneInfo, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._zone = zone
        self._clock = clock

    def ensure_zone(self) -> bool:
        """Rebuild days and months if they are of another zone; False if there was nothing to do.

        Call it at start, before anything is settled. A month of one tenant is one transaction; after a crash in between
        the rebuild starts again.
        """
        with self._database.read() as connection:
            if connection.execute(sa.select(usage_rollup_zone.c.tz)).scalars().all() == [self._zone.key]:
                return False
        with self._database.write() as connection:
            for table in (usage_rollup_zone, usage_rollup_day, usage_rollup_month, usage_rollup_facet):
                connection.execute(sa.delete(table))
        for tenant_id, month in self._months():
            with self._database.write() as connection:
                self._build_days(connection, tenant_id, month)
                self._build_month(connection, tenant_id, month)
        with self._database.write() as connection:
            built = round(self._clock() * 1_000_000)
            connection.execute(sa.insert(usage_rollup_zone).values(tz=self._zone.key, built_at=built))
        logger().info("rollups.built", tz=self._zone.key)
        return True

    def require_zone(self) -> None:
        """Check that days and months are of the reporting zone, for a process beside others, which rebuilds nothing.

        Raises:
            SetupError: They are of another zone.
        """
        with self._database.write() as connection:
            advisory_lock(connection, "zone")
            kept = connection.execute(sa.select(usage_rollup_zone.c.tz)).scalars().all()
            if not kept:  # nothing was settled yet
                built = round(self._clock() * 1_000_000)
                connection.execute(sa.insert(usage_rollup_zone).values(tz=self._zone.key, built_at=built))
        if kept and kept != [self._zone.key]:
            raise SetupError(
                f"The sums of this database are of the time zone {kept[0]}. Set FOOTNOTE_REPORTING_ZONE to it; to "
                "change it, stop all processes and start one without FOOTNOTE_SHARED."
            )

    def rebuild(self, *, tenant_id: str, start: int, end: int) -> int:
        """Rebuild a tenant's rollups that overlap `[start, end)`, Unix seconds, from the ledger; returns how many days.

        Calls may settle meanwhile: each day is one transaction that locks the rollups.

        Raises:
            InvalidRequest: The range is not valid, or longer than 31 days; `param` names it.
            StoreUnavailable, StorageFull: The remaining days and months were not rebuilt.
        """
        if not 0 <= start <= LATEST:
            raise InvalidRequest("start_time must be Unix seconds.", param="start_time")
        if not start < end <= LATEST:
            raise InvalidRequest("end_time must be after start_time.", param="end_time")
        if end - start > _MOST_SECONDS:
            raise InvalidRequest("Rebuild at most 31 days at a time.", param="end_time")
        first, last = start * 1_000_000, end * 1_000_000
        days, day = 0, day_start(first, self._zone)
        while day < last:
            with self._database.write() as connection:
                _lock(connection)
                self._build_quarters(connection, tenant_id, day)
                self._build_day(connection, tenant_id, day)
            days, day = days + 1, next_day(day, self._zone)
        month = month_start(first, self._zone)
        while month < last:
            with self._database.write() as connection:
                _lock(connection)
                self._build_month(connection, tenant_id, month)
            month = next_month(month, self._zone)
        return days

    def _months(self) -> Iterator[tuple[str, int]]:
        """Every tenant and local month with rollups of quarter hours."""
        table, tenant_id = usage_rollup_15m, ""
        while True:
            with self._database.read() as connection:  # finds the next tenant in the primary key
                following = sa.select(sa.func.min(table.c.tenant_id)).where(table.c.tenant_id > tenant_id)
                found = connection.execute(following).scalar()
                if found is None:
                    return
                tenant_id = found
                edges = sa.select(sa.func.min(table.c.bucket_start), sa.func.max(table.c.bucket_start))
                first, last = connection.execute(edges.where(table.c.tenant_id == tenant_id)).one()
            month = month_start(first, self._zone)
            while month <= last:
                yield tenant_id, month
                month = next_month(month, self._zone)

    def _build_quarters(self, connection: sa.Connection, tenant_id: str, day: int) -> None:
        """Rebuild the quarter hours that overlap a day, from the calls and adjustments in the ledger."""
        start, end = day - day % QUARTER, next_day(day, self._zone)
        end += -end % QUARTER
        table, event, adjustment = usage_rollup_15m.c, usage_event.c, usage_adjustment.c
        _remove(connection, usage_rollup_15m, table.tenant_id == tenant_id, start, end)
        calls = sa.func.count()
        for rows, tenant, at, line, status, numbers in (
            (
                usage_event,
                event.tenant_id,
                event.settled_at,
                event,
                event.status,
                (calls, calls - sa.func.count(event.cost_pico)),
            ),
            (
                usage_adjustment.join(usage_event, event.event_id == adjustment.event_id),
                of_adjusted(event.tenant_id),
                adjustment.created_at,
                adjustment,
                sa.literal_column(f"'{ADJUSTMENT}'", sa.Text),
                (sa.literal_column("0"), sa.literal_column("0")),
            ),
        ):
            keys = [at - at % sa.literal_column(str(QUARTER), sa.BigInteger)]
            keys += [status if name == "status" else event[name] for name in STORED_DIMENSIONS]
            costs = (sa.func.coalesce(sa.func.sum(part(line.cost_pico)), 0) for part in (high, low))
            measures = (*numbers, *(sa.func.sum(line[name]) for name in Measures._fields), *costs)
            lines = (
                sa.select(event.tenant_id, *keys, *measures)
                .select_from(rows)
                .where(tenant == tenant_id, at >= start, at < end)
                .group_by(*(sa.literal_column(str(place)) for place in range(1, len(keys) + 2)))
            )
            connection.execute(
                sa.insert(usage_rollup_15m).from_select(
                    ["tenant_id", "bucket_start", *STORED_DIMENSIONS, *SUMMED], lines
                )
            )

    def _build_days(self, connection: sa.Connection, tenant_id: str, month: int) -> None:
        """Build all days of a month that has none yet."""
        edges, end = [month], next_month(month, self._zone)
        while edges[-1] < end:
            edges.append(next_day(edges[-1], self._zone))
        columns = (sa.column("since", sa.BigInteger), sa.column("until", sa.BigInteger))
        day, source = sa.values(*columns, name="day").data([*pairwise(edges)]).cte("day"), usage_rollup_15m.c
        keys = (day.c.since, *(source[name] for name in STORED_DIMENSIONS))
        inside = sa.and_(source.bucket_start >= day.c.since, source.bucket_start < day.c.until)
        sums = (
            sa.select(
                sa.literal(self._zone.key, sa.Text),
                sa.literal(tenant_id, sa.Text),
                *keys,
                *(sa.func.sum(source[name]) for name in SUMMED),
            )
            .select_from(day.join(usage_rollup_15m, inside))
            .where(source.tenant_id == tenant_id)
            .group_by(*keys)
        )
        names = ["tz", "tenant_id", "bucket_start", *STORED_DIMENSIONS, *SUMMED]
        connection.execute(sa.insert(usage_rollup_day).from_select(names, sums))
        build_facets(connection, "day", tz=self._zone.key, tenant_id=tenant_id, start=month, end=end)

    def _build_day(self, connection: sa.Connection, tenant_id: str, day: int) -> None:
        end = next_day(day, self._zone)
        self._build(connection, tenant_id, usage_rollup_day, day, usage_rollup_15m, end)
        build_facets(connection, "day", tz=self._zone.key, tenant_id=tenant_id, start=day, end=end)

    def _build_month(self, connection: sa.Connection, tenant_id: str, month: int) -> None:
        end = next_month(month, self._zone)
        self._build(connection, tenant_id, usage_rollup_month, month, usage_rollup_day, end)
        build_facets(connection, "month", tz=self._zone.key, tenant_id=tenant_id, start=month, end=end)

    def _build(
        self, connection: sa.Connection, tenant_id: str, table: sa.Table, start: int, source: sa.Table, end: int
    ) -> None:
        """Rebuild one bucket of `table` from the buckets of `source` in `[start, end)`."""

        def mine(rows: sa.Table) -> sa.ColumnElement[bool]:
            tenant = rows.c.tenant_id == tenant_id
            return sa.and_(rows.c.tz == self._zone.key, tenant) if "tz" in rows.c else tenant

        _remove(connection, table, mine(table), start, start + 1)
        dimensions = [source.c[name] for name in STORED_DIMENSIONS]
        constants: tuple[sa.ColumnElement[Any], ...] = (
            sa.literal(self._zone.key, sa.Text),
            sa.literal(tenant_id, sa.Text),
            sa.literal(start, sa.BigInteger),
        )
        sums = (
            sa.select(*constants, *dimensions, *(sa.func.sum(source.c[name]) for name in SUMMED))
            .where(mine(source), source.c.bucket_start >= start, source.c.bucket_start < end)
            .group_by(*dimensions)
        )
        names = ["tz", "tenant_id", "bucket_start", *STORED_DIMENSIONS, *SUMMED]
        connection.execute(sa.insert(table).from_select(names, sums))


def _remove(connection: sa.Connection, table: sa.Table, mine: sa.ColumnElement[bool], start: int, end: int) -> None:
    connection.execute(sa.delete(table).where(mine, table.c.bucket_start >= start, table.c.bucket_start < end))


def _lock(connection: sa.Connection) -> None:
    """Lock the rollups against other writers until this transaction ends, in the order of `Rollups.settle_in`."""
    lock_tables(connection, *_ROLLUPS, mode="SHARE ROW EXCLUSIVE")
