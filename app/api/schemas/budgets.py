"""Bodies of budgets and their alerts. Limits in money are decimal strings of the installation's currency."""

import re
from typing import Any, Literal
from zoneinfo import available_timezones

from pydantic import Field

from app.api.schemas.shape import RequestBody, ResponseBody
from app.errors import InvalidRequest
from app.usage.budgets.alert_rows import Alert
from app.usage.budgets.rows import Budget
from app.usage.budgets.windows import Window
from app.usage.rollups.sums import decimal

_MOST_TOKENS = 10**15
_MOST_UNITS = 9_000_000  # of money: pico-units of more do not fit into 64 bits
_DECIMAL = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,12}))?")
_MOST_PERCENT = 1000
_LIMIT = "A whole number of tokens, or of money a decimal string with at most 12 decimals."
_THRESHOLDS = f"Percentages of the limit at which to tell, 1 to {_MOST_PERCENT}; each tells once a window."
_WEBHOOK = (
    "Where alerts are posted as JSON, besides the log; empty is nowhere. Only public addresses, unless the server "
    "names the host in FOOTNOTE_WEBHOOK_HOSTS."
)


class Terms(RequestBody):
    """What a budget says, whomever it is for."""

    unit: Literal["tokens", "cost"] = Field(
        default="tokens", description="tokens counts input and output; cost what they cost when they were settled."
    )
    limit: int | str = Field(description=_LIMIT, examples=[1_000_000, "25.50"])
    period: Literal["minute", "day", "month", "total"] = Field(description="What it is for; total never ends.")
    tz: str | None = Field(
        default=None, max_length=100, description="IANA zone of its days and months; null is the reporting zone."
    )
    enforcement: Literal["hard", "soft"] = Field(
        default="hard", description="hard refuses calls that might not fit; soft only counts and tells."
    )
    thresholds: list[int] = Field(default=[], max_length=20, description=_THRESHOLDS, examples=[[80, 100]])
    webhook_url: str = Field(default="", max_length=2048, description=_WEBHOOK)


class NewBudget(Terms):
    """A budget to set."""

    scope_type: Literal["tenant", "user", "key", "collection"] = Field(
        default="tenant",
        description="Whose calls count. Those of a collection are the requests that name it, and its ingestion.",
    )
    scope_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Id of the user, key or collection; null for the tenant.",
    )


class BudgetPatch(RequestBody):
    """What to change; fields left out stay. Scope, unit, period and zone are the budget's own: make another."""

    limit: int | str | None = Field(default=None, description=_LIMIT)
    enforcement: Literal["hard", "soft"] | None = Field(default=None, description="hard or soft.")
    thresholds: list[int] | None = Field(default=None, max_length=20, description=_THRESHOLDS)
    webhook_url: str | None = Field(default=None, max_length=2048, description=_WEBHOOK)


class WindowBody(ResponseBody):
    """What one period of a budget has taken."""

    object: Literal["budget_window"] = Field(default="budget_window", description="Always `budget_window`.")
    series: int = Field(description="Which count it is in: a reset begins another.", examples=[1])
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int | None = Field(description="Unix seconds, exclusive; null is never.")
    used: int | str = Field(description="Taken by calls that have ended; tokens, or a decimal string of money.")
    reserved: int | str = Field(description="Held by calls that run: the most they can take.")

    @classmethod
    def of(cls, window: Window, *, unit: str) -> "WindowBody":
        """The body for a window of a budget in `unit`."""
        return cls(
            series=window.series,
            start_time=window.start // 1_000_000,
            end_time=_seconds(window.end),
            used=_shown(window.settled, unit),
            reserved=_shown(window.reserved, unit),
        )


class OwnBudget(ResponseBody):
    """A budget the caller's calls count against, as it stands now."""

    id: str = Field(description="The budget's id.", examples=["budget_01k9"])
    object: Literal["budget"] = Field(default="budget", description="Always `budget`.")
    scope_type: str = Field(description="tenant, user, key or collection.")
    scope_id: str = Field(description="Whose calls count.")
    unit: str = Field(description="tokens or cost.")
    currency: str | None = Field(description="Of a budget in money, ISO 4217 in lower case; null of one in tokens.")
    limit: int | str = Field(description=_LIMIT)
    period: str = Field(description="minute, day, month or total.")
    tz: str = Field(description="The zone of its days and months.")
    enforcement: str = Field(description="hard or soft.")
    used: int | str = Field(description="Taken in this period by calls that have ended.")
    reserved: int | str = Field(description="Held by calls that run.")
    remaining: int | str = Field(description="What is left for new calls, at least 0.")
    reset_at: int | None = Field(description="When the period ends, Unix seconds; null is never.")

    @classmethod
    def of(cls, budget: Budget, *, currency: str) -> "OwnBudget":
        """The body for a budget."""
        return cls(**_fields(budget, currency))


class BudgetBody(OwnBudget):
    """A budget as administrators see it."""

    thresholds: list[int] = Field(description="Percentages of the limit at which alerts fire.")
    webhook_url: str = Field(description="Where alerts are posted; empty is nowhere.")
    series: int = Field(description="Which count it is in: a reset begins another.")
    created_by: str = Field(description="The user who set it.")
    created_at: int = Field(description="Unix seconds.")

    @classmethod
    def of(cls, budget: Budget, *, currency: str) -> "BudgetBody":
        """The body for a budget."""
        return cls(
            **_fields(budget, currency),
            thresholds=list(budget.thresholds),
            webhook_url=budget.webhook_url,
            series=budget.series,
            created_by=budget.created_by,
            created_at=budget.created_at // 1_000_000,
        )


class DeletedBudget(ResponseBody):
    """A budget that applies to nothing any more."""

    id: str = Field(description="The budget's id.")
    object: Literal["budget"] = Field(default="budget", description="Always `budget`.")
    deleted: Literal[True] = Field(default=True, description="Always true.")


class AlertBody(ResponseBody):
    """A threshold that was passed."""

    object: Literal["budget_alert"] = Field(default="budget_alert", description="Always `budget_alert`.")
    budget_id: str = Field(description="Of which budget.")
    scope_type: str = Field(description="tenant, user, key or collection.")
    scope_id: str = Field(description="Whose calls count.")
    percent: int = Field(description="The threshold, in percent of the limit.")
    reason: str = Field(description="spent, or refused: a call was, which counts as 100 percent.")
    unit: str = Field(description="tokens or cost.")
    used: int | str = Field(description="What was used then; of a refusal, with what calls that ran held.")
    limit: int | str = Field(description="The limit then.")
    series: int = Field(description="Which count of the budget.")
    window_start: int = Field(description="When the period began, Unix seconds.")
    fired_at: int = Field(description="Unix seconds.")
    delivery: str = Field(description="waiting, delivered, failed (given up), or logged where there is no webhook.")
    attempts: int = Field(description="How often the webhook was tried.")
    delivered_at: int | None = Field(description="When the webhook took it, Unix seconds; null if it did not.")

    @classmethod
    def of(cls, alert: Alert) -> "AlertBody":
        """The body for an alert."""
        return cls(
            budget_id=alert.budget_id,
            scope_type=alert.scope_type,
            scope_id=alert.scope_id,
            percent=alert.percent,
            reason=alert.reason,
            unit=alert.unit,
            used=_shown(alert.used, alert.unit),
            limit=_shown(alert.limit, alert.unit),
            series=alert.series,
            window_start=alert.window_start // 1_000_000,
            fired_at=alert.fired_at // 1_000_000,
            delivery=alert.delivery,
            attempts=alert.attempts,
            delivered_at=_seconds(alert.delivered_at),
        )


def amount_of(limit: int | str, *, unit: str) -> int:
    """A limit as it is kept: tokens, or pico-units of money.

    Raises:
        InvalidRequest: It is not written as its unit wants it, or out of range.
    """
    if unit == "tokens":
        if not isinstance(limit, int) or not 0 <= limit <= _MOST_TOKENS:
            raise InvalidRequest(f"A limit in tokens is a whole number from 0 to {_MOST_TOKENS}.", param="limit")
        return limit
    match = _DECIMAL.fullmatch(limit) if isinstance(limit, str) else None
    if match is None or int(match[1]) >= _MOST_UNITS:
        raise InvalidRequest(
            f'A limit in money is a decimal string below "{_MOST_UNITS}" with at most 12 decimals.', param="limit"
        )
    return int(match[1]) * 10**12 + int((match[2] or "").ljust(12, "0"))


def require_thresholds(thresholds: list[int]) -> tuple[int, ...]:
    """Thresholds, each once, ascending.

    Raises:
        InvalidRequest: One is not a percentage.
    """
    if any(not 1 <= percent <= _MOST_PERCENT for percent in thresholds):
        raise InvalidRequest(f"A threshold is a percentage from 1 to {_MOST_PERCENT}.", param="thresholds")
    return tuple(sorted(set(thresholds)))


def require_zone(name: str) -> str:
    """The name of a time zone.

    Raises:
        InvalidRequest: There is no such zone.
    """
    if name not in available_timezones():
        raise InvalidRequest("tz is a time zone of the IANA database, such as Europe/Berlin.", param="tz")
    return name


def _fields(budget: Budget, currency: str) -> dict[str, Any]:
    window, unit = budget.window, budget.unit
    return {
        "id": budget.id,
        "scope_type": budget.scope_type,
        "scope_id": budget.scope_id,
        "unit": unit,
        "currency": currency if unit == "cost" else None,
        "limit": _shown(budget.limit, unit),
        "period": budget.period,
        "tz": budget.tz,
        "enforcement": budget.enforcement,
        "used": _shown(window.settled, unit),
        "reserved": _shown(window.reserved, unit),
        "remaining": _shown(max(0, budget.limit - window.settled - window.reserved), unit),
        "reset_at": _seconds(window.end),
    }


def _shown(amount: int, unit: str) -> int | str:
    return decimal(amount) if unit == "cost" else amount


def _seconds(at: int | None) -> int | None:
    return None if at is None else at // 1_000_000
