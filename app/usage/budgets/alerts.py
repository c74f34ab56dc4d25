"""Records passed thresholds of budgets, once for each window, in the transaction that passed them.

A threshold is a percentage of the limit, compared with the settled amount, since reservations may be given back. A
refusal counts as 100 %, whatever is settled, and fires one threshold: the highest that 100 % passes; spending has yet
to pass the lower ones. A lowered limit passes thresholds as spending does. A threshold fires only once in a window,
even if the limit is raised afterwards.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.tables.budgets import budget_alert

REFUSAL_PERCENT = 100
"""The percentage of the limit that a refusal counts as."""

Reason = Literal["spent", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The use of a budget in a window, to compare with its thresholds. `at` is Unix microseconds.

    Amounts are tokens or pico-units. `used` is the settled amount, for a refusal the settled and reserved amount.
    `thresholds` are percentages of `limit`.
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
        """The thresholds that this use has passed; of a refusal the highest alone."""
        if self.reason == "refused":
            return tuple(percent for percent in self.thresholds if percent <= REFUSAL_PERCENT)[-1:]
        if self.used <= 0:  # no use passes no threshold, even of a limit of 0
            return ()
        return tuple(percent for percent in self.thresholds if self.used * 100 >= percent * self.limit)


# built once: every settlement beyond a threshold runs it
_FIRE = insert_or_ignore(budget_alert)


def fire_in(connection: sa.Connection, *crossings: Crossing) -> None:
    """Record the passed thresholds that were not recorded for their window before."""
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
    """Read thresholds from a budget's row, ascending."""
    return tuple(json.loads(stored))


def stored_thresholds(thresholds: Sequence[int]) -> str:
    """Write thresholds for a budget's row."""
    return json.dumps(sorted(set(thresholds)))
