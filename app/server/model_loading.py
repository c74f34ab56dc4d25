"""Loads the models into a running application, starts everything that needs them, and closes it all in reverse."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from app.admission.admission import generation_slots
from app.answering.generating.cached_tokenizer import CachedTokenizer
from app.answering.generating.model_class import ModelClass
from app.answering.metering.meter import Meters
from app.db.cancel_requests import CancelRequestRepository
from app.db.chunks import ChunkRepository
from app.db.index_generations import Standing
from app.db.vectors import VectorRepository
from app.documents.passage_follower import PassageFollower
from app.documents.passwords import JobPasswords
from app.documents.reembedding import Reembedder
from app.models.loading import load_embedder, load_entailment, load_generator, load_judge, load_reranker, sized
from app.probing.asking import CaseAsking
from app.probing.probe import ModelProbe
from app.probing.results import probe_key, results_of
from app.server.assembly import Assembly
from app.server.collectors import EngineCollector, IndexCollector
from app.server.embedder_swap import EmbedderStack, EmbedderSwap
from app.server.periodic import PeriodicThread, seconds_until
from app.server.process import freeze_loaded_objects
from app.server.serving import Serving
from app.server.sharing import Neighbours
from app.server.state import State
from app.server.unattended_assembly import table_runner, watch_news, watch_runner
from app.settings import IngestionSettings, Settings
from app.telemetry.logs import logger
from app.usage.budgets.alert_delivery import AlertDelivery
from app.usage.ledger.ledger import Ledger
from app.usage.overview.weekly import WeeklySummary
from app.usage.reconciliation.engine_counters import EngineCounters
from generation.host_memory import return_freed_memory
from generation.ports import Engine, Tokenizer
from ingestion.child_extractor import find_soffice
from ingestion.types import ExtractionLimits
from retrieval.ports import ChunkingEmbedder

STEPS = ("embedder", "generator", "reranker, judge and verifier", "reader", "index")
"""The steps of loading, in this order."""

_COUNTERS_SECONDS = 10.0
_ALERTS_SECONDS = 5.0
_CANCELS_SECONDS = 0.5
_DELIVERY_SECONDS = 12.0  # a little more than the timeout of one delivery
_FOLLOW_SECONDS = 1.0  # between two looks at a table that is nearly always empty
_LEDGER_SECONDS = 300.0
_WEEKLY_SECONDS = 60.0
_INLINE_PARSERS = 2  # files sent with questions that are read at once; a process runs only while there are any


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """An application without models, and the inputs for loading them."""

    state: State
    neighbours: Neighbours
    passwords: JobPasswords
    delivery: AlertDelivery
    weekly: tuple[WeeklySummary, ...]


@contextmanager
def loaded(
    foundation: Foundation, *, begin: Callable[[str], None] = lambda _: None, probing: bool = False
) -> Iterator[None]:
    """Load the models, and close them when the block ends. Requests may be served meanwhile.

    Requests see all models or none. Heavy libraries are imported here, so that the rest starts fast.

    Args:
        foundation: The application without models.
        begin: Called with each of `STEPS` before it; an exception it raises ends the loading.
        probing: Whether to measure how well the generator reads where that is not known.

    Raises:
        SetupError: A model is missing, or the index was built with an embedder that is not on this machine any more.
        RetrievalError: The embedder cannot be used, or the index's device is not there.
        GenerationError: The generator cannot be used.
    """
    state, serving = foundation.state, foundation.state.serving
    settings, ledger = state.settings, state.usage.ledger
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded while serving
    os.environ.setdefault("TQDM_DISABLE", "1")  # no progress bars of libraries in the log

    with ExitStack() as stack:
        begin("embedder")
        embedder = load_embedder(settings)
        begin("generator")
        generator = load_generator(settings, embedder)
        state.limits.admission.generation_slots.widen(generation_slots(sized(settings)))  # torch is imported by now
        if not settings.extractive and not settings.remote_url:  # a remote engine counts requests of other clients too
            _count(state, stack, generator[2])
        stack.callback(generator[2].close)

        stack.callback(serving.close_index)
        serving.probe = probe = _probe(settings, ledger, generator)
        assembly = _assembly(foundation, stack, embedder, generator, begin=begin)
        standing = _standing(foundation, embedder)
        begin("reader")
        embedder_stack = assembly.stack_for(standing.active)
        begin("index")
        index = embedder_stack.open_index(standing.active.id)
        serving.incoming, serving.incoming_words = index, assembly.lexical  # deletions reach both from now on
        index.reconcile()  # changes made while it was read
        models = embedder_stack.assemble(index)
        if settings.ingests:
            models.worker.start()
        stack.callback(serving.stop_worker)
        if not settings.shared:
            embedder_swap = _embedder_swap(foundation, assembly, embedder_stack)
            stack.callback(embedder_swap.close)
            serving.embedder_swap = embedder_swap
        serving.install(models)
        serving.incoming = serving.incoming_words = None
        stack.callback(state.corpus.suggester.close)  # it asks the models
        models.worker.wake()  # for files uploaded meanwhile
        state.telemetry.metrics.register(EngineCollector(models.engine))
        state.telemetry.metrics.register(IndexCollector(serving.vectors))
        _start_periodic(foundation, stack)
        if not settings.shared:
            embedder_swap.start(standing)
        if probe is not None:
            stack.callback(probe.close)
            if probing:
                probe.start()
        logger().info("engine.loaded", cache_limit_mib=models.engine.stats().cache_bytes >> 20)
        freeze_loaded_objects()
        return_freed_memory()  # what loading needed for a moment
        yield


def _count(state: State, stack: ExitStack, engine: Engine) -> None:
    """Store the counters of this process's engine, to be compared with the ledger."""
    ledger = state.usage.ledger
    counters = EngineCounters(state.database, engine, boot_id=ledger.boot_id, clock=ledger.seconds)
    counters.flush()
    stack.callback(counters.close)  # after the engine has closed and called every observer
    _start(
        stack,
        PeriodicThread(
            counters.flush_if_changed,
            name="engine-counters",
            interval=_COUNTERS_SECONDS,
            failed="engine_counters.failed",
        ),
    )
    state.usage.reconciliation.watch_engine(counters)


def _standing(foundation: Foundation, embedder: ChunkingEmbedder) -> Standing:
    """The generation to search with, and what the start does about the others."""
    settings, generations = foundation.state.settings, foundation.state.corpus.generations
    start = generations.join if settings.shared else generations.prepare
    return start(embedder.info, source=settings.embedder)


def _embedder_swap(foundation: Foundation, assembly: Assembly, stack: EmbedderStack) -> EmbedderSwap:
    """The change of the embedder. Processes beside each other have none: each would change for itself alone."""
    state = foundation.state
    return EmbedderSwap(
        generations=state.corpus.generations,
        vectors=(vectors := VectorRepository(state.database)),
        reembedder=Reembedder(vectors, state.usage.ledger),
        serving=state.serving,
        load=assembly.stack_for,
        stack=stack,
        stores=assembly.vector_stores,
    )


def _assembly(
    foundation: Foundation,
    stack: ExitStack,
    embedder: ChunkingEmbedder,
    generator: tuple[Tokenizer, str, Engine],
    *,
    begin: Callable[[str], None],
) -> Assembly:
    """The assembly, with the parts that all embedders share; `stack` closes it."""
    from app.documents.adapters.word_index import WordIndex
    from ingestion.child_extractor import ChildExtractor, ExtractorPool

    state, settings = foundation.state, foundation.state.settings
    chunks = ChunkRepository(state.database)
    # an index of words in the data dir does not learn of what others ingest
    words = "sql" if settings.shared else settings.lexical
    lexical = WordIndex(settings.data_dir / "lexical", database=state.database, chunks=chunks, engine=words)
    lexical.start()
    stack.callback(lexical.close)
    limits = extraction_limits(settings)
    parsers = settings.parsers or min(2, len(os.sched_getaffinity(0)))
    extractor = ExtractorPool([ChildExtractor(limits, soffice=find_soffice()) for _ in range(parsers)])
    stack.callback(extractor.close)
    inline_extractor = ExtractorPool(
        [ChildExtractor(inline_extraction_limits(settings)) for _ in range(_INLINE_PARSERS)]
    )
    stack.callback(inline_extractor.close)
    begin("reranker, judge and verifier")
    return Assembly(
        settings=settings,
        database=state.database,
        files=state.corpus.files,
        ledger=state.usage.ledger,
        jobs=state.corpus.jobs,
        instruments=state.telemetry.instruments,
        asked=state.history.asked,
        chunks=chunks,
        lexical=lexical,
        extractor=extractor,
        inline_extractor=inline_extractor,
        parsers=parsers,
        passwords=foundation.passwords,
        configured=embedder,
        generator=generator,
        reranker=load_reranker(settings),
        judge=load_judge(settings),
        entailment=load_entailment(settings),
        served_class=state.serving.served_class,
    )


def _probe(settings: Settings, ledger: Ledger, generator: tuple[Tokenizer, str, Engine]) -> ModelProbe | None:
    """The probe of the generator; None without a language model."""
    if settings.extractive:
        return None
    tokenizer, revision, engine = generator
    meters = Meters(ledger=ledger, engine=engine, tokenizer_revision=revision)
    known = settings.known_class
    return ModelProbe(
        CaseAsking(tokenizer=CachedTokenizer(tokenizer), meters=meters),
        model=engine.info.model,
        known=None if known is None else ModelClass(known),
        results=results_of(settings),
        key=probe_key(settings),
        clock=ledger.seconds,
    )


def extraction_limits(settings: IngestionSettings) -> ExtractionLimits:
    """Time, memory and OCR pages that reading one file may take."""
    return ExtractionLimits(
        seconds=settings.parse_seconds,
        memory_bytes=settings.parse_memory_mb << 20,
        ocr_pages=0 if settings.ocr == "off" else ExtractionLimits().ocr_pages,
    )


def inline_extraction_limits(settings: IngestionSettings) -> ExtractionLimits:
    """What reading a file that was sent with a question may take; its scanned pages are not recognised."""
    return replace(
        extraction_limits(settings), text_chars=settings.inline_chars, pages=settings.inline_pages, ocr_pages=0
    )


def _start_periodic(foundation: Foundation, stack: ExitStack) -> None:
    """Deliver alerts and weekly summaries, reconcile the ledger, and compare database, files and index every night.

    Cited passages are followed into new versions. Of processes beside each other one follows, and compares at night.
    """
    state, serving, delivery = foundation.state, foundation.state.serving, foundation.delivery
    leads = partial(foundation.neighbours.leads, state.database)
    alerts = PeriodicThread(
        lambda: delivery.work(stopping=lambda: alerts.stopping),
        name="alerts",
        interval=_ALERTS_SECONDS,
        failed="budget.alerts_failed",
        stop_seconds=_DELIVERY_SECONDS,
    )
    _start(stack, alerts)
    _start(
        stack,
        PeriodicThread(
            state.usage.reconciliation.run_unless_busy,
            name="ledger-watch",
            interval=_LEDGER_SECONDS,
            failed="ledger.reconciliation_failed",
        ),
    )
    follower = PassageFollower(state.history.passages)
    following = PeriodicThread(
        lambda: leads() and follower.work(stopping=lambda: following.stopping),
        name="passages",
        interval=_FOLLOW_SECONDS,
        failed="passages.failed",
    )
    _start(stack, following)
    if foundation.weekly:
        _start(
            stack,
            PeriodicThread(
                lambda: [weekly.work() for weekly in foundation.weekly],
                name="weekly-summary",
                interval=_WEEKLY_SECONDS,
                failed="weekly_summary.failed",
                stop_seconds=_DELIVERY_SECONDS,
            ),
        )
    _start_unattended(foundation, stack)
    if (cancels := state.history.cancels) is not None:
        _start(stack, cancelling(serving, cancels))
    hour = state.settings.reconcile_hour
    if hour == "off":
        return
    _start(
        stack,
        PeriodicThread(
            lambda: leads() and state.corpus.reconciler.run(serving.current().indexes, repair=True),
            name="reconciliation",
            interval=lambda: seconds_until(hour, datetime.now().astimezone()),
            failed="reconciliation.failed",
        ),
    )


def _start_unattended(foundation: Foundation, stack: ExitStack) -> None:
    """Ask watched questions and cells of tables, and post events, each process beside others what it takes."""
    state, news = foundation.state, watch_news(foundation.state, foundation.neighbours)
    if state.settings.answers_questions:
        watches = watch_runner(state, foundation.neighbours, delivers=news is not None)
        tables = table_runner(state, foundation.neighbours)
        watching = PeriodicThread(
            lambda: watches.work(stopping=lambda: watching.stopping),
            name="watches",
            interval=_FOLLOW_SECONDS,
            failed="watches.failed",
        )
        filling = PeriodicThread(
            lambda: tables.work(stopping=lambda: filling.stopping),
            name="tables",
            interval=_FOLLOW_SECONDS,
            failed="tables.failed",
        )
        _start(stack, watching)
        _start(stack, filling)
    if news is not None:
        posting = PeriodicThread(
            lambda: news.work(stopping=lambda: posting.stopping),
            name="watch-news",
            interval=_ALERTS_SECONDS,
            failed="watches.news_failed",
            stop_seconds=_DELIVERY_SECONDS,
        )
        _start(stack, posting)


def cancelling(serving: Serving, cancels: CancelRequestRepository) -> PeriodicThread:
    """Cancels the answers of this process that callers cancel at another; it asks only while answers run."""

    def cancel() -> None:
        running = serving.current().answerer.running
        if len(running):
            for request_id in cancels.take():
                running.stop(request_id)

    return PeriodicThread(cancel, name="cancels", interval=_CANCELS_SECONDS, failed="cancels.failed")


def _start(stack: ExitStack, thread: PeriodicThread) -> None:
    thread.start()
    stack.callback(thread.stop)
