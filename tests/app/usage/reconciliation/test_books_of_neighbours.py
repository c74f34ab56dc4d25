"""Reconciliation beside other processes: what a living one has open is no error, and what it counted has bounds."""

import pytest

from app.db.presence import Presence, not_living
from app.db.session import Database
from tests.app.usage.reconciliation.installation import Installation


class Pair:
    """Two processes that live, with an engine each; the second looks."""

    def __init__(self, database: Database) -> None:
        for boot_id in ("boot_1", "boot_2"):
            presence = Presence(database, boot_id=boot_id, role="all", version="1", release=lambda _: None)
            presence.begin()
            self.last = presence
        self.first = Installation(database, "boot_1", gone=not_living)
        self.second = Installation(database, "boot_2", clock=self.first.clock, gone=not_living)


@pytest.fixture
def pair(database: Database) -> Pair:
    return Pair(database)


def test_an_open_call_of_a_living_process_is_no_orphan(pair: Pair) -> None:
    pair.first.begin()

    assert pair.second.look().ok
    assert pair.second.look(since=0).ok


def test_an_open_call_of_a_process_that_is_gone_is_one(pair: Pair, database: Database) -> None:
    pair.second.begin()
    pair.last.end()

    assert "orphaned_calls" in pair.first.look().mismatches


@pytest.mark.parametrize(("generated", "ok"), [(0, True), (30, True), (60, True), (61, False)])
def test_the_counters_of_a_living_process_are_of_what_it_settled_and_has_open(
    pair: Pair, generated: int, ok: bool
) -> None:
    """Ten tokens were settled, and fifty are reserved."""
    pair.first.end(pair.first.begin(), cached=0, counted=False)
    pair.first.begin()
    pair.first.count(prefill=20, decode=generated)
    pair.first.counters.flush()

    assert pair.second.look().ok == ok


def test_counters_that_are_some_seconds_old_lack_what_was_settled_since(pair: Pair) -> None:
    for _ in range(3):
        pair.first.end(pair.first.begin())  # its counters are not written

    look = pair.second.look()

    assert look.ok
    assert any("boot_1, m1, which runs beside this one" in check.detail for check in look.checks)
