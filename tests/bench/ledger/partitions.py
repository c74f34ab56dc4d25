"""`python -m tests.bench.ledger.partitions --rows 1000000`: PostgreSQL's ledger whole and by month, side by side.

Two databases of one server have the same generated year of calls. Every question is asked of both in turn.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Mapping
from itertools import count, islice
from pathlib import Path
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from rich.console import Console

from app.db.migration import upgrade
from app.db.session import Database
from app.types import DocumentShare, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reports.line_rows import lines_as_csv
from app.usage.reports.raw_ledger import LineFilter, RawLedger
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.builder import RollupBuilder
from app.usage.rollups.rollups import Rollups
from app.usage.rollups.spans import BucketRange
from app.usage.rollups.sums import EVENTS, read
from tests.app.usage.samples import reservation
from tests.bench.ledger.generated_calls import DAY, START, TENANT, YEAR, generate
from tests.bench.ledger.partitioned_ledger import months_from, partition, partition_name
from tests.bench.ledger.postgres_server import administer, new_database, own_server
from tests.bench.ledger.timing import side_by_side

_ZONE = ZoneInfo("UTC")
_MONTHS = months_from(2025, 1, 13)
_OLDEST, _SECOND = (int(month.timestamp()) * 1_000_000 for month in _MONTHS[:2])
_LAST_MONTH = START + 334 * DAY  # December 2025
_AFTER = START + YEAR + DAY  # when calls of the settle measurement are made
_EXPORTED = 10  # batches of 4,000 lines
_SETTLEMENT = Settlement(status=UsageStatus.COMPLETED, cached_tokens=2, output_tokens=9, delivered_tokens=9)

_PLAIN, _BY_MONTH = "whole", "by_month"
_PARTS = "SELECT relid FROM pg_partition_tree('usage_event') UNION SELECT 'usage_event'::regclass"
_SIZE = f"SELECT sum(pg_relation_size(relid)), sum(pg_indexes_size(relid)) FROM ({_PARTS}) AS part"


class Layout:
    """A database with its ledger whole or by month."""

    def __init__(self, url: sa.URL, *, months: bool) -> None:
        self.url = url
        self.months = months
        self.database = Database.open(url.render_as_string(hide_password=False))
        self.ledger = RawLedger(self.database)
        self.reports = UsageReports(self.database, zone=_ZONE)
        self.draw = random.Random(0)  # the same ranges for every layout
        self._numbers = count()

    def fill(self, rows: int) -> dict[str, float]:
        """Generate the calls; the seconds of that and of the first vacuum, and megabytes."""
        upgrade(self.database)
        if self.months:
            with self.database.write() as connection:
                partition(connection, _MONTHS)
        generating = _seconds(lambda: generate(self.database, rows))
        if self.months:
            with self.database.write() as connection:
                connection.exec_driver_sql("INSERT INTO usage_event_key SELECT event_id FROM usage_event")
        return {
            "generate_s": generating,
            "vacuum_s": _seconds(lambda: administer(self.url, "VACUUM ANALYZE usage_event")),
            **self.size(),
        }

    def size(self) -> dict[str, float]:
        """Megabytes of the calls, of their indexes, and of the table of ids that the months need."""
        with self.database.read() as connection:
            rows, indexes = connection.exec_driver_sql(_SIZE).one()
            keys = "SELECT pg_total_relation_size('usage_event_key')"
            more = connection.exec_driver_sql(keys).scalar_one() if self.months else 0
        return {"rows_mb": _mb(rows), "indexes_mb": _mb(indexes), "keys_mb": _mb(more)}

    def sums_of_last_month(self) -> float:
        """Seconds of building the sums of its days and itself from 31 days of lines."""
        builder = RollupBuilder(self.database, _ZONE)
        builder.ensure_zone()
        return _seconds(lambda: builder.rebuild(tenant_id=TENANT, start=_LAST_MONTH, end=_LAST_MONTH + 31 * DAY))

    def page(self) -> None:
        """A hundred events from anywhere in the year on."""
        start, end = START + self.draw.randrange(YEAR), START + YEAR
        self.ledger.page(tenant_id=TENANT, start=_us(start), end=_us(end), only=LineFilter(), limit=100)

    def page_of_a_week(self) -> None:
        """A hundred events of seven days, which are of one month or two."""
        start = START + self.draw.randrange(YEAR)
        self.ledger.page(tenant_id=TENANT, start=_us(start), end=_us(start + 7 * DAY), only=LineFilter(), limit=100)

    def event(self, rows: int) -> None:
        """One call by its id."""
        self.ledger.event(f"req_{self.draw.randrange(rows):012d}:1", tenant_id=TENANT)

    def both_ends(self) -> None:
        """The lines at the two ends of a range, in one question as reports ask it."""
        self._lines(*(BucketRange(end, _us(START + self.draw.randrange(YEAR)), 0) for end in (0, 1)), seconds=450)

    def one_end(self) -> None:
        """The lines at one of them."""
        self._lines(BucketRange(0, _us(START + self.draw.randrange(YEAR)), 0), seconds=450)

    def day_of_lines(self) -> None:
        """All lines of a day, as a report reads them that has no sums to read."""
        self._lines(BucketRange(0, _us(START + self.draw.randrange(YEAR - DAY)), 0), seconds=DAY)

    def report(self) -> None:
        """Thirty days by model and day within the last month, from sums and from lines at both ends."""
        start = _LAST_MONTH + self.draw.randrange(DAY)
        query = ReportQuery(
            tenant_id=TENANT, start=start, end=start + 30 * DAY, bucket_width="1d", group_by=("model",), limit=31
        )
        self.reports.completions(query)

    def export(self) -> None:
        """The first lines of the year as CSV."""
        lines = self.ledger.batches(tenant_id=TENANT, start=_us(START), end=_us(START + YEAR), only=LineFilter())
        for _ in lines_as_csv(islice(lines, _EXPORTED), _ZONE):
            pass

    def settle(self) -> None:
        """Reserve and settle a call that read a document, with sums and without budgets."""
        ledger = Ledger(self.database, "boot", clock=lambda: _AFTER, observers=(Rollups(_ZONE),))
        event_id = f"req_s{next(self._numbers)}:1"
        ledger.reserve(reservation(event_id, documents=[DocumentShare("doc_1", 2, 4)]))
        ledger.settle(event_id, _SETTLEMENT)

    def remove_oldest_month(self) -> dict[str, float]:
        """Seconds of taking January away, for which the guards are put aside, and what the rows take then."""
        name = partition_name(_MONTHS[0])
        statements = (
            (f"ALTER TABLE usage_event DETACH PARTITION {name}", f"DROP TABLE {name}")
            if self.months
            else (
                "SET session_replication_role = replica",
                f"DELETE FROM usage_event WHERE settled_at >= {_OLDEST} AND settled_at < {_SECOND}",
                "VACUUM usage_event",
            )
        )
        return {"seconds": _seconds(lambda: administer(self.url, *statements)), **self.size()}

    def _lines(self, *its_spans: BucketRange, seconds: int) -> None:
        spans = [span._replace(end=span.start + _us(seconds)) for span in its_spans]
        with self.database.read() as connection:
            read(connection, EVENTS, spans, TENANT, _ZONE, ("model",), {})


def compare(server: sa.URL, rows: int, console: Console) -> dict[str, object]:
    """What both layouts take; times are milliseconds where not said otherwise. Leaves two databases on the server."""
    layouts = {name: Layout(new_database(server, name), months=name == _BY_MONTH) for name in (_PLAIN, _BY_MONTH)}
    result: dict[str, object] = {"rows": rows}

    def note(name: str, figures: object) -> None:
        result[name] = figures
        console.print_json(data={name: figures})

    def of_each(figure: Callable[[Layout], object]) -> Mapping[str, object]:
        return {name: figure(layout) for name, layout in layouts.items()}

    def in_turn(ask: Callable[[Layout], None], *, times: int) -> Mapping[str, object]:
        def bound(layout: Layout) -> Callable[[], None]:
            return lambda: ask(layout)

        return side_by_side({name: bound(layout) for name, layout in layouts.items()}, times=times)

    note("filled", of_each(lambda layout: layout.fill(rows)))
    note("sums_of_last_month_s", of_each(Layout.sums_of_last_month))
    note("page_of_events", in_turn(Layout.page, times=50))
    note("page_of_a_week", in_turn(Layout.page_of_a_week, times=50))
    note("one_event", in_turn(lambda layout: layout.event(rows), times=50))
    note("lines_at_one_end", in_turn(Layout.one_end, times=50))
    note("day_of_lines", in_turn(Layout.day_of_lines, times=10))
    note(f"export_of_{min(rows, _EXPORTED * 4000)}_lines", in_turn(Layout.export, times=3))
    note("reserve_and_settle", in_turn(Layout.settle, times=300))
    note("lines_at_both_ends", in_turn(Layout.both_ends, times=3))
    note("month_by_model_and_day", in_turn(Layout.report, times=3))
    note("vacuum_again_s", of_each(lambda layout: _seconds(lambda: administer(layout.url, "VACUUM usage_event"))))
    note("oldest_month_away", of_each(Layout.remove_oldest_month))
    for layout in layouts.values():
        layout.database.close()
    return result


def _us(seconds: int) -> int:
    return seconds * 1_000_000


def _mb(size: object) -> float:
    return round(int(str(size)) / 1e6, 1)


def _seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return round(time.perf_counter() - began, 2)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger.partitions", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, help="also write them to this file")
    arguments = parser.parse_args()
    with own_server() as server:
        result = json.dumps(compare(server, arguments.rows, Console(stderr=True)), indent=1)
    if arguments.out is not None:
        arguments.out.write_text(result + "\n", encoding="utf-8")
    print(result)


if __name__ == "__main__":
    main()
