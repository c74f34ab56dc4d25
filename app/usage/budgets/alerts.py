"""Thresholds of budgets that were passed: each is noted once a window, in the transaction that passed it.

A threshold is a percentage of the limit, held against what is settled: what is only reserved may come back. A refusal
counts as 100 %, whatever is settled: somebody waits. A limit that is lowered passes thresholds as spending does. Fired
once is fired for that window, also when the limit is raised afterwards.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.tables.budgets import budget_alert

REFUSAL_PERCENT = 100
"""What a refusal counts as, in percent of the limit."""

Reason = Literal["spent", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What a window of a budget has come to. Amounts are tokens or pico-units; `at` is Unix microseconds.

    `used` is what is settled; of a refusal, what is settled and reserved. `thresholds` are percentages of `limit`.
    """

    budget_id: str
    series: int
    window_start: int
    thresholds: tuple[int, ...]
    limit: int
    used: int
    at: int
    reason: Reason = "spent"

    @property
    def passed(self) -> tuple[int, ...]:
        """The thresholds that are passed."""
        if self.reason == "refused":
            return tuple(percent for percent in self.thresholds if percent <= REFUSAL_PERCENT)
        if self.used <= 0:  # a limit of 0 is not passed by nothing
            return ()
        return tuple(percent for percent in self.thresholds if self.used * 100 >= percent * self.limit)


# composed once: settlements of budgets that are nearly spent run it every time
_FIRE = insert_or_ignore(budget_alert)


def fire_in(connection: sa.Connection, *crossings: Crossing) -> None:
    """Note the thresholds that are passed and were not noted for their window before."""
    passed = [
        {
            "budget_id": crossing.budget_id,
            "series": crossing.series,
            "window_start": crossing.window_start,
            "percent": percent,
            "reason": crossing.reason,
            "used": crossing.used,
            "limit_value": crossing.limit,
            "fired_at": crossing.at,
            "next_attempt_at": crossing.at,
        }
        for crossing in crossings
        for percent in crossing.passed
    ]
    if passed:
        connection.execute(_FIRE.on(connection), passed)


def thresholds_of(stored: str) -> tuple[int, ...]:
    """Thresholds as a budget's row keeps them, ascending."""
    return tuple(json.loads(stored))


def stored_thresholds(thresholds: Sequence[int]) -> str:
    """Thresholds as a budget's row keeps them."""
    return json.dumps(sorted(set(thresholds)))
