"""Queries over adjustments use their index, however many calls the ledger has."""

from dataclasses import replace

from app.db.session import Database
from app.usage.reports.raw_ledger import LineFilter, RawLedger
from app.usage.reports.reports import ReportQuery, UsageReports
from app.usage.rollups.builder import RollupBuilder
from app.usage.rollups.zones import zone_named
from tests.statements import executions_of

HOUR = 3600


def plans(database: Database) -> list[str]:
    """Which table every statement about adjustments begins with, as SQLite plans it, in reading and in rebuilding."""
    with executions_of(database) as seen:
        reports, ledger = UsageReports(database), RawLedger(database)
        # a part of a quarter hour is read from single lines
        whole = ReportQuery(tenant_id="t1", start=10, end=HOUR + 10)
        for query in (whole, replace(whole, api_key_ids=("k1",)), replace(whole, user_ids=("u1",), models=("m1",))):
            reports.completions(query)
        reports.costs(ReportQuery(tenant_id="t1", start=0, end=HOUR, group_by=("line_item",)))
        ledger.page(tenant_id="t1", start=0, end=HOUR * 10**6, only=LineFilter(user_ids=("u1",)), limit=10)
        RollupBuilder(database, zone_named("UTC")).rebuild(tenant_id="t1", start=0, end=HOUR)
    with database.read() as connection:
        steps = [
            [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            for statement, parameters in seen
            if "usage_adjustment" in statement
        ]
    return [next(step for step in plan if "usage_adjustment" in step or "usage_event" in step) for plan in steps]


def test_query_plans_search_adjustments_by_index_without_a_scan(sqlite_database: Database) -> None:
    found = plans(sqlite_database)

    assert len(found) >= 6
    assert [step for step in found if not step.startswith("SEARCH usage_adjustment")] == []
