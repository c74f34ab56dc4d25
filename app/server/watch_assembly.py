"""Puts watched questions together: what stores them, what runs them, and what posts their events."""

from collections.abc import Callable
from functools import partial
from zoneinfo import ZoneInfo

from app.db.acting import ActingPrincipals
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.watch_changes import WatchChanges
from app.db.watch_runs import WatchDeliveries, WatchRuns
from app.db.watches import WatchRepository
from app.errors import InvalidRequest, SetupError
from app.outbound.webhooks import Webhooks
from app.server.sharing import Neighbours
from app.server.state import State
from app.settings import Settings
from app.types import Role
from app.watches.runner import WatchNews, WatchRunner
from app.watches.watching import Watching


def watch_repository(
    settings: Settings, database: Database, webhooks: Webhooks, *, clock: Callable[[], float]
) -> WatchRepository:
    """The watches of all tenants, with the limits of the settings; `clock` gives Unix seconds.

    Raises:
        SetupError: Their events cannot be posted to FOOTNOTE_WATCH_WEBHOOK.
    """
    if settings.watch_webhook:
        try:
            webhooks.check(settings.watch_webhook)
        except InvalidRequest as error:
            raise SetupError(f"FOOTNOTE_WATCH_WEBHOOK cannot be used. {error}") from None
    return WatchRepository(database, most=settings.watches_per_key, least_s=settings.watch_interval_s, clock=clock)


def watch_news(state: State, neighbours: Neighbours) -> WatchNews | None:
    """The delivery of events to FOOTNOTE_WATCH_WEBHOOK by this process; None without one."""
    url = state.settings.watch_webhook
    if not url:
        return None
    deliveries = WatchDeliveries(state.database, clock=state.usage.ledger.seconds, claimant=neighbours.claimant)
    return WatchNews(deliveries, partial(state.usage.webhooks.post, url))


def watch_runner(state: State, neighbours: Neighbours, *, delivers: bool) -> WatchRunner:
    """The runner of the watches of this process, with the models in use; `delivers`: events are to be posted."""
    settings, database, clock = state.settings, state.database, state.usage.ledger.seconds
    own = OwnProcess(neighbours.boot_id, neighbours.gone, clock)
    least_s, serving = settings.watch_interval_s, state.serving
    return WatchRunner(
        runs=WatchRuns(
            database, own, events_kept=settings.watch_events, least_s=least_s, may_claim=neighbours.may_claim
        ),
        changes=WatchChanges(database, own, least_s=least_s),
        watching=Watching(
            principals=ActingPrincipals(database, openid_role=Role(settings.oidc_role), clock=clock),
            collections=state.corpus.collections,
            zone=ZoneInfo(settings.reporting_zone),
            clock=clock,
            deadline_s=settings.answer_deadline_s,
            deliver=delivers,
        ),
        answerer=lambda: None if serving.models is None else serving.models.answerer,
    )
