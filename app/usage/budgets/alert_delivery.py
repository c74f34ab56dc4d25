"""Delivers budget alerts: a line in the log, and a POST to the budget's webhook with retries."""

import threading
from collections.abc import Callable, Mapping

from app.clock import pause_after
from app.outbound.webhooks import NotDelivered
from app.telemetry.logs import logger
from app.usage.budgets.alert_rows import Alert, AlertRepository
from app.usage.budgets.alerts import Crossing
from app.usage.rollups.sums import decimal

_BATCH = 20
_FIRST_DELAY_S = 10.0
_MAX_DELAY_S = 3600.0
MAX_ATTEMPTS = 12
"""Attempts before a webhook is given up: about three and a half hours, with delays that double up to one hour."""

Post = Callable[[str, Mapping[str, object]], None]
"""Delivers a body to an address, or raises `NotDelivered`."""


class AlertDelivery:
    """Records refusals and delivers alerts, each once: a crash between its delivery and the note of it may repeat it.

    Of several processes on one database each delivers what it takes first.

    The composition root calls `work` every few seconds.

    Example:
        >>> delivery = AlertDelivery(alerts, webhooks.post, currency="usd")
        >>> budgets = Budgets(on_refusal=delivery.refused)
        >>> delivery.work()
        0
    """

    def __init__(self, alerts: AlertRepository, post: Post, *, currency: str) -> None:
        """`post` delivers a body to an address; `currency` is that of the installation."""
        self._alerts = alerts
        self._post = post
        self._currency = currency
        self._lock = threading.Lock()
        self._refused: dict[tuple[object, ...], Crossing] = {}
        self._recorded: set[tuple[object, ...]] = set()

    def refused(self, crossing: Crossing) -> None:
        """Queue a refusal to be recorded once for its window. Never blocks on the database."""
        if not crossing.passed:
            return
        key = crossing.budget_id, crossing.series, crossing.window_start, crossing.thresholds
        with self._lock:
            if key not in self._recorded:
                self._refused.setdefault(key, crossing)

    def work(self, *, stopping: Callable[[], bool] = lambda: False) -> int:
        """Record queued refusals and try once to deliver each due alert; returns how many were due.

        One thread of a process calls it.

        Args:
            stopping: Checked before each delivery; once true, the remaining alerts wait for the next start.

        Raises:
            StoreUnavailable, StorageFull: The remaining refusals stay queued.
        """
        with self._lock:
            refused = dict(self._refused)
        for key, crossing in refused.items():
            self._alerts.fire(crossing)
            with self._lock:
                del self._refused[key]
                self._recorded.add(key)
                if len(self._recorded) > 10_000:  # most are of past windows; recording one again changes nothing
                    self._recorded.clear()
        due = self._alerts.due(limit=_BATCH)
        for alert in due:
            if stopping():
                break
            if self._alerts.take(alert):
                self._deliver(alert)
        return len(due)

    def _deliver(self, alert: Alert) -> None:
        log = logger().bind(budget_id=alert.budget_id, percent=alert.percent, reason=alert.reason)
        if alert.attempts == 0:
            log.warning("budget.alert", scope=alert.scope_type, scope_id=alert.scope_id, unit=alert.unit)
        if not alert.webhook_url:
            self._alerts.delivered(alert, "logged")
            return
        try:
            self._post(alert.webhook_url, message(alert, currency=self._currency))
        except NotDelivered as error:
            log.warning("budget.alert_not_delivered", attempt=alert.attempts + 1, error=str(error))
            if alert.attempts + 1 >= MAX_ATTEMPTS:
                self._alerts.delivered(alert, "failed")
            else:
                self._alerts.put_off(alert, seconds=delay_after(alert.attempts + 1))
        else:
            self._alerts.delivered(alert, "delivered")


def delay_after(attempts: int) -> float:
    """Seconds from the `attempts`th failed attempt to the next."""
    return pause_after(attempts, first_s=_FIRST_DELAY_S, longest_s=_MAX_DELAY_S)


def message(alert: Alert, *, currency: str) -> dict[str, object]:
    """The body of an alert with the field names of the API; `id` is the same in every attempt."""
    money = alert.unit == "cost"
    return {
        "id": f"{alert.budget_id}:{alert.series}:{alert.window_start}:{alert.percent}",
        "object": "budget_alert",
        "budget_id": alert.budget_id,
        "scope_type": alert.scope_type,
        "scope_id": alert.scope_id,
        "percent": alert.percent,
        "reason": alert.reason,
        "unit": alert.unit,
        "used": decimal(alert.used) if money else alert.used,
        "limit": decimal(alert.limit) if money else alert.limit,
        "currency": currency if money else None,
        "window_start": alert.window_start // 1_000_000,
        "fired_at": alert.fired_at // 1_000_000,
    }
