"""The composition root: builds every collaborator once, in dependency order, and closes them in reverse."""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version as distribution_version
from zoneinfo import ZoneInfo

from app.access.authenticator import Authenticator, KeyLookup
from app.access.first_key import ensure_first_key
from app.access.local_key import LocalKey
from app.assembly import Assembly
from app.consistency import remove_strays
from app.cutover import Cutover
from app.db.alerts import AlertRepository
from app.db.audit import AuditLog
from app.db.budgets import BudgetRepository
from app.db.chunks import ChunkRepository
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.generations import GenerationRepository, Standing
from app.db.idempotency import IdempotencyRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.migration import upgrade
from app.db.reindexing import ReindexingRepository
from app.db.session import Database
from app.db.vectors import VectorRepository
from app.files import FileStore
from app.identifiers import new_id
from app.index import index_folder
from app.intake import Intake
from app.loading import load_embedder, load_entailment, load_generator, load_reranker
from app.lock import data_dir_lock
from app.passwords import Passwords
from app.reconciliation import NightlyReconciliation, Reconciler
from app.reembedding import Reembedder
from app.reindexing import Reindexer
from app.settings import Settings
from app.state import State, Stations
from app.telemetry import Metrics, logger
from app.usage.adjustments import Adjustments
from app.usage.alert_delivery import AlertDelivery
from app.usage.budgets import Budgets
from app.usage.engine_counters import EngineCounters
from app.usage.entry import Book
from app.usage.ledger import Ledger
from app.usage.prices import PriceBook
from app.usage.raw_ledger import RawLedger
from app.usage.reconciliation import LedgerReconciliation, LedgerWatch
from app.usage.reports import UsageReports
from app.usage.rerating import Rerater
from app.usage.rollup_builder import RollupBuilder
from app.usage.rollups import Rollups
from app.usage.settlement_journal import SettlementJournal, SettlementRetry
from app.web_pages import WebPages
from app.webhooks import Webhooks
from ingestion.child_extractor import find_soffice
from ingestion.types import ExtractionLimits

DEFAULT_TENANT = "default"


@contextmanager
def build(settings: Settings, *, with_models: bool = True, local_secret: str | None = None) -> Iterator[State]:
    """One running application over a data dir, which it holds alone.

    Args:
        settings: From `load_settings`.
        with_models: Load embedder and generator and start ingesting; without them only the books
            can be read and kept.
        local_secret: A key that exists in this process only, with the admin role (for the CLI).

    Raises:
        SetupError: The data dir is in use, the database is too new, a model is missing, prices are in
            another currency, or the index belongs to another embedder that is not there any more.
        RetrievalError: The embedder cannot be used, or the index's device is not there.
    """
    with ExitStack() as stack:
        stack.enter_context(data_dir_lock(settings.data_dir))
        database = Database.open(settings.resolved_database_url)
        stack.callback(database.close)
        upgrade(database)
        boot_id = new_id("boot")
        zone = ZoneInfo(settings.reporting_zone)
        rollups = RollupBuilder(database, zone)
        rollups.ensure_zone()  # before anything is settled
        alerts, webhooks = AlertRepository(database), Webhooks(hosts=settings.webhook_hosts)
        delivery = AlertDelivery(alerts, webhooks.post, currency=settings.currency)
        jobs, documents = JobRepository(database), DocumentRepository(database)
        books = (Budgets(on_refusal=delivery.refused), Rollups(zone))
        ledger = _open_ledger(settings, stack, database, jobs, boot_id=boot_id, books=books)
        audit = AuditLog(database)
        prices = PriceBook(database, audit, currency=settings.currency, clock=ledger.seconds)
        prices.require_currency()
        keys, collections = KeyRepository(database), CollectionRepository(database)
        ensure_first_key(keys, settings.admin_key, tenant_id=DEFAULT_TENANT)
        files = FileStore(settings.data_dir / "files")
        files.clear_incoming()
        remove_strays(files, documents)
        metrics = Metrics()
        stations = Stations()
        passwords = Passwords()
        intake = Intake(
            documents=documents,
            collections=collections,
            files=files,
            passwords=passwords,
            wake=stations.wake,
            forget=stations.forget,
            with_office=find_soffice() is not None,
        )
        lookup: KeyLookup = keys
        if local_secret is not None:
            lookup = LocalKey(keys, secret=local_secret, tenant_id=DEFAULT_TENANT)
        generations = GenerationRepository(database)
        cutover, standing, counters = None, None, None
        if with_models:
            cutover, standing, counters = _load_models(
                settings, stack, database, files, ledger, jobs, metrics, boot_id, stations, generations, passwords
            )
        if stations.models is not None:
            delivery.start()
            stack.callback(delivery.stop)
        reconciler = Reconciler(database=database, files=files, metrics=metrics)
        ledger_reconciliation = LedgerReconciliation(
            database, boot_id=boot_id, zone=zone, metrics=metrics, counters=counters, clock=ledger.seconds
        )
        if stations.models is not None:
            _watch(settings, stack, stations, reconciler, ledger_reconciliation)
        gc.enable()  # the command line turns it off while it imports
        gc.freeze()  # what is loaded now stays: collections need not look at it again
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
            conversations=ConversationRepository(database),
            jobs=jobs,
            generations=generations,
            idempotency=IdempotencyRepository(database, boot_id=boot_id),
            keys=keys,
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
            reindexer=Reindexer(
                reindexings=ReindexingRepository(database),
                collections=collections,
                jobs=jobs,
                files=files,
                intake=intake,
                wake=stations.wake,
            ),
            web_pages=WebPages() if settings.web_pages else None,
            authenticator=Authenticator(lookup),
            metrics=metrics,
            reconciler=reconciler,
            ledger_reconciliation=ledger_reconciliation,
            models=stations.models,
            cutover=cutover,
            started_at=time.time(),
            version=distribution_version("footnote-rag"),
        )
        stations.state = state
        if cutover is not None and standing is not None:
            cutover.start(standing)
        yield state


def _open_ledger(
    settings: Settings,
    stack: ExitStack,
    database: Database,
    jobs: JobRepository,
    *,
    boot_id: str,
    books: tuple[Book, ...],
) -> Ledger:
    """The ledger, in which nothing is open any more that a process before this one began; its jobs wait again."""
    journal = SettlementJournal(settings.data_dir / "settlements.jsonl")
    ledger = Ledger(database, boot_id=boot_id, books=books, journal=journal, currency=settings.currency)
    replayed = ledger.settle_journaled()  # exact counts first: what is open after them was cut off
    recovered, requeued = ledger.recover(), jobs.requeue_orphans(boot_id)
    if recovered or requeued or replayed:
        logger().warning("start.recovered", ledger_rows=recovered, jobs=requeued, settled=replayed)
    retry = SettlementRetry(ledger.settle_journaled)
    retry.start()
    stack.callback(retry.close)
    return ledger


def _watch(
    settings: Settings,
    stack: ExitStack,
    stations: Stations,
    reconciler: Reconciler,
    ledger_reconciliation: LedgerReconciliation,
) -> None:
    """Reconcile the ledger every few minutes, and everything else every night."""
    ledger_watch = LedgerWatch(ledger_reconciliation.run)
    ledger_watch.start()
    stack.callback(ledger_watch.stop)
    if settings.reconcile_hour == "off":
        return
    nightly = NightlyReconciliation(
        lambda: reconciler.run(stations.current().index, repair=True), hour=settings.reconcile_hour
    )
    nightly.start()
    stack.callback(nightly.stop)


def _load_models(
    settings: Settings,
    stack: ExitStack,
    database: Database,
    files: FileStore,
    ledger: Ledger,
    jobs: JobRepository,
    metrics: Metrics,
    boot_id: str,
    stations: Stations,
    generations: GenerationRepository,
    passwords: Passwords,
) -> tuple[Cutover, Standing, EngineCounters | None]:
    """Everything that needs weights. Heavy libraries are imported here, so that the rest starts fast."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded while serving
    os.environ.setdefault("TQDM_DISABLE", "1")  # libraries' progress bars do not belong into a server's log
    from app.lexical_index import LiveLexicalIndex
    from ingestion.child_extractor import ChildExtractor
    from ingestion.extractor_pool import ExtractorPool

    embedder = load_embedder(settings)
    generator = load_generator(settings, embedder)
    counters = None
    if not settings.extractive and not settings.remote_url:  # elsewhere the engine's own counters are not ours to read
        counters = EngineCounters(database, generator[2], boot_id=boot_id, clock=ledger.seconds)
        counters.start()
        stack.callback(counters.close)  # after the engine, which tells every observer first
    stack.callback(generator[2].close)

    chunks = ChunkRepository(database)
    stack.callback(stations.close_index)
    lexical = LiveLexicalIndex(settings.data_dir / "lexical", database=database, chunks=chunks, engine=settings.lexical)
    lexical.start()
    stack.callback(lexical.close)
    limits = ExtractionLimits(
        seconds=settings.parse_seconds,
        memory_bytes=settings.parse_memory_mb << 20,
        ocr_pages=0 if settings.ocr == "off" else ExtractionLimits().ocr_pages,
    )
    parsers = settings.parsers or min(2, len(os.sched_getaffinity(0)))
    extractor = ExtractorPool([ChildExtractor(limits, soffice=find_soffice()) for _ in range(parsers)])
    stack.callback(extractor.close)
    assembly = Assembly(
        settings=settings,
        database=database,
        files=files,
        ledger=ledger,
        jobs=jobs,
        metrics=metrics,
        boot_id=boot_id,
        chunks=chunks,
        lexical=lexical,
        extractor=extractor,
        parsers=parsers,
        passwords=passwords,
        configured=embedder,
        generator=generator,
        reranker=load_reranker(settings),
        entailment=load_entailment(settings),
    )
    standing = generations.prepare(embedder.info, source=settings.embedder)
    serving = assembly.line(standing.active)
    models = serving.assemble(serving.open_index(standing.active.id))
    stations.models = models
    metrics.watch_engine(models.engine)
    metrics.watch_index(stations.vectors)
    models.worker.start()
    stack.callback(stations.stop_worker)
    vectors = VectorRepository(database)
    cutover = Cutover(
        generations=generations,
        vectors=vectors,
        reembedder=Reembedder(vectors, ledger),
        stations=stations,
        load=assembly.line,
        serving=serving,
        folder_of=lambda generation: index_folder(settings.data_dir, generation),
    )
    stack.callback(cutover.close)
    return cutover, standing, counters
