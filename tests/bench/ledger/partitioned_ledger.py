"""PostgreSQL's ledger with its calls divided by the month they were settled in, as an administrator would by hand.

Nothing in Footnote does this (docs/adr/0055). An id is unique, and can be referred to, only together with the time of
settlement, which an open call does not have: so a table of ids keeps them unique and is what shares and adjustments
refer to. Settling moves a call out of the partition of the open ones, which PostgreSQL does by deleting it there: so
what refuses deletion is asked once a statement, of every partition, and no longer once a row.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

import sqlalchemy as sa

from app.db.tables.ledger import usage_event

_KEYS = (
    "CREATE TABLE usage_event_key (event_id TEXT PRIMARY KEY)",
    "INSERT INTO usage_event_key SELECT event_id FROM usage_event",
    *(
        f"ALTER TABLE {table} DROP CONSTRAINT fk_{table}_event_id, ADD CONSTRAINT fk_{table}_event_id "
        "FOREIGN KEY (event_id) REFERENCES usage_event_key (event_id)"
        for table in ("usage_event_document", "usage_adjustment")
    ),
)
_TABLE = (
    "ALTER TABLE usage_event RENAME TO usage_event_whole",
    "CREATE TABLE usage_event (LIKE usage_event_whole INCLUDING DEFAULTS INCLUDING CONSTRAINTS) "
    "PARTITION BY RANGE (settled_at)",
    "CREATE TABLE usage_event_open PARTITION OF usage_event DEFAULT",
)
_ROWS = (
    "INSERT INTO usage_event SELECT * FROM usage_event_whole",
    "DROP TABLE usage_event_whole",
    "ALTER TABLE usage_event ADD CONSTRAINT uq_usage_event UNIQUE (event_id, settled_at), "
    "ADD CONSTRAINT fk_usage_event_request_id FOREIGN KEY (request_id) REFERENCES api_request (request_id)",
)
_GUARDS = (
    "CREATE TRIGGER usage_event_no_update BEFORE UPDATE ON usage_event FOR EACH ROW "
    "WHEN (OLD.status <> 'reserved') EXECUTE FUNCTION ledger_refuse('usage_event is immutable once settled')",
    "CREATE FUNCTION usage_event_keep_key() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO usage_event_key VALUES (NEW.event_id); RETURN NEW; END $$",
    # a call that is settled comes from another partition, and has its key
    "CREATE TRIGGER usage_event_key BEFORE INSERT ON usage_event FOR EACH ROW WHEN (NEW.status = 'reserved') "
    "EXECUTE FUNCTION usage_event_keep_key()",
)


def partition(connection: sa.Connection, months: Sequence[datetime]) -> None:
    """Divide the ledger at the beginnings of `months`; what is open or of no month is in `usage_event_open`.

    A month is from one of them to the next, the last one open to nothing. All calls are copied, and nobody else can
    read or write them before the transaction ends.
    """
    for statement in (*_KEYS, *_TABLE):
        connection.exec_driver_sql(statement)
    names = ["usage_event", "usage_event_open"]
    for start, end in pairwise(months):
        names.append(partition_name(start))
        connection.exec_driver_sql(
            f"CREATE TABLE {names[-1]} PARTITION OF usage_event FOR VALUES FROM ({_micros(start)}) TO ({_micros(end)})"
        )
    for statement in _ROWS:
        connection.exec_driver_sql(statement)
    for index in usage_event.indexes:
        index.create(connection)
    for statement in _GUARDS:
        connection.exec_driver_sql(statement)
    for name in names:
        connection.exec_driver_sql(
            f"CREATE TRIGGER usage_event_no_delete BEFORE DELETE ON {name} FOR EACH STATEMENT "
            "EXECUTE FUNCTION ledger_refuse('usage_event rows are never deleted')"
        )


def partition_name(month: datetime) -> str:
    """The table of a month's calls."""
    return f"usage_event_{month:%Y_%m}"


def months_from(year: int, month: int, count: int) -> list[datetime]:
    """The beginnings of so many months and of the one after them, UTC."""
    first = year * 12 + month - 1
    return [datetime(place // 12, place % 12 + 1, 1, tzinfo=UTC) for place in range(first, first + count + 1)]


def _micros(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000
