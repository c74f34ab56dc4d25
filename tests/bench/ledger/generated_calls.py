"""A year of calls generated in SQL, the same distribution on SQLite and PostgreSQL.

With skew as people have it: of 500 users of one tenant the first spend most, each has a key or two and asks a
collection of its own four times of five, else one that all share.
"""

import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.ledger import usage_event

TENANT = "t1"
START = 1_735_689_600
"""2025-01-01, Unix seconds."""
DAY = 86_400
YEAR = 365 * DAY

# i counts the calls; u is in [0, 1) and skewed to the first people, a and b are below 65536, c is below 1024
_DRAWN = {
    "sqlite": r"""
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count),
drawn AS MATERIALIZED (
  SELECT i, (random() & 1048575) / 1048576.0 AS u, random() & 65535 AS a, random() & 65535 AS b, random() & 1023 AS c
  FROM n
),
placed AS (SELECT i, CAST(500 * u * u * u AS INTEGER) AS person, a, b, c FROM drawn),
""",
    # what draws anew for each row is not moved into the queries above it
    "postgresql": r"""
WITH drawn AS (
  SELECT i, random() AS u, CAST(floor(random() * 65536) AS BIGINT) AS a, CAST(floor(random() * 65536) AS BIGINT) AS b,
    CAST(floor(random() * 1024) AS BIGINT) AS c
  FROM (SELECT generate_series(CAST(0 AS BIGINT), CAST(:count AS BIGINT) - 1) AS i) AS n
),
placed AS (SELECT i, CAST(floor(500 * u * u * u) AS BIGINT) AS person, a, b, c FROM drawn),
""",
}
_COLUMNS = """
INSERT INTO usage_event (
  event_id, request_id, operation, tenant_id, project_id, user_id, api_key_id, boot_id, model_id, tokenizer_rev, status,
  count_quality, tok_system, tok_history, tok_context, tok_question, tok_template, input_tokens, input_cached_tokens,
  output_tokens, output_delivered_tokens, max_output_tokens, cost_pico, accepted_at, settled_at
)
"""
_CALLS = r"""
call AS (
  SELECT i, a, b, c, person, CASE WHEN i % 5 < 3 THEN 1 ELSE 0 END AS chat,
    CAST(:start AS BIGINT) + i * CAST(:step AS BIGINT) AS at
  FROM placed
)
SELECT
  'req_' || substr(CAST(1000000000000 + i AS TEXT), 2) || '\:1', 'req_bench',
  CASE WHEN chat = 1 THEN 'chat' ELSE 'embed_query' END, CAST(:tenant AS TEXT),
  'col_' || substr(CAST(100 + CASE WHEN b % 5 < 4 THEN 1 + person % 20 ELSE 0 END AS TEXT), 2),
  'user_' || substr(CAST(1000 + person AS TEXT), 2),
  'key_' || substr(CAST(1000 + person AS TEXT), 2) || '_' || CAST(b % (1 + person % 2) AS TEXT), 'boot_bench',
  CASE WHEN chat = 0 THEN 'embedder' WHEN a % 10 < 8 THEN 'small' ELSE 'large' END, 'r1',
  CASE WHEN c < 30 THEN 'client_abort' WHEN c < 33 THEN 'error' ELSE 'completed' END, 'exact',
  chat * 40, 0, chat * (a % 3000), chat * (c % 50), chat * 30,
  CASE WHEN chat = 1 THEN 70 + a % 3000 + c % 50 ELSE 5 + c % 50 END, chat * (a % 40), chat * (b % 400),
  chat * (b % 400), chat * 400, CASE WHEN c % 50 = 0 THEN NULL ELSE 1000000 + a * 100 END, at - 2000000, at
FROM call
"""


def generate(database: Database, rows: int) -> None:
    """Fill the empty ledger of a migrated database with `rows` calls, in one transaction."""
    with database.write() as connection:
        for index in usage_event.indexes:
            index.drop(connection)
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # no trigger a row
            connection.exec_driver_sql("SELECT setseed(0.5)")
        connection.exec_driver_sql(
            "INSERT INTO api_request (request_id, tenant_id, endpoint, accepted_at, boot_id) "
            "VALUES ('req_bench', 't1', '/v1/ask', 0, 'boot_bench')"
        )
        connection.execute(
            sa.text(_COLUMNS + _DRAWN[connection.dialect.name] + _CALLS),
            {"count": rows, "start": START * 1_000_000, "step": YEAR * 1_000_000 // rows, "tenant": TENANT},
        )
        for index in usage_event.indexes:
            index.create(connection)


def stored_bytes(database: Database) -> int:
    """What the tables and their indexes take on the disk."""
    query = (
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        if database.kind == "sqlite"
        else "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    with database.read() as connection:
        return int(connection.exec_driver_sql(query).scalar_one())
