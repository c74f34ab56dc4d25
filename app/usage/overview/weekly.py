"""Sends a weekly summary to a webhook or by mail: the overview of the last whole week beside the week before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa

from app.db.deliveries import Deliveries
from app.db.dialect import insert_or_ignore
from app.db.session import Database
from app.db.tables.ledger import weekly_summary
from app.errors import InvalidRequest, SetupError
from app.outbound.mail import Mailer, MailNotSent
from app.outbound.webhooks import NotDelivered, Webhooks
from app.settings.access import is_mail_address
from app.telemetry.logs import logger
from app.usage.budgets.alert_delivery import MAX_ATTEMPTS, delay_after
from app.usage.overview.overview import OverviewQuery
from app.usage.overview.reports import OverviewReports
from app.usage.overview.weekly_letter import weekly_letter
from app.usage.rollups.questions import RUNNING_SECONDS
from app.usage.rollups.zones import start_of

Send = Callable[[Mapping[str, object]], None]
"""Delivers the body of a summary once; raises NotDelivered."""

MOST_ADDRESSES = 20

_WEBHOOK = "webhook"
_NEW = insert_or_ignore(weekly_summary)
_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Weeks:
    """The starts of two weeks and the end of the second, Unix seconds; weeks begin on Monday in the reporting zone."""

    before: int
    start: int
    end: int


class WeeklySummary:
    """Delivers the summary of each week to one receiver once it has ended, by one of the processes on a database.

    A crash between the delivery and the note of it may repeat it. The composition root calls `work` every minute, in
    one thread. Weeks that ended while nothing ran are not delivered later, except the last one.

    Example:
        >>> weekly = WeeklySummary(database, reports, send, channel="webhook", tenant_id="default", clock=time.time)
        >>> weekly.work()
        True
    """

    def __init__(
        self,
        database: Database,
        reports: OverviewReports,
        send: Send,
        *,
        channel: str,
        tenant_id: str,
        clock: Callable[[], float],
        claimant: str | None = None,
    ) -> None:
        """`send` delivers a body, `clock` gives Unix seconds; `tenant_id` is the summarised tenant.

        `channel` names the receiver: each has deliveries and attempts of its own. `claimant` is this process, of
        several that share the database; None if it is alone.
        """
        self._deliveries = Deliveries(database, weekly_summary, claimant=claimant)
        self._database = database
        self._reports = reports
        self._send = send
        self._channel = channel
        self._tenant_id = tenant_id
        self._clock = clock

    def work(self) -> bool:
        """Try once to deliver the last week's summary, if it is due and no other process does; returns whether it did.

        Raises:
            StoreUnavailable, StorageFull: It stays due.
        """
        now = int(self._clock())
        weeks = last_weeks(self._reports, now - RUNNING_SECONDS)
        row = self._row(weeks, now)
        if row.delivery != "waiting" or row.next_attempt_at > now:
            return False
        if not self._deliveries.take(*self._mine(weeks), attempts=row.attempts):
            return False
        attempts = row.attempts + 1
        by = self._channel.partition(":")[0]  # an address is nobody's business
        log = logger().bind(tenant=self._tenant_id, week=weeks.start, attempt=attempts, by=by)
        try:
            self._send(self.message(weeks))
        except NotDelivered as error:
            log.warning("weekly_summary.not_delivered", error=str(error))
            given_up = attempts >= MAX_ATTEMPTS
            later = {"delivery": "failed"} if given_up else {"next_attempt_at": now + round(delay_after(attempts))}
            self._deliveries.note(*self._mine(weeks), attempts=attempts, **later)
        else:
            log.info("weekly_summary.delivered")
            self._deliveries.note(*self._mine(weeks), attempts=attempts, delivery="delivered", delivered_at=now)
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
        values = {
            "tenant_id": self._tenant_id,
            "week_start": weeks.start,
            "channel": self._channel,
            "next_attempt_at": now,
        }
        with self._database.write() as connection:
            connection.execute(_NEW.on(connection), values)
            return connection.execute(mine).one()

    def _mine(self, weeks: Weeks) -> tuple[sa.ColumnElement[bool], ...]:
        columns = weekly_summary.c
        return (
            columns.tenant_id == self._tenant_id,
            columns.week_start == weeks.start,
            columns.channel == self._channel,
        )


def weekly_summaries(
    *,
    url: str,
    addresses: str,
    webhooks: Webhooks,
    mailer: Mailer | None,
    database: Database,
    reports: OverviewReports,
    tenant_id: str,
    clock: Callable[[], float],
    claimant: str | None = None,
) -> tuple[WeeklySummary, ...]:
    """The summaries that go to FOOTNOTE_SUMMARY_WEBHOOK and FOOTNOTE_SUMMARY_MAIL, each to its receiver.

    Raises:
        SetupError: The URL may not receive deliveries, or mail cannot be sent to these addresses.
    """
    sends: dict[str, Send] = {}
    if url:
        try:
            webhooks.check(url)
        except InvalidRequest as error:
            raise SetupError(f"FOOTNOTE_SUMMARY_WEBHOOK cannot be used. {error}") from None
        sends[_WEBHOOK] = partial(webhooks.post, url)
    for address in _addresses(addresses):
        if mailer is None:
            raise SetupError("FOOTNOTE_SUMMARY_MAIL needs FOOTNOTE_SMTP_URL.")
        sends[f"mail:{address}"] = partial(_mail, mailer, address)
    return tuple(
        WeeklySummary(database, reports, send, channel=channel, tenant_id=tenant_id, clock=clock, claimant=claimant)
        for channel, send in sends.items()
    )


def _addresses(text: str) -> list[str]:
    found = list(dict.fromkeys(filter(None, (one.strip() for one in text.split(",")))))
    if len(found) > MOST_ADDRESSES or not all(map(is_mail_address, found)):
        raise SetupError(f"FOOTNOTE_SUMMARY_MAIL must be at most {MOST_ADDRESSES} mail addresses, comma-separated.")
    return found


def _mail(mailer: Mailer, address: str, body: Mapping[str, object]) -> None:
    try:
        mailer.send(weekly_letter(body, to=address))
    except MailNotSent:
        raise NotDelivered("The mail was not sent.") from None  # the log of the mailer says why


def last_weeks(reports: OverviewReports, at: int) -> Weeks:
    """The last whole week before `at`, Unix seconds, and the week before it, in the zone of `reports`."""
    today = datetime.fromtimestamp(at, reports.zone).date()
    monday = today - timedelta(days=today.weekday())
    end, start, before = (start_of(monday - timedelta(weeks=weeks), reports.zone) // _MICRO for weeks in (0, 1, 2))
    return Weeks(before, start, end)
