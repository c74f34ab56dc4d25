"""Posts a weekly summary to a webhook: the overview of the last whole week beside the week before, with retries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from app.db.dialect import insert_or_ignore
from app.db.session import Database
from app.db.tables.ledger import weekly_summary
from app.errors import InvalidRequest, SetupError
from app.outbound.webhooks import NotDelivered, Webhooks
from app.telemetry.logs import logger
from app.usage.budgets.alert_delivery import MAX_ATTEMPTS, Post, delay_after
from app.usage.overview.overview import OverviewQuery
from app.usage.overview.reports import OverviewReports
from app.usage.rollups.questions import RUNNING_SECONDS
from app.usage.rollups.zones import start_of

_NEW = insert_or_ignore(weekly_summary)
_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Weeks:
    """The starts of two weeks and the end of the second, Unix seconds; weeks begin on Monday in the reporting zone."""

    before: int
    start: int
    end: int


class WeeklySummary:
    """Delivers the summary of each week once it has ended, at least once: a crash after a delivery may repeat it.

    The composition root calls `work` every minute. Weeks that ended while nothing ran are not delivered later, except
    the last one.

    Example:
        >>> weekly = WeeklySummary(database, reports, webhooks.post, url=url, tenant_id="default", clock=time.time)
        >>> weekly.work()
        True
    """

    def __init__(
        self,
        database: Database,
        reports: OverviewReports,
        post: Post,
        *,
        url: str,
        tenant_id: str,
        clock: Callable[[], float],
    ) -> None:
        """`post` delivers a body to an address, `clock` gives Unix seconds; `tenant_id` is the summarised tenant."""
        self._database = database
        self._reports = reports
        self._post = post
        self._url = url
        self._tenant_id = tenant_id
        self._clock = clock

    def work(self) -> bool:
        """Try once to deliver the last week's summary, if it is due; returns whether it was.

        Raises:
            StoreUnavailable, StorageFull: It stays due.
        """
        now = int(self._clock())
        weeks = last_weeks(self._reports, now - RUNNING_SECONDS)
        row = self._row(weeks, now)
        if row.delivery != "waiting" or row.next_attempt_at > now:
            return False
        attempts = row.attempts + 1
        log = logger().bind(tenant=self._tenant_id, week=weeks.start, attempt=attempts)
        try:
            self._post(self._url, self.message(weeks))
        except NotDelivered as error:
            log.warning("weekly_summary.not_delivered", error=str(error))
            given_up = attempts >= MAX_ATTEMPTS
            later = {"delivery": "failed"} if given_up else {"next_attempt_at": now + round(delay_after(attempts))}
            self._set(weeks, attempts=attempts, **later)
        else:
            log.info("weekly_summary.delivered")
            self._set(weeks, attempts=attempts, delivery="delivered", delivered_at=now)
        return True

    def message(self, weeks: Weeks) -> Mapping[str, object]:
        """The body of a summary: the API's overview by day, whose `before` is the week before; `id` stays the same."""
        week = self._reports.overview(OverviewQuery(tenant_id=self._tenant_id, start=weeks.start, end=weeks.end))
        before = self._reports.overview(OverviewQuery(tenant_id=self._tenant_id, start=weeks.before, end=weeks.start))
        compared = {"start_time": weeks.before, "end_time": weeks.start, "result": before["total"]}
        return {
            "id": f"weekly_summary:{self._tenant_id}:{weeks.start}",
            "object": "weekly_summary",
            "tenant_id": self._tenant_id,
            "overview": {**week, "before": compared},
        }

    def _row(self, weeks: Weeks, now: int) -> sa.Row[Any]:
        """The delivery of a week's summary, begun if it is new."""
        mine = sa.select(weekly_summary).where(*self._mine(weeks))
        with self._database.read() as connection:
            found = connection.execute(mine).one_or_none()
        if found is not None:
            return found
        values = {"tenant_id": self._tenant_id, "week_start": weeks.start, "next_attempt_at": now}
        with self._database.write() as connection:
            connection.execute(_NEW.on(connection), values)
            return connection.execute(mine).one()

    def _set(self, weeks: Weeks, **values: object) -> None:
        with self._database.write() as connection:
            connection.execute(sa.update(weekly_summary).where(*self._mine(weeks)).values(**values))

    def _mine(self, weeks: Weeks) -> tuple[sa.ColumnElement[bool], ...]:
        columns = weekly_summary.c
        return columns.tenant_id == self._tenant_id, columns.week_start == weeks.start


def weekly_summary_to(
    url: str,
    *,
    webhooks: Webhooks,
    database: Database,
    reports: OverviewReports,
    tenant_id: str,
    clock: Callable[[], float],
) -> WeeklySummary | None:
    """The summary that is posted to FOOTNOTE_SUMMARY_WEBHOOK; None where it is empty.

    Raises:
        SetupError: It may not receive deliveries.
    """
    if not url:
        return None
    try:
        webhooks.check(url)
    except InvalidRequest as error:
        raise SetupError(f"FOOTNOTE_SUMMARY_WEBHOOK cannot be used. {error}") from None
    return WeeklySummary(database, reports, webhooks.post, url=url, tenant_id=tenant_id, clock=clock)


def last_weeks(reports: OverviewReports, at: int) -> Weeks:
    """The last whole week before `at`, Unix seconds, and the week before it, in the zone of `reports`."""
    today = datetime.fromtimestamp(at, reports.zone).date()
    monday = today - timedelta(days=today.weekday())
    end, start, before = (start_of(monday - timedelta(weeks=weeks), reports.zone) // _MICRO for weeks in (0, 1, 2))
    return Weeks(before, start, end)
