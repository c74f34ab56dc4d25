"""The overview's reports over one installation's database, each in one read transaction."""

import time
from collections.abc import Callable
from zoneinfo import ZoneInfo

from app.db.session import Database
from app.usage.overview.expensive import expensive_questions
from app.usage.overview.overview import OverviewQuery, overview
from app.usage.overview.people import people
from app.usage.overview.unanswered import UnansweredQuery, unanswered_topics
from app.usage.overview.unused import UnusedQuery, unused_documents
from app.usage.rollups.zones import zone_named


class OverviewReports:
    """Makes the administrator's overview and its lists, of one tenant each. They block.

    Example:
        >>> reports = OverviewReports(database, zone=ZoneInfo("Europe/Berlin"))
        >>> reports.overview(OverviewQuery(tenant_id="t1", start=start))["total"]
    """

    def __init__(
        self,
        database: Database,
        *,
        zone: ZoneInfo | None = None,
        currency: str = "usd",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`zone` is the reporting zone (None: UTC); `clock` gives Unix seconds."""
        self._database = database
        self._zone = zone or ZoneInfo("UTC")
        self._currency = currency
        self._clock = clock

    @property
    def zone(self) -> ZoneInfo:
        """The reporting zone."""
        return self._zone

    def overview(self, query: OverviewQuery) -> dict[str, object]:
        """Figures by bucket, in all and of the period before, and the cost of the month.

        Raises:
            InvalidRequest: The range, zone or width is not valid, or gives too many buckets; `param` names it.
        """
        zone, as_of = self._zone if query.tz is None else zone_named(query.tz), int(self._clock())
        with self._database.read() as connection:
            return overview(connection, query, zone=zone, kept=self._zone, as_of=as_of, currency=self._currency)

    def unanswered(self, query: UnansweredQuery) -> dict[str, object]:
        """Topics of unsure and refused questions, the largest first, with the nearest passages.

        Raises:
            InvalidRequest: The range is not valid; `param` names it.
        """
        with self._database.read() as connection:
            return unanswered_topics(connection, query, as_of=int(self._clock()))

    def unused_documents(self, query: UnusedQuery) -> dict[str, object]:
        """Documents that no answer cites, or none since a date, the oldest first.

        Raises:
            InvalidRequest: The date or page is not valid; `param` names it.
        """
        with self._database.read() as connection:
            return unused_documents(connection, query, as_of=int(self._clock()))

    def expensive(self, query: OverviewQuery, *, limit: int) -> dict[str, object]:
        """The most expensive questions, with reasons.

        Raises:
            InvalidRequest: The range is not valid; `param` names it.
        """
        as_of = int(self._clock())
        with self._database.read() as connection:
            return expensive_questions(connection, query, limit=limit, as_of=as_of, currency=self._currency)

    def people(self, query: OverviewQuery, *, limit: int) -> dict[str, object]:
        """Each person's use, the highest cost first.

        Raises:
            InvalidRequest: The range is not valid; `param` names it.
        """
        as_of = int(self._clock())
        with self._database.read() as connection:
            return people(connection, query, limit=limit, zone=self._zone, as_of=as_of, currency=self._currency)
