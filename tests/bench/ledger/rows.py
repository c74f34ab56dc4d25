"""`python -m tests.bench.ledger.rows`: reports, pages and exports of a ledger of millions of calls.

On SQLite, or on PostgreSQL: one of its own in a temporary folder, or an empty database that is named and left as it is
then. The sums of the year of generated calls are built by the rebuild that administrators have. Every query is timed
several times over ranges that differ.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from zoneinfo import ZoneInfo

import psutil
import sqlalchemy as sa
from rich.console import Console

from app.db.migration import upgrade
from app.db.session import Database
from app.usage.reports.line_rows import lines_as_csv
from app.usage.reports.raw_ledger import LineFilter, RawLedger
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.builder import RollupBuilder
from tests.bench.ledger.generated_calls import DAY, START, TENANT, YEAR, generate, stored_bytes
from tests.bench.ledger.postgres_server import administer, own_server
from tests.bench.ledger.timing import timed

_ZONE = ZoneInfo("Europe/Berlin")
_MOST_REBUILT = 28 * DAY


def measure(url: sa.URL, rows: int, console: Console) -> dict[str, object]:
    """Seconds of each question, and rows and resident memory of the export. The database is empty."""
    database = Database.open(url.render_as_string(hide_password=False))
    upgrade(database)
    began = time.perf_counter()
    generate(database, rows)
    if database.kind == "postgresql":
        administer(url, "VACUUM ANALYZE usage_event")  # as it does by itself a little later
    console.print(f"{rows:,} rows in {time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    builder = RollupBuilder(database, _ZONE)
    builder.ensure_zone()
    for month in range(START, START + YEAR, _MOST_REBUILT):
        builder.rebuild(tenant_id=TENANT, start=month, end=min(month + _MOST_REBUILT, START + YEAR))
    rebuilt = time.perf_counter() - began
    console.print(f"sums in {rebuilt:.0f} s")
    if database.kind == "postgresql":
        administer(url, "VACUUM ANALYZE")
    with database.read() as connection:
        sums = {
            name: connection.exec_driver_sql(f"SELECT count(*) FROM usage_rollup_{name}").scalar_one()
            for name in ("15m", "day", "month", "facet")
        }
    reports, ledger, draw = UsageReports(database, zone=_ZONE), RawLedger(database), random.Random(0)

    def report(days: int, *, tz: str = _ZONE.key, **asked: object) -> Callable[[], object]:
        def ask() -> object:
            # whole seconds anywhere: cut buckets at both ends
            start = START + draw.randrange(YEAR - days * DAY + 1)
            return reports.completions(
                ReportQuery(tenant_id=TENANT, start=start, end=start + days * DAY, tz=tz, **asked)  # type: ignore[arg-type]
            )

        return ask

    def page() -> object:
        start = (START + draw.randrange(YEAR)) * 1_000_000
        end = (START + YEAR) * 1_000_000
        return ledger.page(tenant_id=TENANT, start=start, end=end, only=LineFilter(), limit=100)

    result: dict[str, object] = {
        "database": database.kind,
        "rows": rows,
        "sums": sums,
        "rebuild_seconds": round(rebuilt, 1),
        "bytes": stored_bytes(database),
        "month_by_model_and_day": timed(report(30, bucket_width="1d", group_by=("model",), limit=31)),
        "month_by_model_and_day_other_zone": timed(
            report(30, tz="Asia/Tokyo", bucket_width="1d", group_by=("model",), limit=31), times=10
        ),
        "year_by_user": timed(report(365, bucket_width="1mo", group_by=("user_id",), limit=13)),
        "own_use": timed(lambda: reports.own(tenant_id=TENANT, user_id=f"user_{draw.randrange(500):03d}")),
        "page_of_events": timed(page, times=50),
    }
    console.print_json(data=result)
    result["export"] = _export(ledger, rows)
    database.close()
    return result


def _export(ledger: RawLedger, rows: int) -> dict[str, object]:
    process, written, size, peak = psutil.Process(), 0, 0, 0
    before = process.memory_info().rss
    batches = ledger.batches(
        tenant_id=TENANT, start=START * 1_000_000, end=(START + YEAR) * 1_000_000, only=LineFilter()
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


@contextmanager
def _empty_database(kind: str) -> Iterator[sa.URL]:
    if kind == "postgresql":
        with own_server() as url:
            yield url
        return
    with tempfile.TemporaryDirectory() as folder:
        yield sa.make_url(f"sqlite:///{Path(folder) / 'footnote.db'}")


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger.rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--database-url", help="an empty database to use instead")
    parser.add_argument("--out", type=Path, help="also write them to this file")
    arguments = parser.parse_args()
    given = arguments.database_url
    with nullcontext(sa.make_url(given)) if given else _empty_database(arguments.database) as url:
        result = json.dumps(measure(url, arguments.rows, Console(stderr=True)), indent=1)
    if arguments.out is not None:
        arguments.out.write_text(result + "\n", encoding="utf-8")
    print(result)


if __name__ == "__main__":
    main()
