"""Examines the database without writing to it, because a running server may use it."""

import time
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from app.db.dialect import server_version, sqlite_file
from app.db.migration import current_revision, head_revision, knows
from app.db.session import Database
from app.db.tables.documents import (
    api_key,
    chunk,
    collection,
    document,
    document_version,
    index_generation,
    job,
    tenant,
)
from app.db.tables.ledger import usage_event
from app.db.tables.prices import price
from app.doctor.report import Facts, Finding, Level, Report, tame
from app.errors import AppError
from app.settings import Settings
from app.types import JobStatus, UsageStatus
from app.usage.reconciliation.checks import Check, budget_checks, row_checks
from app.usage.reconciliation.rollup_checks import rollup_checks
from migrations.first_release import BRING_UP, is_too_old

_DAYS_US = 2 * 86_400 * 1_000_000
_AHEAD_US = 60 * 1_000_000  # a ledger that is so far ahead of the clock was written with another one
_SOUGHT = 20  # originals, each a request where they are in a bucket
_COUNTED = (tenant, collection, document, chunk, api_key)


def look_at_database(report: Report, settings: Settings) -> None:
    """Examines schema, row counts, jobs, generations and the ledger."""
    file = sqlite_file(settings.resolved_database_url)
    if file is not None and not file.exists():  # opening would make it
        report.add("database", {"exists": False})  # the first start creates it
        return
    try:
        database = Database.open(settings.resolved_database_url)
    except AppError as error:
        report.add("database", {}, _unreadable(error))
        return
    try:
        _look(report, settings, database)
    except AppError as error:
        report.add("database", {"dialect": database.kind}, _unreadable(error))
    except sa.exc.SQLAlchemyError as error:  # a schema of another version
        report.findings.append(_unreadable(AppError(type(error).__name__)))
    finally:
        database.close()


def _look(report: Report, settings: Settings, database: Database) -> None:
    current, head = current_revision(database), head_revision()
    facts: Facts = {"dialect": database.kind, "schema": current, "schema_wanted": head}
    report.add("database", facts)
    if current != head:
        level, code, advice = _compared(current)
        said = f"The schema is {current or 'empty'}, this version works with {head}."
        report.findings.append(Finding(level, code, said, advice))
        return
    with database.read() as connection:
        facts["version"] = server_version(connection)
        facts["rows"] = {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in _COUNTED
        }
        facts["generations"] = [
            {**row, "model": tame(row["model"])}
            for row in connection.execute(
                sa.select(
                    index_generation.c.id,
                    index_generation.c.model,
                    index_generation.c.revision,
                    index_generation.c.dim,
                    index_generation.c.status,
                )
            ).mappings()
        ]
        _jobs(report, connection)
        _ledger(report, connection)
        newest = _newest_originals(connection)
    _originals(report, settings, newest)
    _reconciliation(report, database, ZoneInfo(settings.reporting_zone))


def _compared(schema: str | None) -> tuple[Level, str, str]:
    """The level, code and advice for a schema that is not this version's."""
    if schema is not None and is_too_old(schema):
        return Level.ERROR, "schema-too-old", BRING_UP
    if schema is not None and not knows(schema):
        return Level.ERROR, "schema-newer", "Install the version that wrote it."
    return Level.WARNING, "schema-older", "The next start brings it up; make a backup first."


def _jobs(report: Report, connection: sa.Connection) -> None:
    counted = sa.select(job.c.status, sa.func.count()).group_by(job.c.status)
    why = (
        sa.select(job.c.error_code, sa.func.count()).where(job.c.status == JobStatus.FAILED).group_by(job.c.error_code)
    )
    reasons = {str(code): count for code, count in connection.execute(why)}
    facts: Facts = {
        "by_status": dict(connection.execute(counted).all()),
        "failed_by_code": reasons,
    }
    findings = []
    if reasons:
        listed = ", ".join(f"{code} {count}" for code, count in sorted(reasons.items()))
        findings.append(
            Finding(
                Level.NOTE,
                "failed-jobs",
                f"Documents that could not be ingested: {listed}.",
                "`footnote documents` says why; upload them again or retry.",
            )
        )
    report.add("jobs", facts, *findings)


def _ledger(report: Report, connection: sa.Connection) -> None:
    by_status = sa.select(usage_event.c.status, sa.func.count()).group_by(usage_event.c.status)
    prices = connection.execute(sa.select(sa.func.count()).select_from(price)).scalar_one()
    newest = connection.execute(sa.select(sa.func.max(usage_event.c.settled_at))).scalar()
    rows: dict[str, int] = dict(connection.execute(by_status).all())
    findings = []
    if not prices:
        findings.append(
            Finding(
                Level.NOTE,
                "no-price",
                "No model has a price: usage is counted in tokens alone, and budgets in money admit nothing.",
                "`footnote prices set`.",
            )
        )
    if newest is not None and newest > time.time() * 1_000_000 + _AHEAD_US:
        findings.append(
            Finding(
                Level.WARNING,
                "clock-behind",
                "The ledger has entries from later than this machine's clock says it is.",
                "Set the clock, and keep it by NTP.",
            )
        )
    report.add("ledger", {"rows": rows, "reserved": rows.get(UsageStatus.RESERVED, 0), "prices": prices}, *findings)


def _newest_originals(connection: sa.Connection) -> list[str]:
    newest = sa.select(document_version.c.object).order_by(document_version.c.document_id.desc()).limit(_SOUGHT)
    return list(connection.execute(newest).scalars())


def _originals(report: Report, settings: Settings, newest: list[str]) -> None:
    """Looks for the newest originals, which tells a store that is not the one the rows speak of."""
    from app.server.originals import stored_originals

    try:
        store = stored_originals(settings)
        missing = sum(store.size(name) is None for name in newest)
    except AppError:
        return  # `look_at_originals` says why
    report.sections["database"]["newest_originals"] = {"sought": len(newest), "missing": missing}
    if missing:
        report.findings.append(
            Finding(
                Level.ERROR,
                "originals-missing",
                f"{missing} of the {len(newest)} newest originals are not where FOOTNOTE_ORIGINALS says.",
                "If it was changed, restore a backup with the new setting; else restore the lost ones from a backup.",
            )
        )


def _reconciliation(report: Report, database: Database, zone: ZoneInfo) -> None:
    """Reconciles two days of the ledger, without the checks that need the running process."""
    now = round(time.time() * 1_000_000)
    with database.read() as connection:
        checks: list[Check] = [
            *row_checks(connection, since=now - _DAYS_US),
            *budget_checks(connection, since=now - _DAYS_US, totals=False),
        ]
    checks.extend(rollup_checks(database, zone, since=now - _DAYS_US, now=now))
    failed = sorted({check.name for check in checks if not check.ok})
    findings = []
    if failed:
        findings.append(
            Finding(
                Level.ERROR,
                "ledger-mismatch",
                f"The ledger and its sums disagree: {', '.join(failed)}.",
                "`footnote usage reconcile` shows where; report it, with this report.",
            )
        )
    report.add("reconciliation", {"checks": len(checks), "failed": failed}, *findings)


def _unreadable(error: AppError) -> Finding:
    return Finding(
        Level.ERROR,
        "database-unreadable",
        f"The database cannot be read: {tame(str(error))}",
        "See that it runs and that FOOTNOTE_DATABASE_URL leads to it.",
    )
