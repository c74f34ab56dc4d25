"""Looks at watched questions that are due, one at a time, and posts their events to the installation's webhook."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from app.answering.answerer import Answerer
from app.db.watch_changes import WatchChanges
from app.db.watch_runs import WaitingEvent, WatchDeliveries, WatchRuns
from app.outbound.webhooks import NotDelivered
from app.telemetry.logs import logger
from app.unattended.asking import yield_to_requests
from app.usage.budgets.alert_delivery import MAX_ATTEMPTS, delay_after
from app.watches.watching import Watching

_BATCH = 20

Post = Callable[[Mapping[str, object]], None]
"""Delivers a body to the webhook, or raises `NotDelivered`."""


class WatchRunner:
    """Runs what is due. One instance serves one thread of one process; others may run beside it.

    Example:
        >>> runner.work()
        2
    """

    def __init__(
        self,
        *,
        runs: WatchRuns,
        changes: WatchChanges,
        watching: Watching,
        answerer: Callable[[], Answerer | None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`answerer` is the one in use, None while the models are loading; `sleep` waits for answers under way."""
        self._runs = runs
        self._changes = changes
        self._watching = watching
        self._answerer = answerer
        self._sleep = sleep

    def work(self, *, stopping: Callable[[], bool] = lambda: False) -> int:
        """Look at each watch that is due; returns how many.

        Args:
            stopping: Checked before each watch and while one is asked; once true, it stays due.

        Raises:
            StoreUnavailable, StorageFull: What is due stays due.
        """
        answerer = self._answerer()
        if answerer is None:
            return 0
        self._changes.spread()
        done = 0
        while not stopping() and (claimed := self._runs.claim()) is not None:
            yield_to_requests(answerer, stopping=stopping, sleep=self._sleep)
            look = self._watching.look(claimed, answerer, stopping=stopping)
            kept = self._runs.finish(claimed, look)
            logger().info(
                "watch.looked",
                watch=claimed.watch.id,
                state=look.state,
                asked=look.answer is not None,
                differs=look.event is not None,
                kept=kept,
            )
            done += 1
        return done


class WatchNews:
    """Posts the events of all tenants, each once: a crash between its delivery and the note of it may repeat it.

    Of several processes on one database each posts what it takes first.

    The composition root calls `work` every few seconds.

    Example:
        >>> WatchNews(deliveries, partial(webhooks.post, url)).work()
        0
    """

    def __init__(self, deliveries: WatchDeliveries, post: Post) -> None:
        """`post` delivers a body."""
        self._deliveries = deliveries
        self._post = post

    def work(self, *, stopping: Callable[[], bool] = lambda: False) -> int:
        """Try once to deliver each event that is due; returns how many were. One thread of a process calls it.

        Raises:
            StoreUnavailable, StorageFull: They stay due.
        """
        due = self._deliveries.due(limit=_BATCH)
        for waiting in due:
            if stopping():
                break
            if self._deliveries.take(waiting):
                self._deliver(waiting)
        return len(due)

    def _deliver(self, waiting: WaitingEvent) -> None:
        attempts = waiting.attempts + 1
        try:
            self._post(message(waiting))
        except NotDelivered as error:
            logger().warning("watch.not_delivered", id=waiting.event.id, attempt=attempts, error=str(error))
            again_s = None if attempts >= MAX_ATTEMPTS else delay_after(attempts)
            self._deliveries.note(waiting, delivered=False, again_s=again_s)
        else:
            self._deliveries.note(waiting, delivered=True)


def message(waiting: WaitingEvent) -> dict[str, object]:
    """The body of an event with the field names of the API, and its tenant; `id` is the same in every attempt."""
    event = waiting.event
    return {
        "id": event.id,
        "object": "watch_event",
        "tenant_id": waiting.tenant_id,
        "watch_id": event.watch_id,
        "question": event.question,
        "before": _told(event.before),
        "after": _told(event.after),
        "differences": [dict(one) for one in event.differences],
        "created_at": _rfc3339(event.created_at),
    }


def _told(answer: Mapping[str, Any]) -> dict[str, object]:
    return {**answer, "created_at": _rfc3339(answer["created_at"])}


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
