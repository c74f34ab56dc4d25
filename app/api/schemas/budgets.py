"""Bodies of budgets and their alerts. Amounts of money are decimal strings in the installation's currency."""

import re
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import BeforeValidator, Field, WithJsonSchema

from app.api.schemas.shape import RequestBody, ResponseBody
from app.errors import InvalidRequest
from app.usage.budgets.alert_rows import Alert
from app.usage.budgets.rows import Budget
from app.usage.budgets.windows import BudgetWindow
from app.usage.rollups.sums import decimal

_MOST_TOKENS = 10**15
_MOST_UNITS = 9_000_000  # of money: larger amounts in pico-units exceed 64 bits
_DECIMAL = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,12}))?")
_MOST_PERCENT = 1000
_LIMIT = "A whole number of tokens, or an amount of money as a decimal string with at most 12 decimals."
_THRESHOLDS = f"Percentages of the limit at which an alert fires, 1 to {_MOST_PERCENT}; each fires once per period."
_WEBHOOK = (
    "URL that alerts are posted to as JSON; empty: alerts are only logged. Only public addresses, unless the "
    "server names the host in FOOTNOTE_WEBHOOK_HOSTS."
)


def _number(value: object) -> object:
    """The value if it is no text: a text that is too long for an amount must not become a number of tokens."""
    if isinstance(value, str):
        raise ValueError("a number of tokens is no text")
    return value


_Tokens = Annotated[
    int, BeforeValidator(_number), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": _MOST_TOKENS})
]
_Amount = _Tokens | Annotated[str, Field(max_length=100)]  # `amount_of` checks both by the budget's unit
_Percent = Annotated[int, Field(ge=1, le=_MOST_PERCENT)]


class Terms(RequestBody):
    """The terms of a budget, without its scope."""

    unit: Literal["tokens", "cost"] = Field(
        default="tokens", description="tokens: input and output tokens; cost: their price at the time of settlement."
    )
    limit: _Amount = Field(description=_LIMIT, examples=[1_000_000, "25.50"])
    period: Literal["minute", "day", "month", "total"] = Field(
        description="The period after which the count starts again; total never ends."
    )
    tz: str | None = Field(
        default=None, max_length=100, description="IANA time zone of its days and months; null is the reporting zone."
    )
    enforcement: Literal["hard", "soft"] = Field(
        default="hard", description="hard refuses calls that might exceed the limit; soft only counts and alerts."
    )
    thresholds: list[_Percent] = Field(default=[], max_length=20, description=_THRESHOLDS, examples=[[80, 100]])
    webhook_url: str = Field(default="", max_length=2048, description=_WEBHOOK)


class NewBudget(Terms):
    """A budget to create."""

    scope_type: Literal["tenant", "user", "key", "collection"] = Field(
        default="tenant",
        description="The scope whose calls count. A collection's calls are requests that name it, and its ingestion.",
    )
    scope_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Id of the user, key or collection; null for the tenant.",
    )


class BudgetPatch(RequestBody):
    """Changes; omitted fields stay. Scope, unit, period and time zone cannot change: create another budget."""

    limit: _Amount | None = Field(default=None, description=_LIMIT)
    enforcement: Literal["hard", "soft"] | None = Field(default=None, description="hard or soft.")
    thresholds: list[_Percent] | None = Field(default=None, max_length=20, description=_THRESHOLDS)
    webhook_url: str | None = Field(default=None, max_length=2048, description=_WEBHOOK)


class WindowBody(ResponseBody):
    """The use of a budget in one period."""

    object: Literal["budget_window"] = Field(default="budget_window", description="Always `budget_window`.")
    series: int = Field(description="Number of the count; every reset begins a new one.", examples=[1])
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int | None = Field(description="Unix seconds, exclusive; null is never.")
    used: int | str = Field(description="Used by completed calls: tokens, or a decimal string of money.")
    reserved: int | str = Field(description="Reserved by running calls: the most that they can use.")

    @classmethod
    def of(cls, window: BudgetWindow, *, unit: str) -> "WindowBody":
        """The body for a window of a budget in `unit`."""
        return cls(
            series=window.series,
            start_time=window.start // 1_000_000,
            end_time=_seconds(window.end),
            used=_shown(window.settled, unit),
            reserved=_shown(window.reserved, unit),
        )


class OwnBudget(ResponseBody):
    """A budget that the caller's calls count against, with its current use."""

    id: str = Field(description="The budget's id.", examples=["budget_01k9"])
    object: Literal["budget"] = Field(default="budget", description="Always `budget`.")
    scope_type: str = Field(description="tenant, user, key or collection.")
    scope_id: str = Field(description="Id of the scope whose calls count.")
    unit: str = Field(description="tokens or cost.")
    currency: str | None = Field(
        description="Currency of a budget in money, ISO 4217 in lower case; null for a budget in tokens."
    )
    limit: int | Annotated[str, Field(max_length=100)] = Field(description=_LIMIT)
    period: str = Field(description="minute, day, month or total.")
    tz: str = Field(description="IANA time zone of its days and months.")
    enforcement: str = Field(description="hard or soft.")
    used: int | str = Field(description="Used in this period by completed calls.")
    reserved: int | str = Field(description="Reserved by running calls.")
    remaining: int | str = Field(description="Remaining for new calls, at least 0.")
    reset_at: int | None = Field(description="When the period ends, Unix seconds; null: never.")

    @classmethod
    def of(cls, budget: Budget, *, currency: str) -> "OwnBudget":
        """The body for a budget."""
        return cls(**_fields(budget, currency))


class BudgetBody(OwnBudget):
    """A budget as administrators see it."""

    thresholds: list[int] = Field(description="Percentages of the limit at which alerts fire.")
    webhook_url: str = Field(description="URL that alerts are posted to; empty: alerts are only logged.")
    series: int = Field(description="Number of the count; every reset begins a new one.")
    created_by: str = Field(description="The user who created it.")
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
    """A deleted budget."""

    id: str = Field(description="The budget's id.")
    object: Literal["budget"] = Field(default="budget", description="Always `budget`.")
    deleted: Literal[True] = Field(default=True, description="Always true.")


class AlertBody(ResponseBody):
    """An alert: a threshold of a budget was passed."""

    object: Literal["budget_alert"] = Field(default="budget_alert", description="Always `budget_alert`.")
    budget_id: str = Field(description="The budget.")
    scope_type: str = Field(description="tenant, user, key or collection.")
    scope_id: str = Field(description="Id of the scope whose calls count.")
    percent: int = Field(description="The threshold, in percent of the limit.")
    reason: str = Field(
        description="spent: the use passed the threshold; refused: a call was refused, which counts as 100 percent."
    )
    unit: str = Field(description="tokens or cost.")
    used: int | str = Field(description="The use at that time; for a refusal including reservations.")
    limit: int | Annotated[str, Field(max_length=100)] = Field(description="The limit at that time.")
    series: int = Field(description="Number of the budget's count.")
    window_start: int = Field(description="When the period began, Unix seconds.")
    fired_at: int = Field(description="Unix seconds.")
    delivery: str = Field(description="waiting, delivered, failed (given up), or logged where there is no webhook.")
    attempts: int = Field(description="Number of attempts to call the webhook.")
    delivered_at: int | None = Field(description="When the webhook accepted it, Unix seconds; null if it did not.")

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
    """A limit as stored: tokens, or pico-units of money.

    Raises:
        InvalidRequest: It has the wrong type for its unit, or is out of range.
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


def sorted_thresholds(thresholds: list[int]) -> tuple[int, ...]:
    """The thresholds, sorted, without duplicates."""
    return tuple(sorted(set(thresholds)))


def require_zone(name: str) -> str:
    """The name, when it is an IANA time zone.

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
