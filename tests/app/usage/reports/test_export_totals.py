"""The totals of exported files equal the reports and the ledger rows."""

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.usage.reports.csv_text import csv_text
from app.usage.reports.line_rows import line_objects, lines_as_csv
from app.usage.reports.raw_ledger import LineFilter, RawLedger
from app.usage.reports.reports import ReportQuery
from app.usage.reports.tables import COMPLETIONS, COSTS, EMBEDDINGS, JUDGE, MONEY, RERANK
from tests.app.usage.reports.lines import DAY, Books, Line, between, lines, pico, results
from tests.examples import examples

START = 1_774_656_000  # the days around a change of clocks in Europe
END = START + 3 * DAY
MOMENTS = st.integers(START * 10**6 - 10, END * 10**6 + 10)
WRITTEN = st.lists(lines(MOMENTS), max_size=15)
TOTALS = ("input_tokens", "input_cached_tokens", "output_tokens", "output_delivered_tokens", "cost")
SLOW = settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows(pieces):
    return list(csv.DictReader(io.StringIO(b"".join(pieces).decode(), newline=""), strict=True))


def summed(found):
    counts: Counter[str] = Counter()
    for row in found:
        for name in TOTALS:
            if row.get(name) not in {None, ""}:
                counts[name] += pico(row[name]) if name == "cost" else int(row[name])
    return {name: count for name, count in counts.items() if count}


def exported(books, table, report, **asked):
    """The file of a report, over all its pages."""
    query = ReportQuery(tenant_id=books.tenant(), start=START, end=END, **asked)
    pages: list[dict[str, Any]] = []
    page = None
    while not pages or page is not None:
        pages.append(report(replace(query, page=page)))
        page = pages[-1]["next_page"]
    return rows(csv_text(table.columns, ([*map(table.cells, table.rows(page))] for page in pages), numbers=MONEY))


def raw_of(books, *operations):
    expected = between(books.of(*operations), START, END)
    counts = {
        "input_tokens": sum(sum(line.parts) for line in expected),
        "input_cached_tokens": sum(line.cached for line in expected),
        "output_tokens": sum(line.output for line in expected),
        "output_delivered_tokens": sum(line.delivered for line in expected),
        "cost": sum(line.cost or 0 for line in expected),
    }
    return {name: count for name, count in counts.items() if count}


@SLOW
@given(WRITTEN, st.sampled_from(["15m", "1h", "1d", "1mo"]), st.sampled_from(["Europe/Berlin", "Asia/Kathmandu"]))
def test_the_total_of_a_file_is_that_of_the_report_and_of_the_lines(database, written, width, tz):
    """Invariant 15: CSV total = JSON total = sum of the raw lines, for every report."""
    books = Books(database, written)
    raw = raw_of(books, "chat", "rewrite")
    asked = {"bucket_width": width, "tz": tz, "group_by": ("user_id", "status")}
    json_rows = [
        {**result, "cost": result["cost"]["value"]}
        for result in results(books.buckets(start=START, end=END, limit=24, **asked))
    ]

    found = exported(books, COMPLETIONS, books.reports.completions, **asked)

    assert summed(found) == summed(json_rows) == raw
    assert len(found) == len(json_rows)
    tokens = raw.get("input_tokens", 0)
    for table, report, operations in (
        (EMBEDDINGS, books.reports.embeddings, ("embed_query", "embed_doc")),
        (RERANK, books.reports.rerank, ("rerank",)),
        (JUDGE, books.reports.judge, ("judge",)),
    ):
        some = summed(exported(books, table, report, **asked))
        expected = raw_of(books, *operations)
        assert {name: some.get(name) for name in ("input_tokens", "cost")} == {
            name: expected.get(name) for name in ("input_tokens", "cost")
        }
        tokens += some.get("input_tokens", 0)
    assert tokens == raw_of(books).get("input_tokens", 0), "every call is in one report"
    costs = exported(books, COSTS, books.reports.costs, **asked)
    assert sum(pico(row["amount"]) for row in costs if row["amount"]) == raw_of(books).get("cost", 0)


@SLOW
@given(WRITTEN)
def test_the_total_of_the_raw_file_is_that_of_the_lines_and_of_its_json(database, written):
    """Invariants 15 and 16: the same totals, and the same bytes twice."""
    books, zone = Books(database, written), ZoneInfo("Europe/Berlin")

    def batches(size):
        raw = RawLedger(database, batch=size)
        return raw.batches(tenant_id=books.tenant(), start=START * 10**6, end=END * 10**6, only=LineFilter())

    once, again = (b"".join(lines_as_csv(batches(size), zone)) for size in (4, 1000))
    objects: list[dict[str, Any]] = [line_objects(zone)(line) for batch in batches(5) for line in batch]

    assert once == again
    assert summed(rows([once])) == raw_of(books) == summed({**one, "cost": one["cost"]["value"]} for one in objects)
    for row, one in zip(rows([once]), objects, strict=True):
        assert (row["settled_at"], row["settled_local"]) == (one["settled_at"], one["settled_local"])
        assert {part: int(row[f"component_{part}"]) for part in one["components"]} == one["components"]
        assert row["price_ids"].split() == one["price_ids"]
        assert json.loads(json.dumps(one)) == one


def test_e12_a_name_that_would_be_a_formula_is_disarmed_in_every_file(sqlite_database):
    hostile = Line(at=START * 10**6, user_id="=HYPERLINK(1)", model='a,"b"', cost=-5, status="adjustment")
    books = Books(sqlite_database, [hostile])
    batches = RawLedger(sqlite_database).batches(
        tenant_id=books.tenant(), start=START * 10**6, end=END * 10**6, only=LineFilter()
    )

    (line,) = rows(lines_as_csv(batches, ZoneInfo("UTC")))
    (row,) = exported(books, COMPLETIONS, books.reports.completions, group_by=("user_id", "model"))

    for found in (line, row):
        assert found["user_id"] == "'=HYPERLINK(1)"
        assert found["model"] == 'a,"b"'
        assert found["cost"] == "-0.000000000005"
