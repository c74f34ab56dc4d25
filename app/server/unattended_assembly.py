"""Puts together what is asked without a caller who waits: watched questions, with their events, and tables."""

from collections.abc import Callable
from functools import partial
from zoneinfo import ZoneInfo

from app.answer_tables.filling import Filling
from app.answer_tables.runner import TableRunner
from app.answering.answerer import Answerer
from app.db.acting import ActingPrincipals
from app.db.answer_tables import AnswerTableRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from app.db.table_cells import TableCells
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
    settings, database, own = state.settings, state.database, _own(state, neighbours)
    least_s = settings.watch_interval_s
    return WatchRunner(
        runs=WatchRuns(
            database, own, events_kept=settings.watch_events, least_s=least_s, may_claim=neighbours.may_claim
        ),
        changes=WatchChanges(database, own, least_s=least_s),
        watching=Watching(
            principals=_principals(state),
            collections=state.corpus.collections,
            zone=ZoneInfo(settings.reporting_zone),
            clock=own.clock,
            deadline_s=settings.answer_deadline_s,
            deliver=delivers,
        ),
        answerer=_answerer(state),
    )


def table_repository(settings: Settings, database: Database, *, clock: Callable[[], float]) -> AnswerTableRepository:
    """The tables of all tenants, with the limits of the settings; `clock` gives Unix seconds."""
    return AnswerTableRepository(
        database, most=settings.tables_per_key, most_documents=settings.table_documents, clock=clock
    )


def table_runner(state: State, neighbours: Neighbours) -> TableRunner:
    """The runner of the tables of this process, with the models in use."""
    own = _own(state, neighbours)
    return TableRunner(
        cells=TableCells(state.database, own, may_claim=neighbours.may_claim),
        filling=Filling(
            principals=_principals(state),
            collections=state.corpus.collections,
            documents=state.corpus.documents,
            clock=own.clock,
            deadline_s=state.settings.answer_deadline_s,
        ),
        answerer=_answerer(state),
    )


def _own(state: State, neighbours: Neighbours) -> OwnProcess:
    return OwnProcess(neighbours.boot_id, neighbours.gone, state.usage.ledger.seconds)


def _principals(state: State) -> ActingPrincipals:
    role = Role(state.settings.oidc_role)
    return ActingPrincipals(state.database, openid_role=role, clock=state.usage.ledger.seconds)


def _answerer(state: State) -> Callable[[], Answerer | None]:
    """The answerer in use; none while the models are loading."""
    serving = state.serving
    return lambda: None if serving.models is None else serving.models.answerer
