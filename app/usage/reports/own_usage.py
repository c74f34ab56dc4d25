"""A user's own usage today, this month and in total, and this month's of each key, read from rollups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.usage.rollups.questions import questions_of
from app.usage.rollups.sums import DAYS, MONTHS, NOTHING, SummedTable, Totals
from app.usage.rollups.zones import day_start, month_start


@dataclass(slots=True)
class Period:
    """The usage since `start` (Unix seconds), by operation, and the number of questions that ended."""

    start: int
    totals: dict[str, Totals]
    questions: int = 0

    def add(self, operation: str, some: Totals) -> None:
        """Add totals of an operation."""
        self.totals[operation] = self.totals.get(operation, NOTHING).plus(some)

    def of(self, operations: Sequence[str]) -> Totals:
        """The totals of some operations together."""
        found = NOTHING
        for operation in operations:
            found = found.plus(self.totals.get(operation, NOTHING))
        return found


def own_usage(
    connection: sa.Connection, *, tenant_id: str, user_id: str, zone: ZoneInfo, as_of: int
) -> dict[str, Period]:
    """A user's usage `today`, this `month` and `all_time`; `zone` is the reporting zone, `as_of` Unix seconds."""
    now = as_of * 1_000_000
    day, month = day_start(now, zone), month_start(now, zone)

    def mine(source: SummedTable) -> sa.Select[*tuple[Any, ...]]:
        """The user's rollups; unlike spans of time, an index finds them."""
        operation = source.dimensions["operation"]
        return (
            sa.select(source.at, operation, *source.sums)
            .where(
                source.rows.c.tz == zone.key,
                source.tenant_id == tenant_id,
                source.dimensions["user_id"] == user_id,
            )
            .group_by(source.at, operation)
        )

    periods = {
        "today": Period(day // 1_000_000, {}),
        "month": Period(month // 1_000_000, {}),
        "all_time": Period(0, {}),
    }
    for row in connection.execute(mine(DAYS).where(DAYS.at >= day)):
        periods["today"].add(row[1], Totals.of(row[2:]))
    for row in connection.execute(mine(MONTHS)):
        some = Totals.of(row[2:])
        periods["all_time"].add(row[1], some)
        if row[0] >= month:
            periods["month"].add(row[1], some)
    asked = questions_of(connection, tenant_id=tenant_id, user_id=user_id, since=[day, month, 0])
    for period, count in zip(periods.values(), asked, strict=True):
        period.questions = count
    return periods


def month_by_key(
    connection: sa.Connection, *, tenant_id: str, zone: ZoneInfo, as_of: int
) -> tuple[int, dict[str, Totals]]:
    """The beginning of this month (Unix seconds), and the usage since then by key id; as in `own_usage`."""
    month = month_start(as_of * 1_000_000, zone)
    key_id = MONTHS.dimensions["api_key_id"]
    query = (
        sa.select(key_id, *MONTHS.sums)
        .where(MONTHS.rows.c.tz == zone.key, MONTHS.tenant_id == tenant_id, MONTHS.at == month)
        .group_by(key_id)
    )
    found = {row[0]: Totals.of(row[1:]) for row in connection.execute(query)}
    return month // 1_000_000, found
