"""app.usage.reconciliation.reconciliation finds every mismatch in the ledger, and no false ones."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from prometheus_client import generate_latest

from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.tables.budgets import budget, budget_hold, budget_window
from app.db.tables.rollups import (
    usage_rollup_15m,
    usage_rollup_day,
    usage_rollup_facet,
    usage_rollup_month,
    usage_rollup_zone,
)
from app.types import DocumentShare, Operation, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.reconciliation.engine_counters import EngineCounters
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.rollups.rollups import Rollups
from generation.types import EngineStats
from tests.app.usage.reconciliation.installation import BERLIN, Installation, installation
from tests.app.usage.samples import reservation

__all__ = ["installation"]


def spend(installation: Installation) -> None:
    """Calls of both kinds over three days."""
    for _ in range(3):
        for operation in (Operation.CHAT, Operation.REWRITE, Operation.EMBED_QUERY):
            event_id = installation.begin(operation)
            if operation.generates:
                installation.end(event_id)
            else:
                installation.ledger.settle(event_id, Settlement(status=UsageStatus.COMPLETED, input_tokens=9))
        installation.clock.now += 40_000


def test_an_empty_installation_agrees(installation: Installation) -> None:
    assert installation.look(since=0).ok
    assert installation.look().ok


def test_books_that_are_kept_agree_and_every_check_has_compared_something(installation: Installation) -> None:
    spend(installation)
    found = installation.look(since=0)

    assert found.ok, found.checks
    assert found.as_of == int(installation.clock.now)
    assert [check.name for check in found.checks] == [
        "engine_prefill",
        "engine_decode",
        "rollup_15m",
        "rollup_day",
        "rollup_month",
        "rollup_facet",
        "components",
        "document_tokens",
        "orphaned_calls",
        "orphaned_holds",
        "budget_reserved",
        "budget_settled",
    ]
    by_name = {check.name: (check.expected, check.found) for check in found.checks}
    assert by_name["engine_prefill"] == (90, 90)
    assert by_name["engine_decode"] == (60, 60)
    assert by_name["rollup_15m"] == by_name["rollup_day"] == by_name["rollup_month"] == (207, 207)
    assert by_name["rollup_facet"] == (4 * 207, 4 * 207), "by user and by model, in days and in months"


def more(table: sa.Table, column: str = "input_tokens") -> Callable[[Installation], None]:
    def change(installation: Installation) -> None:
        with installation.changed() as connection:
            first = sa.select(sa.func.max(table.c.bucket_start)).scalar_subquery()
            connection.execute(
                sa.update(table)
                .where(table.c.bucket_start == first, table.c.operation == "chat")
                .values({column: table.c[column] + 1})
            )

    return change


def lose_a_sum(installation: Installation) -> None:
    with installation.changed() as connection:
        connection.execute(sa.delete(usage_rollup_15m).where(usage_rollup_15m.c.operation == "embed_query"))
        connection.execute(sa.delete(usage_rollup_day).where(usage_rollup_day.c.operation == "embed_query"))
        connection.execute(sa.delete(usage_rollup_month).where(usage_rollup_month.c.operation == "embed_query"))


def lose_a_facet(installation: Installation) -> None:
    with installation.changed() as connection:
        connection.execute(sa.delete(usage_rollup_facet).where(usage_rollup_facet.c.width == "month"))


def move_to_another_user(installation: Installation) -> None:
    """The totals stay what they were."""
    for table in (usage_rollup_15m, usage_rollup_day, usage_rollup_month):
        with installation.changed() as connection:
            connection.execute(sa.update(table).values(user_id="u2"))


def compute_more(installation: Installation) -> None:
    installation.count(prefill=1, decode=0)


def generate_more(installation: Installation) -> None:
    installation.count(prefill=0, decode=1)


def settle_uncounted(installation: Installation) -> None:
    installation.end(installation.begin(), counted=False)


def leave_a_call_of_another_process(installation: Installation) -> None:
    other = Ledger(installation.database, "boot_0", installation.clock, observers=(Rollups(BERLIN),))
    other.reserve(reservation("lost:1"))


def misjudge_a_document(installation: Installation) -> None:
    installation.ledger.reserve(reservation("odd:1", documents=(DocumentShare("doc_1", 1, 7),)))
    installation.end("odd:1")


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (more(usage_rollup_15m), {"rollup_15m", "rollup_day"}),
        (more(usage_rollup_15m, "cost_low"), {"rollup_15m", "rollup_day"}),
        (more(usage_rollup_15m, "num_unpriced"), {"rollup_15m", "rollup_day"}),
        (more(usage_rollup_day), {"rollup_day", "rollup_month", "rollup_facet"}),
        (more(usage_rollup_month, "num_calls"), {"rollup_month", "rollup_facet"}),
        (more(usage_rollup_facet), {"rollup_facet"}),
        (more(usage_rollup_facet, "num_recovered"), {"rollup_facet"}),
        (more(usage_rollup_facet, "num_adjustments"), {"rollup_facet"}),
        (lose_a_facet, {"rollup_facet"}),
        (lose_a_sum, {"rollup_15m", "rollup_facet"}),
        (move_to_another_user, {"rollup_15m", "rollup_facet"}),
        (compute_more, {"engine_prefill"}),
        (generate_more, {"engine_decode"}),
        (settle_uncounted, {"engine_prefill", "engine_decode"}),
        (leave_a_call_of_another_process, {"orphaned_calls"}),
        (misjudge_a_document, {"document_tokens"}),
    ],
    ids=[
        "quarter-tokens",
        "quarter-cost",
        "quarter-unpriced",
        "day",
        "month",
        "facet-tokens",
        "facet-recovered",
        "facet-adjustments",
        "lost-facet",
        "lost-sum",
        "other-user",
        "computed-more",
        "generated-more",
        "billed-uncounted",
        "orphan",
        "documents",
    ],
)
def test_each_kind_of_damage_is_found_and_no_other(
    installation: Installation, damage: Callable[[Installation], None], names: set[str]
) -> None:
    spend(installation)
    assert installation.look().ok
    damage(installation)
    found = installation.look(since=0)

    assert not found.ok
    assert set(found.mismatches) == names
    for name in names:
        assert f'footnote_ledger_mismatches{{check="{name}"}} 1.0' in exposed(installation)


def exposed(installation: Installation) -> str:
    return generate_latest(installation.metrics.registry).decode()


def test_a_mismatch_that_is_gone_is_gone_from_the_metrics(installation: Installation) -> None:
    event_id = installation.begin()
    installation.end(event_id, counted=False)
    assert not installation.look().ok
    installation.count(prefill=15, decode=10)

    assert installation.look().ok
    assert 'footnote_ledger_mismatches{check="engine_decode"} 0.0' in exposed(installation)
    told = installation.metrics.registry.get_sample_value("footnote_ledger_reconciled_timestamp_seconds")
    assert told == installation.clock.now


def hold(installation: Installation, *, reserved: int, settled: int | None, event_id: str = "gone:1") -> None:
    key = {"budget_id": "b1", "series": 1, "window_start": 0}
    with installation.changed() as connection:
        connection.execute(
            sa.insert(budget).values(
                budget_id="b1",
                tenant_id="t1",
                scope_type="tenant",
                scope_id="t1",
                unit="tokens",
                limit_value=1000,
                period="total",
                enforcement="hard",
                created_by="u1",
                created_at=0,
            )
        )
        connection.execute(sa.insert(budget_window).values(**key, reserved=reserved, settled=settled or 0))
        connection.execute(sa.insert(budget_hold).values(**key, event_id=event_id, reserved=70, settled=settled))


def test_budgets_that_agree_with_their_holds_are_no_mismatch(installation: Installation) -> None:
    hold(installation, reserved=70, settled=None, event_id=installation.begin())
    found = installation.look(since=0)

    assert found.ok
    assert installation.check("budget_reserved", since=0).found == 70


@pytest.mark.parametrize(
    ("reserved", "settled", "names"),
    [
        (70, None, {"orphaned_holds"}),
        (60, None, {"orphaned_holds", "budget_reserved"}),
        (1, 30, {"budget_reserved"}),
    ],
    ids=["held-by-nobody", "reserved-less", "reserved-by-nobody"],
)
def test_budgets_that_contradict_their_holds_are_mismatches(
    installation: Installation, reserved: int, settled: int | None, names: set[str]
) -> None:
    hold(installation, reserved=reserved, settled=settled)
    assert set(installation.look(since=0).mismatches) == names


def test_spending_that_no_call_spent_is_found_where_all_is_asked_for(installation: Installation) -> None:
    hold(installation, reserved=0, settled=30)
    with installation.changed() as connection:
        connection.execute(sa.update(budget_window).values(settled=31))

    assert installation.look().ok, "the cheap look leaves budgets that never end to the other"
    assert set(installation.look(since=0).mismatches) == {"budget_settled"}
    assert installation.check("budget_settled", since=0).expected == 31


def test_days_of_another_zone_are_not_compared(installation: Installation) -> None:
    spend(installation)
    with installation.changed() as connection:
        connection.execute(sa.insert(usage_rollup_zone).values(tz="Asia/Tokyo", built_at=0))
        connection.execute(sa.delete(usage_rollup_day))

    found = {check.name: check for check in installation.look(since=0).checks}
    assert found["rollup_day"].ok
    assert found["rollup_day"].expected is found["rollup_facet"].expected is None
    assert found["rollup_facet"].ok
    assert found["rollup_15m"].expected == 207


def test_costs_above_64_bits_are_summed_exactly(sqlite_database: Database) -> None:
    installation = Installation(sqlite_database)
    with installation.changed() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO price (price_id, model_id, meter, currency, pico_per_token, effective_from, created_by,"
                " created_at) VALUES ('p1', 'm1', 'input', 'usd', 400000000000000000, 0, 'u1', 0),"
                " ('p2', 'm1', 'output', 'usd', 1, 0, 'u1', 0)"
            )
        )
    for _ in range(4):  # 8e18 pico-units each: two of them are more than 64 bits hold
        installation.end(installation.begin(), cached=0)

    assert installation.look(since=0).ok
    more(usage_rollup_15m, "cost_high")(installation)
    assert not installation.look(since=0).ok


def test_the_periodic_look_gives_way_to_an_administrators(installation: Installation) -> None:
    class Meanwhile:
        """An engine whose counters are read while a look is being taken: another look begins then."""

        info = installation.engine.info

        def stats(self) -> EngineStats:
            reconciliation.run_unless_busy()
            return installation.engine.stats()

    meanwhile = EngineCounters(installation.database, Meanwhile(), boot_id="boot_1")
    reconciliation = LedgerReconciliation(
        installation.database, OwnProcess.alone("boot_1"), zone=BERLIN, metrics=installation.metrics, counters=meanwhile
    )

    reconciliation.run_unless_busy()

    assert reconciliation.last is not None


def test_components_of_a_call_the_database_does_not_check_are_looked_at(installation: Installation) -> None:
    spend(installation)
    event_id = installation.begin(Operation.REWRITE)
    with installation.changed() as connection:
        connection.execute(
            sa.text("UPDATE usage_event SET tok_template = tok_template + 1 WHERE event_id = :id"), {"id": event_id}
        )
    installation.end(event_id)

    assert set(installation.look().mismatches) == {"components"}
