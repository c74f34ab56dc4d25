"""The composition root: builds every object of an application once, in dependency order, and closes them in reverse."""

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version as distribution_version
from typing import TypeVar
from zoneinfo import ZoneInfo

from app.access.key_cache import KeyCache
from app.admission.admission import default_quotas, sized_admission
from app.admission.event_streams import EventStreams
from app.admission.quota_rows import QuotaRepository
from app.admission.quotas import OverriddenQuotas
from app.admission.token_limiter import TokenLimiter
from app.backup.data_dir import data_dir_lock
from app.clock import SteadyClock
from app.db.asked_questions import AskedQuestionRepository
from app.db.audit import AuditLog
from app.db.cancel_requests import CancelRequestRepository
from app.db.cited_passages import CitedPassageRepository
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.feedback import FeedbackRepository
from app.db.idempotency import IdempotencyRepository
from app.db.index_generations import IndexGenerationRepository
from app.db.jobs import JobRepository
from app.db.openai_files import OpenAIFileRepository
from app.db.originals import OriginalRepository
from app.db.presence import OwnProcess
from app.db.reindexing import ReindexingRepository
from app.db.session import Database
from app.db.stored_responses import StoredResponseRepository
from app.documents.consistency import Reconciler
from app.documents.intake import Intake
from app.documents.openai_files import OpenAIFiles
from app.documents.passage_boxes import PassageBoxes
from app.documents.passwords import JobPasswords
from app.documents.reindexing import Reindexer
from app.documents.watch import DocumentWatch
from app.ids import new_id
from app.models.additions import ModelAdditions
from app.outbound.threads import OutboundThreads
from app.outbound.web_pages import WebPages
from app.outbound.webhooks import Webhooks
from app.server.access_assembly import access_of
from app.server.background_loading import BackgroundLoading
from app.server.collectors import LedgerCollector, TokenMetrics
from app.server.model_loading import STEPS, Foundation, extraction_limits, loaded
from app.server.originals import document_files
from app.server.periodic import PeriodicThread
from app.server.serving import Serving
from app.server.sharing import Counts, Neighbours
from app.server.state import AdmissionState, DocumentsState, History, State, Telemetry, UsageState
from app.server.unattended_assembly import table_repository, watch_repository
from app.settings import Settings
from app.telemetry.logs import logger
from app.telemetry.metrics import Metrics
from app.telemetry.otel import open_tracer
from app.telemetry.timing import Instruments
from app.telemetry.tracing import Tracer
from app.types import DEFAULT_TENANT
from app.usage.budgets.alert_delivery import AlertDelivery
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.budgets.budgets import Budgets
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.adjustments import Adjustments
from app.usage.ledger.entry import LedgerObserver
from app.usage.ledger.ledger import Late, Ledger
from app.usage.ledger.prices import PriceRepository
from app.usage.ledger.rerating import Rerater
from app.usage.ledger.settlement_journal import SettlementJournal
from app.usage.overview.reports import OverviewReports
from app.usage.overview.weekly import weekly_summaries
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.reports.raw_ledger import RawLedger
from app.usage.reports.reports import UsageReports
from app.usage.rollups.builder import RollupBuilder
from app.usage.rollups.rollups import Rollups
from ingestion.child_extractor import find_soffice

_Repository = TypeVar("_Repository")

_SWEEP_SECONDS = 3600.0  # between deletions of expired answers
_RETRY_SECONDS = 5.0  # between retries of settlements that failed
_PAGE_THREADS = 8  # web pages fetched at once; a tenant has half of them


@contextmanager
def build(settings: Settings, *, with_models: bool = True, local_secret: str | None = None) -> Iterator[State]:
    """Build an application over a data dir, which it locks; close it when the block ends.

    Args:
        settings: From `load_settings`.
        with_models: Load the models and start the ingestion worker before the block begins. Without models, nothing
            can be asked or ingested.
        local_secret: The secret of an admin key that exists in this process only (for the CLI).

    Raises:
        SetupError: The data dir is in use, the database is too new, a model is missing, prices are in
            another currency, or the index was built with an embedder that is not on this machine any more.
        RetrievalError: The embedder cannot be used, or the index's device is not there.
    """
    with _without_models(settings, local_secret) as foundation:
        if not with_models:
            yield foundation.state
            return
        with loaded(foundation):
            yield foundation.state


@contextmanager
def build_loading(
    settings: Settings,
    *,
    on_ready: Callable[[], None],
    on_failure: Callable[[], None],
    local_secret: str | None = None,
) -> Iterator[State]:
    """As `build`, but the models load while the block runs, after it calls `State.serving.loading.start`.

    A generator that is not known yet is measured then.

    Args:
        settings: From `load_settings`.
        on_ready: Called by the loading thread when the models are loaded.
        on_failure: Called by the loading thread when the models cannot be loaded, for the reason
            `State.serving.loading.failure`.
        local_secret: As of `build`: for the command line beside the server.

    Raises:
        SetupError: The data dir is in use, the database is too new, or prices are in another currency.
    """
    with _without_models(settings, local_secret) as foundation:
        loading = BackgroundLoading(
            lambda begin: loaded(foundation, begin=begin, probing=True),
            steps=STEPS,
            on_ready=on_ready,
            on_failure=on_failure,
        )
        foundation.state.serving.loading = loading
        try:
            yield foundation.state
        finally:
            loading.close()


@contextmanager
def _without_models(settings: Settings, local_secret: str | None) -> Iterator[Foundation]:
    """The application without models, after crash recovery: calls left open are settled, cut-off jobs wait again."""
    with ExitStack() as stack:
        base = _base(settings, stack)
        key_cache = KeyCache()
        additions = stack.enter_context(closing(ModelAdditions(models_dir=settings.models_dir)))
        serving = Serving.of(settings, version=base.version, additions=additions)
        jobs = JobRepository(base.database, clock=base.clock, may_claim=base.neighbours.may_claim)
        limits, rates = _limits(base, stack, serving)
        usage, delivery = _usage(base, stack, jobs, rates)
        access = access_of(
            settings, base.database, base.audit, stack, clock=base.clock, key_cache=key_cache, local_secret=local_secret
        )
        passwords = base.neighbours.passwords(base.database)
        corpus = _corpus(base, stack, serving, jobs, passwords)
        gc.enable()  # the command line turns it off while it imports
        state = State(
            settings=settings,
            database=base.database,
            idempotency=_idempotency(base, stack),
            corpus=corpus,
            history=History(
                conversations=ConversationRepository(base.database, clock=base.clock),
                responses=StoredResponseRepository(base.database, clock=base.clock),
                passages=CitedPassageRepository(base.database),
                asked=base.owned(AskedQuestionRepository),
                feedback=FeedbackRepository(base.database, clock=base.clock),
                watches=watch_repository(settings, base.database, usage.webhooks, clock=base.clock),
                tables=table_repository(settings, base.database, clock=base.clock),
                cancels=base.owned(CancelRequestRepository) if settings.shared else None,
            ),
            access=access,
            usage=usage,
            limits=limits,
            telemetry=base.telemetry,
            serving=serving,
        )
        weekly = weekly_summaries(
            url=settings.summary_webhook,
            addresses=settings.summary_mail,
            webhooks=usage.webhooks,
            mailer=access.mailer,
            database=base.database,
            reports=usage.overview,
            tenant_id=DEFAULT_TENANT,
            clock=usage.ledger.seconds,
            claimant=base.neighbours.claimant,
        )
        yield Foundation(state=state, neighbours=base.neighbours, passwords=passwords, delivery=delivery, weekly=weekly)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The objects that every part of the state is built on."""

    settings: Settings
    database: Database
    neighbours: Neighbours
    clock: SteadyClock
    zone: ZoneInfo
    audit: AuditLog
    telemetry: Telemetry
    tracer: Tracer
    rollups: RollupBuilder
    version: str

    @property
    def boot_id(self) -> str:
        """The id of this process."""
        return self.neighbours.boot_id

    def owned(self, repository: Callable[[Database, OwnProcess], _Repository]) -> _Repository:
        """A repository whose rows name the process that they belong to."""
        return repository(self.database, OwnProcess(self.boot_id, self.neighbours.gone, self.clock))


def _base(settings: Settings, stack: ExitStack) -> _Base:
    """Lock the data dir, open the database and bring its schema up to date."""
    stack.enter_context(data_dir_lock(settings.data_dir))
    neighbours = Neighbours(settings, new_id("boot"))
    database = stack.enter_context(neighbours.database())
    zone = ZoneInfo(settings.reporting_zone)
    clock = SteadyClock()
    rollups = RollupBuilder(database, zone, clock=clock)
    neighbours.agree_on_zone(rollups)
    metrics, version = Metrics(), distribution_version("footnote-rag")
    metrics.describe_build(version)
    tracer = open_tracer(settings.otlp_endpoint, ratio=settings.trace_ratio, version=version)
    stack.callback(tracer.close)
    return _Base(
        settings=settings,
        database=database,
        neighbours=neighbours,
        clock=clock,
        zone=zone,
        audit=AuditLog(database, clock=clock),
        telemetry=Telemetry(metrics=metrics, instruments=Instruments(metrics, tracer)),
        tracer=tracer,
        rollups=rollups,
        version=version,
    )


def _limits(base: _Base, stack: ExitStack, serving: Serving) -> tuple[AdmissionState, Counts]:
    """Quotas from the settings and the database, and the admission that enforces them."""
    quotas = QuotaRepository(
        base.database,
        base.audit,
        on_change=lambda: overridden.refresh(),  # noqa: PLW0108 - made below
        clock=base.clock,
    )
    key_quota, tenant_quota = default_quotas(base.settings)
    overridden = OverriddenQuotas(quotas.all, key=key_quota, tenant=tenant_quota)
    stack.callback(overridden.close)
    rates = stack.enter_context(base.neighbours.counts(overridden, base.database))
    brake = base.neighbours.login_brake(base.database)
    admission = sized_admission(
        base.settings, quotas=overridden, rates=rates, failed_logins=brake, waiting_tokens=serving.waiting_tokens
    )
    return AdmissionState(admission=admission, event_streams=EventStreams(), quotas=quotas), rates


def _usage(base: _Base, stack: ExitStack, jobs: JobRepository, rates: Counts) -> tuple[UsageState, AlertDelivery]:
    """The ledger after recovery, with budgets, prices, rollups and reports."""
    database, audit, currency, metrics = base.database, base.audit, base.settings.currency, base.telemetry.metrics
    alerts = AlertRepository(database, clock=base.clock, claimant=base.neighbours.claimant)
    webhooks = Webhooks(hosts=base.settings.webhook_hosts, tracer=base.tracer, secret=base.settings.signing_secret)
    delivery = AlertDelivery(alerts, webhooks.post, currency=currency)
    observers = (Budgets(on_refusal=delivery.refused), Rollups(base.zone), TokenMetrics(metrics), TokenLimiter(rates))
    # budgets hold the cost at settlement: only rollups count later adjustments
    adjustments = Adjustments(database, audit, observers=(Rollups(base.zone),), currency=currency, clock=base.clock)
    ledger = _open_ledger(base, stack, jobs, observers, adjustments.correct_late_in if base.settings.shared else None)
    prices = PriceRepository(database, audit, currency=currency, clock=ledger.seconds)
    prices.require_currency()
    usage = UsageState(
        ledger=ledger,
        raw_ledger=RawLedger(database),
        prices=prices,
        adjustments=adjustments,
        rerater=Rerater(database, adjustments, audit, clock=ledger.seconds),
        budgets=BudgetRepository(database, audit, clock=ledger.seconds),
        alerts=alerts,
        webhooks=webhooks,
        rollups=base.rollups,
        reports=UsageReports(database, zone=base.zone, currency=currency, clock=ledger.seconds),
        overview=OverviewReports(database, zone=base.zone, currency=currency, clock=ledger.seconds),
        reconciliation=LedgerReconciliation(
            database, OwnProcess(base.boot_id, base.neighbours.gone, ledger.seconds), zone=base.zone, metrics=metrics
        ),
    )
    return usage, delivery


def _open_ledger(
    base: _Base, stack: ExitStack, jobs: JobRepository, observers: tuple[LedgerObserver, ...], late: Late | None
) -> Ledger:
    """The ledger after recovery: calls and jobs that an earlier process left open are settled and queued again."""
    journal = SettlementJournal(base.settings.data_dir / "settlements.jsonl")
    ledger = Ledger(
        base.database,
        boot_id=base.boot_id,
        clock=base.clock,
        observers=observers,
        journal=journal,
        currency=base.settings.currency,
        clock_in=base.neighbours.clock_in,
        late=late,
    )
    if replayed := ledger.settle_journaled():  # exact counts first: calls still open after that were cut off
        logger().warning("settlement.replayed", settled=replayed)
    stack.enter_context(base.neighbours.recovered(jobs, ledger, version=base.version))
    base.telemetry.metrics.register(LedgerCollector(base.database, lambda: len(journal), base.clock))

    def settle() -> None:
        if settled := ledger.settle_journaled():
            logger().info("settlement.replayed", settled=settled)

    retry = PeriodicThread(
        settle, name="settlements", interval=_RETRY_SECONDS, failed="settlement.failed", once_more=True
    )
    retry.start()
    stack.callback(retry.stop)
    return ledger


def _idempotency(base: _Base, stack: ExitStack) -> IdempotencyRepository:
    """Requests with an idempotency key. Expired answers are deleted now and every hour."""
    requests = base.owned(IdempotencyRepository)
    requests.sweep()
    sweeping = PeriodicThread(
        requests.sweep, name="idempotency", interval=_SWEEP_SECONDS, failed="idempotency.sweep_failed"
    )
    sweeping.start()
    stack.callback(sweeping.stop)
    return requests


def _corpus(
    base: _Base, stack: ExitStack, serving: Serving, jobs: JobRepository, passwords: JobPasswords
) -> DocumentsState:
    """Documents and their files. Originals that earlier processes left without a document are deleted."""
    database, settings = base.database, base.settings
    documents, collections, contents = (
        DocumentRepository(database, clock=base.clock),
        CollectionRepository(database, clock=base.clock),
        ContentRepository(database),
    )
    files = document_files(settings, base.owned(OriginalRepository))
    stack.enter_context(base.neighbours.strays_deleted(files))
    intake = Intake(
        documents=documents,
        collections=collections,
        files=files,
        passwords=passwords,
        wake=serving.wake,
        indexes=serving,
        on_queued=base.telemetry.instruments.queued,
        with_office=find_soffice() is not None,
    )
    return DocumentsState(
        documents=documents,
        watch=DocumentWatch(documents),
        collections=collections,
        contents=contents,
        passage_boxes=stack.enter_context(PassageBoxes.open(contents, files, limits=extraction_limits(settings))),
        files=files,
        intake=intake,
        web_pages=WebPages() if settings.web_pages else None,
        page_threads=OutboundThreads(_PAGE_THREADS),
        jobs=jobs,
        reindexer=Reindexer(
            reindexings=ReindexingRepository(database, clock=base.clock),
            collections=collections,
            jobs=jobs,
            intake=intake,
            wake=serving.wake,
        ),
        openai_files=OpenAIFiles(
            rows=OpenAIFileRepository(database, clock=base.clock),
            documents=documents,
            jobs=jobs,
            files=files,
            intake=intake,
            clock=base.clock,
        ),
        suggester=serving.suggester(database, contents, stack),
        generations=IndexGenerationRepository(database, clock=base.clock),
        reconciler=Reconciler(database=database, files=files, metrics=base.telemetry.metrics),
    )
