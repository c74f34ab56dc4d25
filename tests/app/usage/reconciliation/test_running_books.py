"""Reconciliation while calls run, after a process ended, and by the periodic watch."""

import pytest
import sqlalchemy as sa

from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.rollups import (
    engine_counter,
)
from app.errors import Conflict
from app.types import Settlement, UsageStatus
from app.usage.reconciliation.engine_counters import EngineCounters
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from generation.types import EngineStats
from tests.app.usage.reconciliation.installation import BERLIN, CountedEngine, Installation, installation
from tests.app.usage.samples import reservation

__all__ = ["installation"]


def test_engine_counters_are_checked_within_bounds_while_calls_run(installation: Installation) -> None:
    """Invariant 4, of a process that runs."""
    installation.end(installation.begin())
    event_id = installation.begin()
    for prefill, decode, ok in ((0, 0, True), (20, 50, True), (1, 0, False), (0, 1, False)):
        installation.count(prefill=prefill, decode=decode)
        assert installation.look().ok == ok, (prefill, decode)
    installation.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, output_tokens=50))
    assert not installation.look().ok, "now it is exact"


def test_an_engine_that_has_counted_less_than_was_billed_is_found_also_while_calls_run(
    installation: Installation,
) -> None:
    installation.end(installation.begin(), counted=False)
    installation.begin()

    assert set(installation.look().mismatches) == {"engine_prefill", "engine_decode"}


def test_a_process_that_ended_cleanly_must_agree_exactly(database: Database) -> None:
    """Invariant 4, of a process that was stopped."""
    first = Installation(database)
    first.end(first.begin())
    first.counters.close()
    second = Installation(database, "boot_2", clock=first.clock)
    assert second.look().ok
    assert "boot_1" in second.look().checks[0].detail
    with second.changed() as connection:
        mine = engine_counter.c.boot_id == "boot_1"
        connection.execute(sa.update(engine_counter).where(mine).values(decode_tokens=11))

    assert set(second.look(since=0).mismatches) == {"engine_decode"}


@pytest.mark.parametrize(("generated", "ok"), [(0, True), (8, True), (50, True), (51, False)])
def test_a_process_that_was_killed_may_have_generated_what_no_checkpoint_noted(
    database: Database, generated: int, ok: bool
) -> None:
    """Invariant 4, after kill -9."""
    first = Installation(database)
    first.end(first.begin())
    event_id = first.begin()
    first.ledger.checkpoint(event_id, 8)
    first.count(prefill=20, decode=generated)
    first.counters.flush()
    second = Installation(database, "boot_2", clock=first.clock)
    second.ledger.recover()

    assert second.look().ok == ok
    assert second.look(since=0).ok == ok


def test_a_call_that_was_left_open_by_a_process_that_ended_is_compared_in_bounds(database: Database) -> None:
    first = Installation(database)
    first.end(first.begin())
    first.begin()
    first.counters.close()
    second = Installation(database, "boot_2", clock=first.clock)
    waiting = [check for check in second.look().checks if "boot_1" in check.detail]
    assert [(check.ok, check.expected) for check in waiting] == [(True, None)] * 2
    second.ledger.recover()

    assert second.look().ok


def test_calls_of_engines_that_count_elsewhere_are_said_to_be_left_out(database: Database) -> None:
    installation = Installation(database)
    installation.ledger.reserve(reservation("x:1", model="elsewhere"))
    installation.ledger.settle("x:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=3))
    check = installation.check("engine_uncounted")

    assert (check.ok, check.expected, check.found) == (True, None, None)
    assert check.detail.startswith("Not compared: 1 calls")


def test_the_cheap_look_goes_on_with_its_sums_and_agrees_with_the_whole_one(installation: Installation) -> None:
    for _ in range(6):
        installation.end(installation.begin())
        cheap, whole = installation.look(), installation.look(since=0)
        assert cheap.checks[:2] == whole.checks[:2]
        installation.clock.now += 45


def test_a_clock_set_back_is_no_mismatch(installation: Installation) -> None:
    installation.end(installation.begin())
    installation.clock.now += 3000
    assert installation.look().ok
    installation.clock.now -= 2000
    installation.end(installation.begin())

    assert installation.look().ok


def test_a_second_reconciliation_at_the_same_time_is_refused(installation: Installation) -> None:
    seen: list[type[BaseException]] = []

    class Meanwhile(CountedEngine):
        def stats(self) -> EngineStats:
            try:
                installation.look()
            except Conflict as conflict:
                seen.append(type(conflict))
            return self.counts

    meanwhile = EngineCounters(installation.database, Meanwhile(), boot_id="boot_1")
    installation.reconciliation = LedgerReconciliation(
        installation.database, OwnProcess.alone("boot_1"), zone=BERLIN, metrics=installation.metrics, counters=meanwhile
    )
    installation.look()

    assert seen
    assert installation.reconciliation.last is not None
