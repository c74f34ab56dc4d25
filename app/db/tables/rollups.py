"""Sums of the ledger by quarter hour, day and month, and the engine's own counters to compare them with.

Times are Unix microseconds. A quarter hour, because every IANA offset in use is a multiple of it: the days of any zone
are whole numbers of them. Days and months are those of the one reporting zone. Dimensions are never NULL: `''` is none.
A sum of costs is `cost_high * COST_UNIT + cost_low` pico-units: in one 64-bit number it would end at 9.2 million units,
which is too little in some currencies.
"""

import sqlalchemy as sa

from app.db.tables.documents import metadata
from app.db.tables.usage_columns import STORED_DIMENSIONS, Measures

SUMMED = ("num_calls", "num_unpriced", *Measures._fields, "cost_high", "cost_low")
"""The summed columns."""

STATUS_COUNTS = ("num_aborted", "num_recovered", "num_adjustments")
"""Counts of facets, which have no status: aborted and recovered calls, and 1 where there are adjustments."""

FACETS = ("user_id", "model_id")
"""Dimensions that have their own sums, by column name of the ledger."""

COST_UNIT = 10**9
"""Pico-units that `cost_high` counts."""


def _dimensions() -> list[sa.Column[str]]:
    """The dimensions besides tenant and time. Adjustments have the status `adjustment`."""
    return [sa.Column(name, sa.Text, primary_key=True) for name in STORED_DIMENSIONS]


def _measure(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))


def _measures() -> list[sa.Column[int]]:
    return [_measure(name) for name in SUMMED]


usage_rollup_15m = sa.Table(
    "usage_rollup_15m",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("bucket_start", sa.BigInteger, primary_key=True),
    *_dimensions(),
    *_measures(),
    sqlite_with_rowid=False,
)

usage_rollup_day = sa.Table(
    "usage_rollup_day",
    metadata,
    sa.Column("tz", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("bucket_start", sa.BigInteger, primary_key=True),  # the local day's first moment
    *_dimensions(),
    *_measures(),
    sqlite_with_rowid=False,
)

usage_rollup_month = sa.Table(
    "usage_rollup_month",
    metadata,
    sa.Column("tz", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("bucket_start", sa.BigInteger, primary_key=True),  # the local month's first moment
    *_dimensions(),
    *_measures(),
    sa.Index("ix_usage_rollup_month_user", "tz", "tenant_id", "user_id", "bucket_start"),  # usage by user
    sqlite_with_rowid=False,
)

# The same sums under one dimension and the operation alone: a question about all users, or all models, reads a fraction
# of the rows. `facet` names the dimension, `value` is its value; counts replace the status.
usage_rollup_facet = sa.Table(
    "usage_rollup_facet",
    metadata,
    sa.Column("tz", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("facet", sa.Text, primary_key=True),
    sa.Column("width", sa.Text, primary_key=True),
    sa.Column("bucket_start", sa.BigInteger, primary_key=True),  # the local day's, or month's, first moment
    sa.Column("operation", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, primary_key=True),
    *(_measure(name) for name in STATUS_COUNTS),
    *_measures(),
    sa.CheckConstraint("facet IN ('user_id', 'model_id')", name="facet"),
    sa.CheckConstraint("width IN ('day', 'month')", name="width"),
    sqlite_with_rowid=False,
)

# Counted by the engine, never derived from the ledger. `closed` once the process ended cleanly.
engine_counter = sa.Table(
    "engine_counter",
    metadata,
    sa.Column("boot_id", sa.Text, primary_key=True),
    sa.Column("model_id", sa.Text, primary_key=True),
    sa.Column("prefill_tokens", sa.BigInteger, nullable=False),
    sa.Column("cached_tokens", sa.BigInteger, nullable=False),
    sa.Column("decode_tokens", sa.BigInteger, nullable=False),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.Column("closed", sa.Boolean, nullable=False),
)

# The zone of days and months: where it is not the reporting zone, they are rebuilt from the quarter hours.
usage_rollup_zone = sa.Table(
    "usage_rollup_zone",
    metadata,
    sa.Column("tz", sa.Text, primary_key=True),
    sa.Column("built_at", sa.BigInteger, nullable=False),
)
