"""`python -m tests.bench.ledger.rows`: reports, pages and exports of a ledger of millions of calls, on SQLite.

A year of calls is generated in SQL, with skew as people have it: of 500 users of one tenant the first spend most, each
has a key or two and asks a collection of its own four times of five, else one that all share. The sums are built from
it by the rebuild that administrators have. Every query is timed several times over ranges that differ.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

import psutil
from rich.console import Console

from app.db.migration import upgrade
from app.db.session import Database
from app.usage.line_rows import lines_as_csv
from app.usage.raw_ledger import LineFilter, RawLedger
from app.usage.report_query import ReportQuery
from app.usage.reports import UsageReports
from app.usage.rollup_builder import RollupBuilder

_TENANT = "t1"
_ZONE = ZoneInfo("Europe/Berlin")
_START = 1_735_689_600  # 2025-01-01
_DAY = 86_400
_YEAR = 365 * _DAY
_MOST_REBUILT = 28 * _DAY
_EVENTS = """
INSERT INTO usage_event (
  event_id, request_id, operation, tenant_id, project_id, user_id, api_key_id, boot_id, model_id, tokenizer_rev, status,
  count_quality, tok_system, tok_history, tok_context, tok_question, tok_template, input_tokens, input_cached_tokens,
  output_tokens, output_delivered_tokens, max_output_tokens, cost_pico, accepted_at, settled_at
)
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count),
drawn AS MATERIALIZED (
  SELECT i, (random() & 1048575) / 1048576.0 AS u, random() & 65535 AS a, random() & 65535 AS b, random() & 1023 AS c
  FROM n
),
call AS (
  SELECT i, a, b, c, CAST(500 * u * u * u AS INTEGER) AS person, i % 5 < 3 AS chat, :start + i * :step AS at FROM drawn
)
SELECT
  printf('req_%012d:1', i), 'req_bench', CASE WHEN chat THEN 'chat' ELSE 'embed_query' END, :tenant,
  printf('col_%02d', CASE WHEN b % 5 < 4 THEN 1 + person % 20 ELSE 0 END), printf('user_%03d', person),
  printf('key_%03d_%d', person, b % (1 + person % 2)), 'boot_bench',
  CASE WHEN NOT chat THEN 'embedder' WHEN a % 10 < 8 THEN 'small' ELSE 'large' END, 'r1',
  CASE WHEN c < 30 THEN 'client_abort' WHEN c < 33 THEN 'error' ELSE 'completed' END, 'exact',
  chat * 40, 0, chat * (a % 3000), chat * (c % 50), chat * 30,
  CASE WHEN chat THEN 70 + a % 3000 + c % 50 ELSE 5 + c % 50 END, chat * (a % 40), chat * (b % 400), chat * (b % 400),
  chat * 400, CASE WHEN c % 50 = 0 THEN NULL ELSE 1000000 + a * 100 END, at - 2000000, at
FROM call
"""


def measure(rows: int, folder: Path, console: Console) -> dict[str, object]:
    """Seconds of each question, and rows and resident memory of the export."""
    database = Database.open(f"sqlite:///{folder / 'footnote.db'}")
    upgrade(database)
    began = time.perf_counter()
    _generate(database, rows)
    console.print(f"{rows:,} rows in {time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    builder = RollupBuilder(database, _ZONE)
    builder.ensure_zone()
    for month in range(_START, _START + _YEAR, _MOST_REBUILT):
        builder.rebuild(tenant_id=_TENANT, start=month, end=min(month + _MOST_REBUILT, _START + _YEAR))
    rebuilt = time.perf_counter() - began
    console.print(f"sums in {rebuilt:.0f} s")
    with database.read() as connection:
        sums = {
            name: connection.exec_driver_sql(f"SELECT count(*) FROM usage_rollup_{name}").scalar_one()
            for name in ("15m", "day", "month")
        }
    reports, ledger, draw = UsageReports(database, zone=_ZONE), RawLedger(database), random.Random(0)

    def report(days: int, *, tz: str = _ZONE.key, **asked: object) -> Callable[[], object]:
        def ask() -> object:
            # whole seconds anywhere: cut buckets at both ends
            start = _START + draw.randrange(_YEAR - days * _DAY + 1)
            return reports.completions(
                ReportQuery(tenant_id=_TENANT, start=start, end=start + days * _DAY, tz=tz, **asked)  # type: ignore[arg-type]
            )

        return ask

    def page() -> object:
        start = (_START + draw.randrange(_YEAR)) * 1_000_000
        end = (_START + _YEAR) * 1_000_000
        return ledger.page(tenant_id=_TENANT, start=start, end=end, only=LineFilter(), limit=100)

    result: dict[str, object] = {
        "rows": rows,
        "sums": sums,
        "rebuild_seconds": round(rebuilt, 1),
        "bytes": (folder / "footnote.db").stat().st_size,
        "month_by_model_and_day": _timed(report(30, bucket_width="1d", group_by=("model",), limit=31)),
        "month_by_model_and_day_other_zone": _timed(
            report(30, tz="Asia/Tokyo", bucket_width="1d", group_by=("model",), limit=31), times=10
        ),
        "year_by_user": _timed(report(365, bucket_width="1mo", group_by=("user_id",), limit=13)),
        "own_use": _timed(lambda: reports.own(tenant_id=_TENANT, user_id=f"user_{draw.randrange(500):03d}")),
        "page_of_events": _timed(page, times=50),
    }
    console.print_json(data=result)
    result["export"] = _export(ledger, rows)
    database.close()
    return result


def _generate(database: Database, rows: int) -> None:
    with database.write() as connection:
        indexes = connection.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'usage_event' AND sql IS NOT NULL"
        ).all()
        for name, _ in indexes:
            connection.exec_driver_sql(f"DROP INDEX {name}")
        connection.exec_driver_sql(
            "INSERT INTO api_request (request_id, tenant_id, endpoint, accepted_at, boot_id) "
            "VALUES ('req_bench', 't1', '/v1/ask', 0, 'boot_bench')"
        )
        connection.exec_driver_sql(
            _EVENTS, {"count": rows, "start": _START * 1_000_000, "step": _YEAR * 1_000_000 // rows, "tenant": _TENANT}
        )
        for _, sql in indexes:
            connection.exec_driver_sql(sql)


def _timed(ask: Callable[[], object], *, times: int = 20) -> dict[str, float]:
    """Milliseconds: the median and the slowest but one in twenty."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    return {"p50_ms": round(statistics.median(taken), 1), "p95_ms": round(taken[max(0, int(times * 0.95) - 1)], 1)}


def _export(ledger: RawLedger, rows: int) -> dict[str, object]:
    process, written, size, peak = psutil.Process(), 0, 0, 0
    before = process.memory_info().rss
    batches = ledger.batches(
        tenant_id=_TENANT, start=_START * 1_000_000, end=(_START + _YEAR) * 1_000_000, only=LineFilter()
    )
    began, cpu = time.perf_counter(), time.process_time()
    for part in lines_as_csv(batches, _ZONE):
        written += part.count(b"\r\n")
        size += len(part)
        peak = max(peak, process.memory_info().rss)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert written == rows + 1, "a header and every row"
    return {
        "rows_per_second": round(rows / seconds),
        "rows_per_cpu_second": round(rows / cpu),
        "bytes": size,
        "more_memory_mib": round((peak - before) / 2**20, 1),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger.rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, help="also write them to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = json.dumps(measure(arguments.rows, Path(folder), Console(stderr=True)), indent=1)
    if arguments.out is not None:
        arguments.out.write_text(result + "\n", encoding="utf-8")
    print(result)


if __name__ == "__main__":
    main()
