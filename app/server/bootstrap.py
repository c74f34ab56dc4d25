"""The composition root: builds every collaborator once, in dependency order, and closes them in reverse."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version as distribution_version
from zoneinfo import ZoneInfo

from app.access.authenticator import Authenticator, KeyLookup
from app.access.key_cache import KnownPrincipals
from app.access.openid import open_id
from app.access.startup_keys import LocalKey, ensure_first_key
from app.admission.admission import default_quotas, sized_admission
from app.admission.quota_rows import QuotaRepository
from app.admission.quotas import OverriddenQuotas
from app.admission.rates import Rates, TokenLimiter
from app.backup.data_dir import data_dir_lock
from app.db.audit import AuditLog
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.feedback import FeedbackRepository
from app.db.generations import GenerationRepository
from app.db.idempotency import IdempotencyRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.migration import upgrade
from app.db.openai_files import OpenAIFileRepository
from app.db.reindexing import ReindexingRepository
from app.db.server_lock import server_lock
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.documents.consistency import remove_strays
from app.documents.consistency_watch import Reconciler
from app.documents.intake import Intake
from app.documents.openai_files import OpenAIFiles
from app.documents.originals import FileStore
from app.documents.passage_boxes import PassageBoxes
from app.documents.passwords import Passwords
from app.documents.reindexing import Reindexer
from app.ids import new_id
from app.outbound.web_pages import WebPages
from app.outbound.webhooks import Webhooks
from app.server.background_loading import BackgroundLoading
from app.server.collectors import LedgerCollector
from app.server.model_loading import STEPS, Foundation, extraction_limits, loaded
from app.server.state import State, Stations
from app.settings import Settings
from app.telemetry.logs import logger
from app.telemetry.metrics import Metrics
from app.telemetry.otel import open_tracer
from app.telemetry.stations import Instruments
from app.types import DEFAULT_TENANT
from app.usage.budgets.alert_delivery import AlertDelivery
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.adjustments import Adjustments
from app.usage.ledger.entry import Book
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceBook
from app.usage.ledger.rerating import Rerater
from app.usage.ledger.settlement_journal import SettlementJournal, SettlementRetry
from app.usage.ledger.token_counts import TokenCounts
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.reports.raw_ledger import RawLedger
from app.usage.reports.reports import UsageReports
from app.usage.rollups.builder import RollupBuilder
from app.usage.rollups.rollups import Rollups
from ingestion.child_extractor import find_soffice


@contextmanager
def build(settings: Settings, *, with_models: bool = True, local_secret: str | None = None) -> Iterator[State]:
    """One running application over a data dir, which it holds alone.

    Args:
        settings: From `load_settings`.
        with_models: Load embedder and generator and start ingesting, before the block begins; without them
            only the books can be read and kept.
        local_secret: A key that exists in this process only, with the admin role (for the CLI).

    Raises:
        SetupError: The data dir is in use, the database is too new, a model is missing, prices are in
            another currency, or the index belongs to another embedder that is not there any more.
        RetrievalError: The embedder cannot be used, or the index's device is not there.
    """
    with _founded(settings, local_secret) as foundation:
        if not with_models:
            yield foundation.state
            return
        with loaded(foundation):
            yield foundation.state


@contextmanager
def build_loading(
    settings: Settings, *, on_ready: Callable[[], None], on_failure: Callable[[], None]
) -> Iterator[State]:
    """As `build`, but models load while the block runs, from when it calls `State.loading.start`.

    Args:
        settings: From `load_settings`.
        on_ready: Called by the loading thread when they are there.
        on_failure: Called by the loading thread when the models cannot be loaded; `State.loading.failure` says why.

    Raises:
        SetupError: The data dir is in use, the database is too new, or prices are in another currency.
    """
    with _founded(settings, None) as foundation:
        loading = BackgroundLoading(
            lambda begin: loaded(foundation, begin=begin), steps=STEPS, on_ready=on_ready, on_failure=on_failure
        )
        foundation.state.loading = loading
        try:
            yield foundation.state
        finally:
            loading.close()


@contextmanager
def _founded(settings: Settings, local_secret: str | None) -> Iterator[Foundation]:
    """An application that keeps books: what was left open is settled, and everything that needs no weights works."""
    with ExitStack() as stack:
        stack.enter_context(data_dir_lock(settings.data_dir))
        database = Database.open(settings.resolved_database_url)
        stack.callback(database.close)
        stack.enter_context(server_lock(database))
        upgrade(database, copies=settings.data_dir / "backups")
        boot_id = new_id("boot")
        zone = ZoneInfo(settings.reporting_zone)
        rollups = RollupBuilder(database, zone)
        rollups.ensure_zone()  # before anything is settled
        jobs, documents = JobRepository(database), DocumentRepository(database)
        metrics, version = Metrics(), distribution_version("footnote-rag")
        metrics.describe_build(version)
        tracer = open_tracer(settings.otlp_endpoint, ratio=settings.trace_ratio, version=version)
        stack.callback(tracer.close)
        instruments = Instruments(metrics, tracer)
        alerts, webhooks = AlertRepository(database), Webhooks(hosts=settings.webhook_hosts, tracer=tracer)
        delivery = AlertDelivery(alerts, webhooks.post, currency=settings.currency)
        audit = AuditLog(database)
        quotas = QuotaRepository(database, audit, on_change=lambda: overridden.refresh())  # noqa: PLW0108 - made below
        key_quota, tenant_quota = default_quotas(settings)
        overridden = OverriddenQuotas(quotas.all, key=key_quota, tenant=tenant_quota)
        stack.callback(overridden.close)
        rates = Rates(overridden)
        books = (Budgets(on_refusal=delivery.refused), Rollups(zone), TokenCounts(metrics), TokenLimiter(rates))
        ledger = _open_ledger(settings, stack, database, jobs, boot_id=boot_id, books=books, metrics=metrics)
        prices = PriceBook(database, audit, currency=settings.currency, clock=ledger.seconds)
        prices.require_currency()
        known = KnownPrincipals()
        keys, collections = KeyRepository(database, on_change=known.forget), CollectionRepository(database)
        sessions = SessionRepository(database, hours=settings.session_hours, on_change=known.forget)
        ensure_first_key(keys, settings.admin_key, tenant_id=DEFAULT_TENANT, address=settings.address())
        files = FileStore(settings.data_dir / "files")
        files.clear_incoming()
        remove_strays(files, documents)
        stations = Stations()
        passwords = Passwords()
        intake = Intake(
            documents=documents,
            collections=collections,
            files=files,
            passwords=passwords,
            wake=stations.wake,
            forget=stations.forget,
            on_queued=instruments.queued,
            with_office=find_soffice() is not None,
        )
        lookup: KeyLookup = keys
        if local_secret is not None:
            lookup = LocalKey(keys, secret=local_secret, tenant_id=DEFAULT_TENANT)
        generations = GenerationRepository(database)
        reconciler = Reconciler(database=database, files=files, metrics=metrics)
        ledger_reconciliation = LedgerReconciliation(
            database, boot_id=boot_id, zone=zone, metrics=metrics, clock=ledger.seconds
        )
        gc.enable()  # the command line turns it off while it imports
        # budgets hold what a call cost when it was settled: only the sums count adjustments
        adjustments = Adjustments(
            database, audit, books=(Rollups(zone),), currency=settings.currency, clock=ledger.seconds
        )
        state = State(
            settings=settings,
            database=database,
            documents=documents,
            collections=collections,
            contents=ContentRepository(database),
            passage_boxes=stack.enter_context(
                PassageBoxes(ContentRepository(database), files, limits=extraction_limits(settings))
            ),
            conversations=ConversationRepository(database),
            feedback=FeedbackRepository(database),
            jobs=jobs,
            generations=generations,
            idempotency=IdempotencyRepository(database, boot_id=boot_id),
            keys=keys,
            tenants=TenantRepository(database, on_change=known.forget),
            users=UserRepository(database, on_change=known.forget),
            sessions=sessions,
            openid=open_id(settings),
            ledger=ledger,
            raw_ledger=RawLedger(database),
            reports=UsageReports(database, zone=zone, currency=settings.currency),
            rollups=rollups,
            audit=audit,
            budgets=BudgetRepository(database, audit),
            alerts=alerts,
            webhooks=webhooks,
            prices=prices,
            adjustments=adjustments,
            rerater=Rerater(database, adjustments, audit, clock=ledger.seconds),
            files=files,
            intake=intake,
            openai_files=OpenAIFiles(
                rows=OpenAIFileRepository(database), documents=documents, jobs=jobs, files=files, intake=intake
            ),
            reindexer=Reindexer(
                reindexings=ReindexingRepository(database),
                collections=collections,
                jobs=jobs,
                files=files,
                intake=intake,
                wake=stations.wake,
            ),
            web_pages=WebPages() if settings.web_pages else None,
            authenticator=Authenticator(lookup, sessions, known=known),
            admission=sized_admission(settings, quotas=overridden, rates=rates, waiting_tokens=stations.waiting_tokens),
            quotas=quotas,
            metrics=metrics,
            instruments=instruments,
            reconciler=reconciler,
            ledger_reconciliation=ledger_reconciliation,
            models=None,
            embedder_swap=None,
            started_at=time.time(),
            version=version,
        )
        stations.state = state
        yield Foundation(state=state, stations=stations, boot_id=boot_id, passwords=passwords, delivery=delivery)


def _open_ledger(
    settings: Settings,
    stack: ExitStack,
    database: Database,
    jobs: JobRepository,
    *,
    boot_id: str,
    books: tuple[Book, ...],
    metrics: Metrics,
) -> Ledger:
    """The ledger, in which nothing is open any more that a process before this one began; its jobs wait again."""
    journal = SettlementJournal(settings.data_dir / "settlements.jsonl")
    ledger = Ledger(database, boot_id=boot_id, books=books, journal=journal, currency=settings.currency)
    replayed = ledger.settle_journaled()  # exact counts first: what is open after them was cut off
    recovered, requeued = ledger.recover(), jobs.requeue_orphans(boot_id)
    if recovered or requeued or replayed:
        logger().warning("start.recovered", ledger_rows=recovered, jobs=requeued, settled=replayed)
    metrics.register(LedgerCollector(database, lambda: len(journal)))
    retry = SettlementRetry(ledger.settle_journaled)
    retry.start()
    stack.callback(retry.close)
    return ledger
