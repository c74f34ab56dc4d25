"""Reconciles the ledger with the counters of the engine, the rollups and the budgets."""

import threading
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from app.db.presence import OwnProcess
from app.db.session import Database
from app.errors import Conflict
from app.telemetry.logs import logger
from app.telemetry.metrics import Metrics
from app.usage.reconciliation.checks import Check, budget_checks, open_checks, row_checks
from app.usage.reconciliation.engine_checks import LedgerTally, engine_checks
from app.usage.reconciliation.engine_counters import EngineCounters
from app.usage.reconciliation.rollup_checks import rollup_checks
from generation.types import EngineStats

_NOTHING = EngineStats(waiting=0, running=0, capacity=0, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0)
_DAYS = 2
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The result of one reconciliation over all tenants. `as_of` is the Unix second at which it ended."""

    as_of: int
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return all(check.ok for check in self.checks)

    @property
    def mismatches(self) -> tuple[str, ...]:
        """Names of the checks that failed, each once."""
        return tuple(dict.fromkeys(check.name for check in self.checks if not check.ok))


class LedgerReconciliation:
    """Reconciles one installation, one run at a time, and reports to the log and the metrics.

    Example:
        >>> reconciliation = LedgerReconciliation(database, own, zone=zone, metrics=metrics)
        >>> reconciliation.run().mismatches
        ()
    """

    def __init__(
        self,
        database: Database,
        own: OwnProcess,
        *,
        zone: ZoneInfo,
        metrics: Metrics,
        counters: EngineCounters | None = None,
    ) -> None:
        """Compare nothing yet.

        Args:
            database: Of all tenants.
            own: This process.
            zone: The reporting zone of the rollups.
            metrics: Updated by every run.
            counters: Of the engine in this process; None if there is none, or it counts elsewhere.
        """
        self._database = database
        self._own = own
        self._zone = zone
        self._metrics = metrics
        self._counters = counters
        self._tally = LedgerTally()
        self._running = threading.Lock()
        self._last: Reconciliation | None = None

    def watch_engine(self, counters: EngineCounters) -> None:
        """Include the counters of an engine from now on."""
        self._counters = counters

    @property
    def last(self) -> Reconciliation | None:
        """The last result; None before the first run."""
        return self._last

    def run(self, *, since: int | None = None) -> Reconciliation:
        """Compare everything after `since`, Unix microseconds; None compares the last two days at a low cost.

        The low-cost run continues the sums of the previous one, and leaves out budgets that never end.

        Raises:
            Conflict: Another run is in progress.
            StoreUnavailable: The database cannot be read.
        """
        if not self._running.acquire(blocking=False):
            raise Conflict("The ledger is being reconciled already; try again in a moment.")
        try:
            checks = self._checks(since)
        finally:
            self._running.release()
        found = self._last = Reconciliation(int(self._own.clock()), checks)
        self._report(found)
        return found

    def run_unless_busy(self) -> None:
        """Compare the last two days, unless another run is in progress.

        Raises:
            StoreUnavailable: The database cannot be read.
        """
        try:
            self.run()
        except Conflict:
            return

    def _checks(self, since: int | None) -> tuple[Check, ...]:
        now = round(self._own.clock() * 1_000_000)
        begin = max(0, now - _DAYS * _DAY) if since is None else since
        engine = self._engine_checks(begin, now, self._tally if since is None else LedgerTally())
        if not all(check.ok for check in engine):  # after a clock was set back, the kept sums may lack calls
            self._tally = LedgerTally()
            engine = self._engine_checks(begin, now, self._tally)
        with self._database.read() as connection:
            rows = (
                *row_checks(connection, since=begin),
                *open_checks(connection, gone=self._own.gone),
                *budget_checks(connection, since=begin, totals=since is not None),
            )
        return (*engine, *rollup_checks(self._database, self._zone, since=begin, now=now), *rows)

    def _engine_checks(self, since: int, now: int, tally: LedgerTally) -> tuple[Check, ...]:
        before = self._counters.stats() if self._counters is not None else _NOTHING
        with self._database.read() as connection:
            return tuple(
                engine_checks(
                    connection,
                    since=since,
                    now=now,
                    tally=tally,
                    current=self._counters,
                    before=before,
                    gone=self._own.gone,
                )
            )

    def _report(self, found: Reconciliation) -> None:
        failed: dict[str, int] = {check.name: 0 for check in found.checks}
        for check in found.checks:
            failed[check.name] += not check.ok
        for name, count in failed.items():
            self._metrics.ledger_mismatches.labels(name).set(count)
        self._metrics.ledger_reconciled_at.set(found.as_of)
        if found.ok:
            logger().info("ledger.reconciled", checks=len(found.checks))
        for check in found.checks:
            if not check.ok:
                logger().error(
                    "ledger.mismatch",
                    check=check.name,
                    expected=check.expected,
                    found=check.found,
                    detail=check.detail,
                )
