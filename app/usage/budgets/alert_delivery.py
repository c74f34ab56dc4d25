"""Tells people of budgets that run out: a line in the log, and a POST to the budget's webhook until it is taken."""

import threading
from collections.abc import Callable, Mapping

from app.outbound.webhooks import NotDelivered
from app.telemetry.logs import logger
from app.usage.budgets.alert_rows import Alert, AlertRepository
from app.usage.budgets.alerts import Crossing
from app.usage.rollups.sums import decimal

_EVERY_SECONDS = 5.0
_CLOSE_SECONDS = 12.0  # a little more than one delivery may take
_AT_ONCE = 20
_FIRST_SECONDS = 10.0
_LONGEST_SECONDS = 3600.0
MOST_ATTEMPTS = 12
"""After so many the webhook is given up: in about three and a half hours, the delays doubling up to one."""

Post = Callable[[str, Mapping[str, object]], None]
"""Delivers a body to an address, or raises `NotDelivered`."""


class AlertDelivery:
    """A thread that notes refusals and delivers alerts, at least once each: a process may die before it is noted."""

    def __init__(self, alerts: AlertRepository, post: Post, *, currency: str, every: float = _EVERY_SECONDS) -> None:
        """Nothing runs before `start`; `currency` is that of the installation, `every` the seconds between looks."""
        self._alerts = alerts
        self._post = post
        self._currency = currency
        self._every = every
        self._lock = threading.Lock()
        self._refused: dict[tuple[object, ...], Crossing] = {}
        self._noted: set[tuple[object, ...]] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="footnote-alerts", daemon=True)

    def refused(self, crossing: Crossing) -> None:
        """A call was refused; noted soon, once a window. Never blocks on the database."""
        if not crossing.passed:
            return
        key = crossing.budget_id, crossing.series, crossing.window_start, crossing.thresholds
        with self._lock:
            if key not in self._noted:
                self._refused.setdefault(key, crossing)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End; a delivery under way is waited for, what is not delivered waits for the next start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_CLOSE_SECONDS)

    def work(self) -> int:
        """Note what was refused and try once to deliver what is due; how many alerts were tried.

        Raises:
            StoreUnavailable, StorageFull: What is not noted is looked at again.
        """
        with self._lock:
            refused = dict(self._refused)
        for key, crossing in refused.items():
            self._alerts.fire(crossing)
            with self._lock:
                del self._refused[key]
                self._noted.add(key)
                if len(self._noted) > 10_000:  # of windows long past; noting one again changes nothing
                    self._noted.clear()
        due = self._alerts.due(limit=_AT_ONCE)
        for alert in due:
            if self._stop.is_set():
                break
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
            if alert.attempts + 1 >= MOST_ATTEMPTS:
                self._alerts.delivered(alert, "failed")
            else:
                self._alerts.put_off(alert, seconds=delay_after(alert.attempts + 1))
        else:
            self._alerts.delivered(alert, "delivered")

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self.work()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any single failure; it is logged
                logger().error("budget.alerts_failed", error=type(error).__name__, exc_info=error)


def delay_after(attempts: int) -> float:
    """Seconds from the `attempts`th failed attempt to the next."""
    assert attempts >= 1, "it was tried"
    return float(min(_FIRST_SECONDS * 2 ** (attempts - 1), _LONGEST_SECONDS))


def message(alert: Alert, *, currency: str) -> dict[str, object]:
    """The body of an alert, in the log's and the API's words; `id` is the same in every attempt."""
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
